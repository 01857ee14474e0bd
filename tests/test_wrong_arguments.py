"""Every public function refuses every wrong argument before it does anything."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

import gpulab
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
    """By an error of ours with the argument, its value and what it may be; no work has run."""
    monkeypatch.chdir(tmp_path)
    chosen = [name for name in callees() if ("." in name) == (where == "the rooms")]
    bad = [complaint for name in chosen for complaint in complaints(name)]
    assert not bad, "\n".join(bad)


def complaints(callee: str) -> Iterator[str]:
    """Make the calls of a callable that mean nothing, and yield what is wrong with a refusal."""
    chooses = callee.startswith(OUTSIDE)
    with nullcontext() if chooses else gpulab.virtual_gpu("H200", first_use=False):
        for call in filter(wrong_arguments.is_wrong, wrong_arguments.calls(callee)):
            kind, text = wrong_arguments.outcome(call)
            if kind != REFUSED:
                yield f"{kind}: {call}: {text}"


def test_the_rooms_that_lessons_use_are_public() -> None:
    """The names are read from the pages, so that a new lesson is covered without a list."""
    found = set(callees())
    assert {"measure", "sweep", "virtual_gpu", "Measurement"} <= found
    assert {"plots.draw", "stats.modes", "live.load", "clocks.read"} <= found
    assert len(found) > 120


def work(*, n_samples: int = 1, flops: float = 1.0) -> None:
    """Do what a public function may do wrong, to see that it is found out."""
    if n_samples == 0:
        raise gpulab.errors.InvalidOptionError("it must be at least 1")
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
    """The judge itself is judged: it does not take every error for a good one."""
    callee = wrong_arguments.callees()["measure"]
    monkeypatch.setitem(callees(), "work", type(callee)("work", work))
    assert wrong_arguments.outcome(Call("work", parameter, hint, value))[0] == wanted


def test_work_that_ran_before_a_refusal_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal after a measurement has begun is too late."""

    def late(work: wrong_arguments.Spy, *, n_samples: int = 1) -> None:
        work()
        raise gpulab.errors.InvalidOptionError(f"n_samples={n_samples}; it must be at least 1")

    late.__annotations__["work"] = gpulab.measure.__annotations__["setup"].__args__[0]
    callee = wrong_arguments.callees()["measure"]
    monkeypatch.setitem(callees(), "late", type(callee)("late", late))
    assert wrong_arguments.outcome(Call("late", "n_samples", int, 0))[0] == LATE
