"""Try operators, each in a process of its own or all in one, and collect their outcomes."""

import json
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from tqdm import tqdm

import gpulab
from benchmarks.operators.database import operators
from benchmarks.operators.extremes import try_extremes
from benchmarks.operators.outcomes import Outcome
from benchmarks.operators.trial import try_operator

if TYPE_CHECKING:
    from torch.testing._internal.opinfo.core import OpInfo

Trial = tuple["OpInfo", str]
Attempt = Callable[["OpInfo", torch.dtype, int], list[Outcome]]
Running = tuple["OpInfo", str, BaseProcess]

_LIMIT_S = 300  # a process that takes longer is ended, and counts as died


def run(  # noqa: PLR0913 # all but two are keyword-only
    names: Sequence[str],
    dtypes: Sequence[str],
    *,
    n_samples: int,
    n_workers: int,
    out: Path | None,
    is_shown: bool,
    is_extreme: bool = False,
) -> list[Outcome]:
    """Try the operators with these names, or all, and return their outcomes.

    Parameters
    ----------
    names, dtypes
        Operators to try, and the types of their inputs.
    n_samples
        Number of samples of the database to try for each operator and type.
    n_workers
        Number of processes at once; 0 tries all operators in this process, which is faster.
    out
        File for the outcomes, written after each operator; None writes nothing.
    is_shown
        Whether to print differences when they are found.
    is_extreme
        Whether to try extreme and wrong values instead of the database's own.
    """
    todo = [(info, dtype) for info in operators(names) for dtype in dtypes]
    found: list[Outcome] = []
    # Many processes run at once; with more threads each they would disturb each other.
    torch.set_num_threads(1)
    with gpulab.virtual_gpu("H200"):  # its modules are imported here, once for all processes
        torch.manual_seed(0)
    attempt = try_extremes if is_extreme else try_operator
    if n_workers:
        tried = _in_processes(attempt, todo, n_samples, n_workers)
    else:
        tried = _here(attempt, todo, n_samples)
    with tqdm(tried, total=len(todo), unit=" calls") as bar:
        for outcomes in bar:
            found += outcomes
            for outcome in outcomes if is_shown else ():
                if outcome.kind in {"differs", "crashes", "died"}:
                    bar.write(f"{outcome.kind}: {outcome}")
            if out is not None:
                out.write_text(json.dumps([asdict(outcome) for outcome in found]), "utf-8")
    return found


def _here(attempt: Attempt, todo: Sequence[Trial], n_samples: int) -> Iterator[list[Outcome]]:
    """Yield the outcomes of each operator; a crash ends this process."""
    for info, dtype in todo:
        yield attempt(info, getattr(torch, dtype), n_samples)


def _in_processes(
    attempt: Attempt, todo: Sequence[Trial], n_samples: int, n_workers: int
) -> Iterator[list[Outcome]]:
    """Yield the outcomes of each operator, in the order in which the processes end."""
    waiting = list(todo)
    running: dict[Connection, Running] = {}
    while waiting or running:
        while waiting and len(running) < n_workers:
            running.update([_start(attempt, *waiting.pop(0), n_samples)])
        for ready in wait(list(running)):
            pipe = cast("Connection", ready)
            yield _collect(pipe, *running.pop(pipe))


def _start(
    attempt: Attempt, info: "OpInfo", dtype: str, n_samples: int
) -> tuple[Connection, Running]:
    context = multiprocessing.get_context("fork")  # importing the database takes seconds
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=_work, args=(theirs, attempt, info, dtype, n_samples), daemon=True
    )
    process.start()
    theirs.close()
    return ours, (info, dtype, process)


def _work(pipe: Connection, attempt: Attempt, info: "OpInfo", dtype: str, n_samples: int) -> None:
    signal.alarm(_LIMIT_S)
    pipe.send(attempt(info, getattr(torch, dtype), n_samples))
    pipe.close()


def _collect(pipe: Connection, info: "OpInfo", dtype: str, process: BaseProcess) -> list[Outcome]:
    try:
        outcomes: list[Outcome] = pipe.recv()
    except EOFError:
        process.join()
        note = f"the process ended with code {process.exitcode}"
        return [Outcome(full_name(info), dtype, "forward", "died", note=note)]
    process.join()
    return outcomes


def full_name(info: "OpInfo") -> str:
    """Return an operator's name with that of its variant."""
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else str(info.name)
