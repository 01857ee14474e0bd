"""Run learners' functions in a process that imports torch once and forks for each answer.

    python -m gpulab.course._answer_process

It never gets a key. It reads one request per line and writes one line for each. The fork runs the
answer under the limits of ``_confine``. This process watches the fork's time and output, and ends
it together with every process that it started.
"""

import builtins
import ctypes
import gc
import json
import os
import selectors
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

import psutil  # type: ignore[import-untyped]  # psutil ships no types

from gpulab.course import _confine, _trials
from gpulab.course._confine import AnswerLimits
from gpulab.course._seeded_random import SeededDraw
from gpulab.tracing import trials

_NO_FORK = "Windows has no fork; grade on Linux or macOS"

_PR_SET_CHILD_SUBREAPER = 36  # from <linux/prctl.h>
_PIECE = 2**16  # bytes per read: a pipe of Linux holds as many
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
    import statistics  # noqa: F401  # answers may import it

    import torch

    torch.set_num_threads(1)  # a fork has one thread; more would be missing there
    _trials.warm_up()
    gc.collect()
    gc.freeze()  # so that forks share the memory


def _served(request: dict[str, Any]) -> dict[str, object]:
    if sys.platform == "win32":
        raise OSError(_NO_FORK)
    limits = AnswerLimits(**request["limits"])
    report, report_end = os.pipe()
    output, output_end = os.pipe()
    with tempfile.TemporaryDirectory(prefix="gpulab-") as folder:
        child = os.fork()
        if not child:
            _run_and_end(request, limits, folder, report_end, output_end)
        os.close(report_end)
        os.close(output_end)
        return _watched(child, limits, report, output)


def _watched(child: int, limits: AnswerLimits, report: int, output: int) -> dict[str, object]:
    """Read the report and the output of a child until it ends or breaks a limit."""
    read = {report: b"", output: b""}
    stopped, code = "", None
    deadline = time.monotonic() + limits.wall_s
    with selectors.DefaultSelector() as pipes:
        for pipe in read:
            pipes.register(pipe, selectors.EVENT_READ)
        while pipes.get_map() and not stopped:
            _read_on(pipes, read)
            if len(read[output]) > limits.output_bytes or len(read[report]) > _REPORT_BYTES:
                stopped = "output"
            elif time.monotonic() > deadline:
                stopped = "time"
            if code is None:
                code = _ended(child)
            else:  # processes that the answer started still hold the pipes open
                _end_all()
    _end_all()
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
    request: dict[str, Any], limits: AnswerLimits, folder: str, report_end: int, output_end: int
) -> None:
    """Run one answer in this process, which was just forked, and end it; this never returns."""
    if sys.platform == "win32":
        raise OSError(_NO_FORK)
    try:
        os.setsid()  # a session of its own: a signal to the process group misses the checker
        os.chdir(folder)
        for stream in (1, 2):
            os.dup2(output_end, stream)
        report = os.dup2(report_end, 3)
        os.closerange(4, 1024)  # the requests, the replies, and whatever else was inherited
        _run(request, limits, os.fdopen(report, "w", buffering=1))
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
        os._exit(0)


def _run(request: dict[str, Any], limits: AnswerLimits, report: TextIO) -> None:
    """Confine this process, define the learner's function, run its trial, and report."""
    mark = request.pop("mark")  # without it a line is not ours

    def say(**line: object) -> None:
        report.write(json.dumps(line | {"mark": mark}) + "\n")

    import torch

    here = Path(__file__).parent
    libraries = (sys.prefix, sys.base_prefix, str(Path(torch.__file__).parents[1]))
    readable = _confine.readable_paths(here.parent, libraries)
    names: dict[str, Any] = {"__name__": "answer"}
    code = compile(request["source"], "<answer>", "exec")
    # The audit hook comes last: it would refuse what the calls before it do.
    _confine.limit_resources(limits)
    _confine.cut_off(readable)
    if sys.platform != "win32":
        # a write to a file then raises OSError, where the signal would end the process
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    trial, draw = _trials.TRIALS[request["trial"]], SeededDraw(*request["draw"])
    _confine.refuse_misuse(readable, here, lambda tried: say(misuse=tried))
    try:
        with _unpatched(say):
            exec(code, names)  # noqa: S102  # running it is what this process is for
        function = names.get(request["function"])
        if not callable(function):
            say(missing=request["function"])
            return
        say(facts=trial(function, draw, lambda: _unpatched(say)))
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
    import torch

    owners = {
        "time": time,
        "builtins": builtins,
        "torch": torch,
        "torch.cuda": torch.cuda,
        "torch.cuda.Event": torch.cuda.Event,
        "torch.cuda.Stream": torch.cuda.Stream,
        "the checker": _trials,
        "gpulab.tracing.trials": trials,
        "json": json,
        "os": os,
    }
    return {
        f"{owner}.{name}": part
        for owner, where in owners.items()
        for name, part in vars(where).items()
        if callable(part)
    }


if __name__ == "__main__":
    main()
