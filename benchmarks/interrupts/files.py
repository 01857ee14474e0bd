"""Interrupt what opens, writes and closes a file at every bytecode, and use the file again."""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType

import psutil  # type: ignore[import-untyped]  # psutil ships no types

import gpulab
from benchmarks.interrupts.injection import Injector, Tracer
from gpulab import disk
from gpulab.errors import GpulabError
from gpulab.exercises.journal import Guess, LearnerJournal
from gpulab.survey._journal import recording_in
from gpulab.sweeps import Task, provenance, sweep

_MODULES = (
    *("gpulab.disk", "gpulab.interrupts", "gpulab.sweeps._sweep", "gpulab.sweeps._journal"),
    *("gpulab.survey._journal", "gpulab.exercises.journal", "contextlib"),
)
# A notebook keeps the last error, and with it every variable in its traceback.
_last_error: list[BaseException] = []
_TASK = Task("add", 64, cache="hot")
_GUESS = Guess("01.naive", "2026-11-22T10:00:00+00:00", 2e-6)


def writers() -> dict[str, Callable[[Path], object]]:
    """Return what writes a file, by name: each takes the file's path."""
    with gpulab.virtual_gpu("H200"):
        facts = provenance()

    def survey(path: Path) -> None:
        with disk.growing(path) as file, recording_in(file, facts) as log:
            log.add_left_out()

    return {
        "disk.growing": _grow,
        "disk.write_whole": lambda path: disk.write_whole(path, b"new"),
        "sweep": _sweep,
        "survey": survey,
        "journal": lambda path: LearnerJournal(path.parent).add(_GUESS),
    }


def _sweep(path: Path) -> None:
    with gpulab.virtual_gpu("H200", first_use=False):
        sweep([_TASK], out=path, progress=False, max_time_s=1e-3)


def _grow(path: Path) -> None:
    with disk.growing(path) as file:
        file.append("line\n")
        file.sync()


class _FileTracer(Tracer):
    """Counts only the bytecodes of what opens, writes and closes files."""

    def _called(self, frame: FrameType, event: str, arg: object) -> object:
        if not str(frame.f_globals.get("__name__")).startswith(_MODULES):
            return None
        return super()._called(frame, event, arg)


def failures(write: Callable[[Path], object], step: int) -> Iterator[str | None]:
    """Interrupt a writer at every ``step``-th bytecode; yield each failure, or None.

    A try failed if the file is left open, or if it cannot be written by the same call afterwards.
    """
    for at in range(0, 1 << 30, step):
        with tempfile.TemporaryDirectory() as folder:
            injector = Injector("interrupt")
            path = Path(folder) / "file.jsonl"
            try:
                with injector.listening():
                    _FileTracer(injector, at=at, by="bytecodes").run(partial(write, path))
                    injector.settle()
            except KeyboardInterrupt as error:
                _last_error[:] = [error]
            if not injector.is_done:
                return
            yield _left(write, path)


def _left(write: Callable[[Path], object], path: Path) -> str | None:
    opened = [file.path for file in psutil.Process().open_files()]
    if left := [name for name in opened if Path(name).is_relative_to(path.parent)]:
        return f"left open: {left}"
    try:
        write(path)
    except GpulabError as error:
        return f"then refused: {error}"
    parts = [*path.parent.glob(".gpulab-*")]
    return f"left over: {parts}" if parts else None
