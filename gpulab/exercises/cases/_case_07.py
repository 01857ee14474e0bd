"""Case 07: a comparison in which A always goes first, on a cool GPU."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

from gpulab.device.work import Work
from gpulab.exercises._claims import Claim
from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import (
    Choice,
    Diagnosis,
    HiddenWork,
    Mended,
    MendedTrial,
    like,
    read_number,
)

_N_CALLS = 40


def rival_matmuls(n_rows: int = 8192) -> tuple[Work, Work]:
    """Return two half-precision matmuls; the second has other numbers and ``n_rows`` rows."""
    import torch

    a, b = torch.randn(2, 8192, 8192, device="cuda", dtype=torch.float16)
    c = torch.randn(n_rows, 8192, device="cuda", dtype=torch.float16)
    return (lambda: a @ b), (lambda: c @ b)


def _ratio(order: list[Work], a: Work, b: Work) -> float:
    """Return the time of b over that of a, which run in the given order after one call each."""
    import torch

    a(), b()  # otherwise the first call loads the library
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(len(order) + 1)]  # type: ignore[no-untyped-call]  # torch's gap
    torch.cuda.synchronize()
    marks[0].record()
    for work, mark in zip(order, marks[1:], strict=True):
        work()
        mark.record()
    torch.cuda.synchronize()
    times_ms = [start.elapsed_time(end) for start, end in pairwise(marks)]
    timed = list(zip(times_ms, order, strict=True))
    a_ms, b_ms = (sum(ms for ms, work in timed if work is each) for each in (a, b))
    return float(b_ms / a_ms)


def _right(a: Work, b: Work) -> float:
    return _ratio([a, b] * _N_CALLS, a, b)


def _upside_down(a: Work, b: Work) -> float:
    return 1 / _right(a, b)


_PAIRS: tuple[tuple[str, Callable[[], tuple[Any, ...]]], ...] = (
    ("two works that are the same", rival_matmuls),
    ("a B with an eighth less to do", partial(rival_matmuls, 7168)),
)


def _are_differences(trial: MendedTrial) -> bool:
    pairs = zip(map(read_number, trial.values), trial.expected, strict=True)
    return all(
        value is not None and trial.mended.agree(1 + value, wanted) for value, wanted in pairs
    )


EXERCISES = (
    Exercise(
        "case-07.flaw",
        "Both works are the same. Why does B take longer?",
        Choice(
            right="b",
            why="A runs on a cool GPU at its full clock. By the time B begins, the power limit "
            "has lowered the clock. The order decides, not the code.",
            wrong={
                "a": Diagnosis(
                    "both-warm",
                    "Both were called once before the clock starts, and the slow first call lasts "
                    "for one call. Here B is slower for all of its calls.",
                ),
                "c": Diagnosis(
                    "cache",
                    "Three matrices of 128 MiB do not fit into the L2 cache, in neither order.",
                ),
                "d": Diagnosis(
                    "not-noise",
                    "Run it again: the same one loses, by the same amount. Noise would change "
                    "sides.",
                ),
            },
        ),
        hints=(
            "Swap the two. Which one loses now?",
            "Look at the clock before and after: gpulab.clocks.read().sm_mhz.",
        ),
        choices={
            "a": "the first calls of B load a library",
            "b": "the GPU lowers its clock while A runs",
            "c": "A leaves the cache full of its own data",
            "d": "this is noise",
        },
    ),
    Exercise(
        "case-07.mend",
        "Mend the program: write mended(a, b). It is tried on a pair that is equal and on one "
        "that is not, on a GPU that is cool and new.",
        Mended(
            signature="mended(a, b)",
            returns="how many times as long b takes as a",
            why="Your ratio is 1 for the pair that is equal, and that of the works for the other "
            "one.",
            works=tuple(HiddenWork(name, make) for name, make in _PAIRS),
            right=_right,
            mistakes=(
                (
                    like(lambda a, b: _ratio([a] * _N_CALLS + [b] * _N_CALLS, a, b)),
                    Diagnosis(
                        "a-first",
                        "All calls of A still come before those of B. Let them take turns: A, B, "
                        "A, B.",
                    ),
                ),
                (
                    like(lambda a, b: _ratio([b] * _N_CALLS + [a] * _N_CALLS, a, b)),
                    Diagnosis(
                        "b-first",
                        "Now all calls of B come first, and B wins. Let them take turns instead.",
                    ),
                ),
                (
                    lambda trial: trial.n_right == 1 and trial.is_like(_upside_down),
                    Diagnosis("upside-down", "Divide the time of b by that of a."),
                ),
                (
                    _are_differences,
                    Diagnosis("difference", "That is the ratio less 1. Return the ratio itself."),
                ),
                (
                    lambda trial: all(
                        isinstance(value, float) and 0 < value < 0.5  # noqa: PLR2004  # far too small
                        for value in trial.values
                    ),
                    Diagnosis(
                        "no-warm-up",
                        "The first call of A loads the library, and you time that. Call both once "
                        "before you start.",
                    ),
                ),
            ),
            show=lambda value: f"{value:.3f} times",
            # The order changes the ratio by 8 to 9 %, which the usual 10 % would accept.
            tolerance=0.025,
            first_use=True,
        ),
        hints=(
            "Put one call of each into the same loop, with an event between them.",
            "marks = [Event, ...]: record one after each call, and add up every second interval.",
        ),
    ),
)

CLAIMS = (
    Claim(
        "case-07.the-second-loses",
        "The posted program finds a work slower than the same work",
        unit="times",
        holds=lambda ratio: ratio > 1.02,  # noqa: PLR2004  # more than noise
        because="this GPU may have power to spare and keep its clock",
        differs="A GPU that has power to spare keeps its clock, and then the order is of no "
        "matter. The virtual GPU lowers its clock for these matmuls.",
    ),
)
