"""Run learners' functions in a process that imports torch once and forks for each answer.

    python -m gpulab.course._answer_process

It never gets a key. It reads one request per line and writes one line for each. The fork runs the
answer under limits and writes its report to a file, which this process reads when the fork has
ended.
"""

import builtins
import gc
import json
import math
import os
import signal
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from gpulab.course import _trials
from gpulab.course._confine import AnswerLimits
from gpulab.course._seeded_random import SeededDraw

_NO_FORK = "Windows has no fork; grade on Linux or macOS"
_REPORT_BYTES = 2**18  # far more than a trial reports, so only a forged report is longer
_POLL_S = 0.02  # how long a fork may have ended before this process notices


def main() -> None:
    """Serve requests until the standard input ends."""
    # Requests and replies move to other numbers before anything is imported or run, so that
    # neither a print nor a read of an answer can reach them.
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    null_device = os.open(os.devnull, os.O_RDWR)
    os.dup2(null_device, 0)
    os.dup2(null_device, 1)
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    _warm_up()
    for line in requests:
        replies.write(json.dumps(_served(json.loads(line))) + "\n")
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
    limits = AnswerLimits(**request.pop("limits"))
    with tempfile.TemporaryFile() as report, tempfile.TemporaryFile() as output:
        child = os.fork()
        if not child:
            _run_and_end(request, limits, report, output)
        code = _ended(child, time.monotonic() + limits.wall_s)
        is_too_much = _size(output) > limits.output_bytes or _size(report) > _REPORT_BYTES
        report.seek(0)
        lines = report.read(_REPORT_BYTES).decode(errors="replace").splitlines()
    stopped = "output" if is_too_much else "time" if code is None else ""
    return {"lines": lines, "stopped": stopped, "code": code}


def _ended(child: int, deadline_s: float) -> int | None:
    """Wait for a fork and return its exit code; None if it was ended at the deadline."""
    if sys.platform == "win32":
        raise OSError(_NO_FORK)
    ended, status = 0, 0
    while not ended and time.monotonic() < deadline_s:
        time.sleep(_POLL_S)
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # processes that the answer started
    return os.waitstatus_to_exitcode(status) if ended else None


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def _run_and_end(
    request: dict[str, Any], limits: AnswerLimits, report: IO[bytes], output: IO[bytes]
) -> None:
    """Run one answer in this process, which was just forked, and end it; this never returns."""
    if sys.platform == "win32":
        raise OSError(_NO_FORK)
    try:
        # A group of its own, which ends together and which no signal leaves.
        os.setsid()
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
        os.dup2(report.fileno(), 3)
        os.closerange(4, 1024)  # the requests, the replies, and whatever else was inherited
        _run(request, limits)
    finally:
        os._exit(0)


def _run(request: dict[str, Any], limits: AnswerLimits) -> None:
    """Limit this process, define the learner's function, run its trial, and report."""
    # Neither the mark, without which a line is not ours, nor the seed can be reached by a name.
    mark, draw = request.pop("mark"), SeededDraw(*request.pop("draw"))

    def say(**line: object) -> None:
        os.write(3, json.dumps(line | {"mark": mark}).encode() + b"\n")

    def guarded(function: Callable[..., object]) -> Callable[..., object]:
        """Return a function whose calls, and those of functions that it returns, are watched."""

        def call(*arguments: object) -> object:
            with _unpatched(say):
                result = function(*arguments)
            return guarded(result) if callable(result) else result

        return call

    names: dict[str, Any] = {"__name__": "answer"}
    code = compile(request["source"], "<answer>", "exec")
    _limit_resources(limits)
    try:
        with _unpatched(say):
            exec(code, names)  # noqa: S102  # running it is what this process is for
        function = names.get(request["function"])
        if callable(function):
            say(facts=_trials.TRIALS[request["trial"]](guarded(function), draw))
        else:
            say(missing=request["function"])
    except MemoryError:
        say(memory=True)
    except BaseException as error:  # noqa: BLE001  # an answer may raise anything
        say(error=f"{type(error).__name__}: {error}")


def _limit_resources(limits: AnswerLimits) -> None:
    """Limit this process in processor time, memory and writing to files, until it ends."""
    if sys.platform == "win32":
        raise OSError(_NO_FORK)
    import resource

    # SIGXCPU comes at the first number. A second later SIGKILL ends a process that ignored it.
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The output and the report are files. A longer one raises OSError, as the signal is ignored.
    longest = limits.output_bytes + _REPORT_BYTES
    resource.setrlimit(resource.RLIMIT_FSIZE, (longest, longest))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with suppress(OSError, ValueError):  # macOS refuses
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        space = pages * os.sysconf("SC_PAGE_SIZE") + limits.memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (space, space))


@contextmanager
def _unpatched(say: Callable[..., None]) -> Iterator[None]:
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
