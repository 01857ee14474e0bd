"""Run the tests of a room against one mutant after another, each in a fork of a warm process."""

import contextlib
import importlib
import importlib.machinery
import os
import resource
import signal
import sys
import time
import traceback
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutation.mutants import Mutant, mutated

_WARM = ("torch", "numpy", "pandas", "pytest", "hypothesis", "matplotlib.figure")
_MEMORY_LIMIT_BYTES = 16 << 30
_PASSED = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """How long the tests may take on one mutant, because some mutants never end."""

    cpu_s: float
    wall_s: float


def warm_up() -> None:
    """Import slow modules that are not the project's own, once for all forks."""
    os.environ["OMP_NUM_THREADS"] = "1"  # a fork of a process with threads may hang
    for name in _WARM:
        importlib.import_module(name)
    if any(name.partition(".")[0] == "gpulab" for name in sys.modules):
        raise RuntimeError("gpulab was imported before its mutants; import it in the forks alone")


def run(
    mutants: Sequence[Mutant | None], tests: Sequence[str], *, workers: int, limits: Limits
) -> Iterator[tuple[Mutant | None, bool, float]]:
    """Yield each mutant, whether its tests passed, and their CPU time.

    None stands for the unchanged code.
    """
    waiting = list(reversed(mutants))
    running: dict[int, tuple[Mutant | None, float]] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            mutant = waiting.pop()
            running[_fork(mutant, tests, limits)] = (mutant, time.monotonic() + limits.wall_s)
        for pid, (mutant, deadline_s) in list(running.items()):
            if time.monotonic() > deadline_s:
                _end(pid)
            done, status, usage = os.wait4(pid, os.WNOHANG)
            if done:
                _end(pid)  # processes that the tests started may still run
                del running[pid]
                passed = os.waitstatus_to_exitcode(status) == _PASSED
                yield mutant, passed, usage.ru_utime + usage.ru_stime
        time.sleep(0.01)


def _end(group: int) -> None:
    """Kill a fork and all processes that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _fork(mutant: Mutant | None, tests: Sequence[str], limits: Limits) -> int:
    """Start the tests in a fork with its own process group, and return its process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        # Both processes set the group, because nobody knows which of them runs first.
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)
        return pid
    status = 1
    try:
        os.setpgid(0, 0)
        seconds = int(limits.cpu_s) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        # Some mutants allocate without end; the limit ends the fork and not the machine.
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_LIMIT_BYTES,) * 2)
        if mutant is not None:  # without one the tests should pass, and say why if they do not
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        status = _tests_pass(mutant, tests)
    except BaseException:  # noqa: BLE001 # the fork ends here, whatever happened
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def _tests_pass(mutant: Mutant | None, tests: Sequence[str]) -> int:
    """Return the exit status of pytest with the mutant in place of its module."""
    import pytest

    if mutant is not None:
        _put_in_place(mutant)
    # One failing test is enough to notice a mutant. Caches, workers and random orders would make
    # two runs differ.
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # imported before the fork
    options += ["-m", "not slow and not gpu and not browser", "--hypothesis-seed=0"]
    return int(pytest.main([*options, *tests]))


def _put_in_place(mutant: Mutant) -> None:
    """Make every import of the mutant's file get the changed code."""
    path = mutant.path.resolve()
    code = compile(mutated(mutant), str(path), "exec")
    usual = importlib.machinery.SourceFileLoader.get_code

    def get_code(
        loader: importlib.machinery.SourceFileLoader, fullname: str
    ) -> types.CodeType | None:
        return code if Path(loader.path).resolve() == path else usual(loader, fullname)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]  # the point
    # Import it before pytest does: pytest's own loader would read the unchanged file.
    importlib.import_module(".".join(mutant.path.with_suffix("").parts).removesuffix(".__init__"))
