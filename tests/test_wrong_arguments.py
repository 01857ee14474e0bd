"""Every public function refuses every wrong argument before it does anything."""

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpulab
from gpulab.workloads.sweeps import Task, tasks_of
from tests.support import wrong_arguments
from tests.support.public_callables import callees
from tests.support.wrong_arguments import INSIDE, LATE, MEANING, NONSENSE, REFUSED, VAGUE, Call

# These choose or enter a virtual GPU themselves.
OUTSIDE = ("use", "virtual_gpu", "cluster.")


@pytest.mark.parametrize(
    "where", ["the front door", pytest.param("the rooms", marks=pytest.mark.slow)]
)
def test_what_means_nothing_is_refused(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong argument raises our error with name, value and cure, before any work runs."""
    monkeypatch.chdir(tmp_path)
    chosen = [name for name in callees() if ("." in name) == (where == "the rooms")]
    bad = [complaint for name in chosen for complaint in complaints(name)]
    assert not bad, "\n".join(bad)


def complaints(callee: str) -> Iterator[str]:
    """Make all wrong calls of a callable, and yield each whose refusal has a fault."""
    chooses = callee.startswith(OUTSIDE)
    with nullcontext() if chooses else gpulab.virtual_gpu("H200", first_use=False):
        for call in filter(wrong_arguments.is_wrong, wrong_arguments.calls(callee)):
            kind, text = wrong_arguments.outcome(call)
            if kind != REFUSED:
                yield f"{kind}: {call}: {text}"


def shut_down() -> Executor:
    """Return a pool that takes no more tasks."""
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    return executor


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: gpulab.explorers.crossover_explorer(np.array(["add", "matmul"])),
            "workload=array(['add', 'matmul'], dtype='<U6'); choose one of 'matmul'",
        ),
        (
            lambda: gpulab.explorers.crossover_explorer(pd.Series(["add"])),
            "workload=0    add",
        ),
        (
            lambda: gpulab.sweep([Task("add", 64)], executor=shut_down(), progress=False),
            "the executor is broken or was shut down (cannot schedule new futures after shutdown)",
        ),
        (
            lambda: gpulab.sweep(itertools.repeat(Task("add", 64))),
            "has more than 1,000,000 items, or no end; give fewer",
        ),
        (lambda: tasks_of(["add"], itertools.count(1)), "sizes=count("),
        (
            lambda: gpulab.roofline.predict("matmul", 2**62, gpu="H200"),
            "size=4,611,686,018,427,387,904; matmul of that size has more bytes than a GPU can",
        ),
    ],
)
def test_what_has_a_meaning_elsewhere_is_one_sentence(
    call: Callable[[], object], message: str
) -> None:
    """Arrays as a choice, closed pools, lists without end and huge sizes are refused by name."""
    with (
        gpulab.virtual_gpu("H200", first_use=False),
        pytest.raises(gpulab.core.errors.GpulabError) as error,
    ):
        call()
    assert message in str(error.value)


def test_the_rooms_that_lessons_use_are_public() -> None:
    """The public names include those that README, docs and lessons use."""
    public = set(callees())
    assert {"measure", "sweep", "virtual_gpu", "Measurement"} <= public
    assert {"plots.draw", "stats.modes", "live.load", "clocks.read"} <= public
    assert len(public) > 120


def work(*, n_samples: int = 1, flops: float = 1.0) -> None:
    """Make the mistakes that a public function may make, to test the judge."""
    if n_samples == 0:
        raise gpulab.core.errors.InvalidOptionError("it must be at least 1")
    if flops != flops:  # noqa: PLR0124  # nan
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("parameter", "hint", "value", "wanted"),
    [
        ("n_samples", int, 0, VAGUE),
        ("n_samples", int, True, NONSENSE),
        ("n_samples", int, 3, MEANING),
        ("flops", float, float("nan"), INSIDE),
    ],
)
def test_faults_are_told_apart(
    parameter: str, hint: type, value: object, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge tells a clear refusal from a vague one, from an inner error and from nonsense."""
    callee = wrong_arguments.callees()["measure"]
    monkeypatch.setitem(callees(), "work", type(callee)("work", work))
    assert wrong_arguments.outcome(Call("work", parameter, hint, value))[0] == wanted


def test_work_that_ran_before_a_refusal_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal after the work has run is reported as too late."""

    def late(work: wrong_arguments.Spy, *, n_samples: int = 1) -> None:
        work()
        raise gpulab.core.errors.InvalidOptionError(
            f"n_samples={n_samples}; it must be at least 1"
        )

    late.__annotations__["work"] = gpulab.measure.__annotations__["setup"].__args__[0]
    callee = wrong_arguments.callees()["measure"]
    monkeypatch.setitem(callees(), "late", type(callee)("late", late))
    assert wrong_arguments.outcome(Call("late", "n_samples", int, 0))[0] == LATE
