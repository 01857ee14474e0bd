"""Run learners' functions in a process that imports torch once and forks for each answer.

    python -m gpulab.course._answer_process

It never gets a key. It reads one request per line and writes one line for each. The fork runs the
answer under the limits of ``_confine``, and gets the numbers of its trial when the answer has been
defined. This process watches the fork's time and output, and ends it together with every process
that it started.
"""

import builtins
import ctypes
import gc
import json
import math
import os
import selectors
import signal
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any, TextIO

import psutil  # type: ignore[import-untyped]  # psutil ships no types

from gpulab.course import _confine, _trials
from gpulab.course._confine import AnswerLimits
from gpulab.course._seeded_random import SeededDraw

_NO_FORK = "Windows has no fork; grade on Linux or macOS"

_PR_SET_CHILD_SUBREAPER = 36  # from <linux/prctl.h>
_PIECE = 2**16  # bytes per read: as much as a pipe of Linux contains
_REPORT_BYTES = 2**18  # far more than a trial reports, so only a forged report is longer
_POLL_S = 0.05  # how long a fork may have ended before this process notices


def main() -> None:
    """Serve requests until the standard input ends."""
    # Requests and replies move to other numbers before anything is imported or run, so that
    # neither a print nor a read of an answer can reach them.
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    null_device = os.open(os.devnull, os.O_RDWR)
    os.dup2(null_device, 0)
    os.dup2(null_device, 1)
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    if sys.platform == "linux":  # orphans of an answer come to this process, which ends them
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _warm_up()
    for line in requests:
        request = json.loads(line)
        replies.write(json.dumps(_served(request)) + "\n")
        replies.flush()


def _warm_up() -> None:
    """Import everything that answers need and use it once."""
    import torch

    torch.set_num_threads(1)  # a fork has one thread; more would be missing there
    _trials.warm_up()
    gc.collect()
    gc.freeze()  # so that forks share the memory


def _served(request: dict[str, Any]) -> dict[str, object]:
    if sys.platform == "win32":
        raise OSError(_NO_FORK)
    limits = AnswerLimits(**request["limits"])
    draw = json.dumps(request.pop("draw")).encode()
    numbers_end, numbers = os.pipe()
    report, report_end = os.pipe()
    output, output_end = os.pipe()
    with tempfile.TemporaryDirectory(prefix="gpulab-") as folder:
        child = os.fork()
        if not child:
            _run_and_end(request, limits, folder, (numbers_end, output_end, report_end))
        for end in (numbers_end, report_end, output_end):
            os.close(end)
        return _watched(child, limits, report, output, lambda: _send(numbers, draw))


