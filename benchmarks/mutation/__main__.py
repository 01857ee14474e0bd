"""Change code in one place at a time, and count the changes that its tests do not notice.

    python -m benchmarks.mutation gpulab/stats.py --tests tests/test_stats.py --workers 16
    python -m benchmarks.mutation gpulab/virtual/simulator --tests tests/virtual --sample 60

Each mutant changes one operator, number, condition or statement. It survives if all fast tests
that you name still pass; name those first that fail soonest. Each survivor is printed: some have
no effect that anybody can see, and the others need a test.

There are libraries for this, but cosmic-ray starts a new Python for each change, which imports
torch each time, and mutmut works on a copy of the project with switches in place of functions.
Here a process that has imported torch forks for each change, and uses the project as it is.
"""

import contextlib
import importlib
import importlib.machinery
import os
import random
import resource
import signal
import sys
import time
import traceback
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import ROOT
from benchmarks.mutation.mutants import Mutant, mutants_of, mutated

_WARM = ("torch", "numpy", "pandas", "pytest", "hypothesis", "matplotlib.figure")
_MEMORY_LIMIT_BYTES = 16 << 30


class Limits(NamedTuple):
    """How long the tests may take on one mutant, because some mutants never end."""

    cpu_s: float
    wall_s: float


# For the run without a mutant: no tests take longer than this.
_FIRST_LIMITS = Limits(cpu_s=600, wall_s=3600)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each survivor when it is found, then their number."""
    made = parser_of("benchmarks.mutation", __doc__)
    made.add_argument("code", nargs="+", type=Path, help="files and folders to change")
    made.add_argument("--tests", nargs="+", required=True, help="files and folders of tests")
    made.add_argument("--workers", type=int, default=1, help="number of forks at a time")
    made.add_argument("--sample", type=int, help="number of random mutants (default: all)")
    made.add_argument("--seed", type=int, default=0, help="seed of the sample")
    options = made.parse_args(arguments)
    warm_up()
    os.chdir(ROOT)
    files = (file for path in options.code for file in sorted(path.rglob("*.py")) or [path])
    mutants = [mutant for file in files for mutant in mutants_of(file)]
    if options.sample is not None and options.sample < len(mutants):
        mutants = random.Random(options.seed).sample(mutants, options.sample)  # noqa: S311 # no secret
    ((_, passed, cpu_s),) = run([None], options.tests, workers=1, limits=_FIRST_LIMITS)
    if not passed:
        tests = " ".join(options.tests)
        raise SystemExit(f"the tests fail without any mutant; run: python -m pytest {tests}")
    # Generous, because a mutant that is only slower must not count as noticed.
    limits = Limits(cpu_s=10 + 3 * cpu_s, wall_s=60 + 20 * cpu_s * max(options.workers, 2))
    print(f"{len(mutants)} mutants; the tests take {cpu_s:.1f} s of CPU time", flush=True)
    n_survivors = 0
    for mutant, survived, _ in run(mutants, options.tests, workers=options.workers, limits=limits):
        if survived:
            n_survivors += 1
            print(mutant, flush=True)
    print(f"{n_survivors} of {len(mutants)} survived")


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
                passed = os.waitstatus_to_exitcode(status) == 0
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


if __name__ == "__main__":
    main()
