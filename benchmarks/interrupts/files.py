"""Interrupt what opens, writes and closes a file at every bytecode, and use the file again."""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import gpulab
from gpulab.core import disk
from gpulab.core.errors import GpulabError
from gpulab.exercises.journal import Guess, LearnerJournal
from gpulab.roofline.survey._journal import recording_in
from gpulab.workloads.sweeps import Task, provenance, sweep
from tests.support.ctrl_c import interrupted_at_each_place, open_in

_MODULES = (
    *(
        "gpulab.core.disk",
        "gpulab.core.interrupts",
        "gpulab.workloads.sweeps._sweep",
        "gpulab.workloads.sweeps._journal",
    ),
    *("gpulab.roofline.survey._journal", "gpulab.exercises.journal", "contextlib"),
)
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
        if sweep([_TASK], out=path, progress=False, max_time_s=1e-3).stopped_by:
            raise KeyboardInterrupt  # a sweep that is stopped returns what it has


def _grow(path: Path) -> None:
    with disk.growing(path) as file:
        file.append("line\n")
        file.sync()


def failures(write: Callable[[Path], object], step: int) -> Iterator[str]:
    """Interrupt a writer at every ``step``-th bytecode; yield the failure of each try, or "".

    A try failed if the file is left open, or if it cannot be written by the same call afterwards.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.jsonl"
        program = partial(write, path)
        for place in interrupted_at_each_place(program, *_MODULES, by="opcode", step=step):
            failure = _failure(write, path)
            yield failure and f"{place}: {failure}"
            for file in path.parent.iterdir():
                file.unlink()


def _failure(write: Callable[[Path], object], path: Path) -> str:
    if left := open_in(path.parent):
        return f"left open: {left}"
    try:
        write(path)
    except GpulabError as error:
        return f"then refused: {error}"
    parts = [*path.parent.glob(".gpulab-*")]
    return f"left over: {parts}" if parts else ""