def _send(pipe: int, content: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(pipe, "wb") as stream:
        stream.write(content)


def _watched(
    child: int, limits: AnswerLimits, report: int, output: int, send_numbers: Callable[[], None]
) -> dict[str, object]:
    """Read the report and the output of a child until it ends or breaks a limit.

    The first line of the report says that the answer is defined; only then the numbers are sent.
    """
    read = {report: b"", output: b""}
    is_defined = False
    stopped, code = "", None
    deadline = time.monotonic() + limits.wall_s
    with selectors.DefaultSelector() as pipes:
        for pipe in read:
            pipes.register(pipe, selectors.EVENT_READ)
        while pipes.get_map() and not stopped:
            _read_on(pipes, read)
            if not is_defined and b"\n" in read[report]:
                is_defined = True
                send_numbers()
            if len(read[output]) > limits.output_bytes or len(read[report]) > _REPORT_BYTES:
                stopped = "output"
            elif time.monotonic() > deadline:
                stopped = "time"
            if code is None:
                code = _ended(child)
            else:  # processes that the answer started still hold the pipes open
                _end_all()
    _end_all()
    if not is_defined:
        send_numbers()  # nobody reads them; this closes the pipe
    if code is None:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(report)
    os.close(output)
    lines = read[report][:_REPORT_BYTES].decode(errors="replace").splitlines()
    return {"lines": lines, "stopped": stopped, "code": code}


def _read_on(pipes: selectors.BaseSelector, read: dict[int, bytes]) -> None:
    for key, _ in pipes.select(_POLL_S):
        piece = os.read(key.fd, _PIECE)
        read[key.fd] += piece
        if not piece:
            pipes.unregister(key.fd)


def _ended(child: int) -> int | None:
    if sys.platform == "win32":
        raise OSError(_NO_FORK)
    ended, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _end_all() -> None:
    """End the processes of an answer, and all processes that they started."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            process.kill()


def _run_and_end(
    request: dict[str, Any], limits: AnswerLimits, folder: str, pipes: tuple[int, int, int]
) -> None:
    """Run one answer in this process, which was just forked, and end it; this never returns."""
    numbers_end, output_end, report_end = pipes
    if sys.platform == "win32":
        raise OSError(_NO_FORK)
    try:
        os.setsid()  # a session of its own: a signal to the process group misses the checker
        os.chdir(folder)
        report, numbers = os.dup(report_end), os.dup(numbers_end)
        for stream in (1, 2):
            os.dup2(output_end, stream)
        # The requests, the replies, and whatever else was inherited.
        for handle in {*range(3, 1024)} - {report, numbers}:
            with suppress(OSError):
                os.close(handle)
        _run(request, limits, os.fdopen(report, "w", buffering=1), os.fdopen(numbers))
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
        os._exit(0)


def _run(request: dict[str, Any], limits: AnswerLimits, report: TextIO, numbers: TextIO) -> None:
    """Limit this process, define the learner's function, run its trial, and report."""
    mark = request.pop("mark")  # without it a line is not ours

    def say(**line: object) -> None:
        report.write(json.dumps(line | {"mark": mark}) + "\n")

    names: dict[str, Any] = {"__name__": "answer"}
    code = compile(request["source"], "<answer>", "exec")
    _confine.limit_resources(limits)
    if sys.platform != "win32":
        # a write to a file then raises OSError, where the signal would end the process
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with _unpatched(say):
            exec(code, names)  # noqa: S102  # running it is what this process is for
        function = names.get(request["function"])
        if not callable(function):
            say(missing=request["function"])
            return
        say(defined=True)
        draw = SeededDraw(*json.loads(numbers.read()))
        say(facts=_trials.TRIALS[request["trial"]](function, draw, lambda: _unpatched(say)))
    except MemoryError:
        say(memory=True)
    except BaseException as error:  # noqa: BLE001  # an answer may raise anything
        say(error=f"{type(error).__name__}: {error}")


@contextmanager
def _unpatched(say: Any) -> Iterator[None]:  # noqa: ANN401  # a function of keywords
    """Report each function or class of the trials' modules that the block replaced.

    An answer that replaces `time.perf_counter`, for instance, could fake every time.
    """
    before = _parts()
    try:
        yield
    finally:
        after = _parts()
        for name, part in before.items():
            if after.get(name) is not part:
                say(patched=name)


def _parts() -> dict[str, object]:
    """Return what trials and virtual GPU call, by name: an answer may replace none of it."""
    import torch

    # Without gpulab's private modules an answer could replace what records its own facts.
    ours = [module for name, module in sys.modules.items() if name.startswith("gpulab")]
    modules = [builtins, time, json, os, math, statistics, torch, torch.cuda, *ours]
    classes = [torch.Tensor, torch.cuda.Event, torch.cuda.Stream, *_classes_in(ours)]
    owners: list[Any] = [*modules, torch.nn.functional, *classes]
    return {
        f"{owner.__name__}.{name}": part
        for owner in owners
        for name, part in vars(owner).items()
        if callable(part) or isinstance(part, property | classmethod | staticmethod)
    }


def _classes_in(modules: list[ModuleType]) -> Iterator[type]:
    for module in modules:
        for part in vars(module).values():
            if isinstance(part, type) and part.__module__ == module.__name__:
                yield part


if __name__ == "__main__":
    main()
