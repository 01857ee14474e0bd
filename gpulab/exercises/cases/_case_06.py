"""Case 06: a mean time for a step that is either fast or slow."""

from collections.abc import Callable
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from gpulab.core.units import format_time
from gpulab.device.work import Work
from gpulab.exercises._claims import Claim
from gpulab.exercises._exercise import Exercise
from gpulab.exercises._gpu_work import spinning
from gpulab.exercises.answers import Choice, Diagnosis, HiddenWork, Mended, Recognise, like

_FLOOR_S = 8e-6  # by so much a pair of events may read more than the step


def decoder(fast_ms: float = 0.2, slow_ms: float = 1.0, period: int = 8, n_slow: int = 1) -> Work:
    """Return the step of a decoder that reorganises its memory every few steps.

    ``n_slow`` of each ``period`` steps reorganise memory. The 30th step is an outlier.
    """
    n_steps = 0

    def step() -> None:
        nonlocal n_steps
        n_steps += 1
        length_ms = slow_ms if n_steps % period >= period - n_slow else fast_ms
        # Longer than a slow step, so that the maximum of the samples is not the slow mode.
        spinning(5 * slow_ms if n_steps == 30 else length_ms)()  # noqa: PLR2004  # once

    return step


def samples_s(step: Work, n_calls: int = 120) -> list[float]:
    """Return the seconds of each call, by a pair of events around each."""
    import torch

    pairs: list[tuple[Any, Any]] = []
    for _ in range(n_calls):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]  # torch's gap
        start.record()
        step()
        end.record()
        pairs.append((start, end))
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in pairs]


def _right(step: Work) -> tuple[float, float, float]:
    """Leave out the outlier, and split the sorted samples at the widest gap."""
    ordered = sorted(samples_s(step))[:-1]  # the outlier is the longest sample of all
    gaps = [later - earlier for earlier, later in pairwise(ordered)]
    cut = gaps.index(max(gaps)) + 1
    return median(ordered[:cut]), median(ordered[cut:]), (len(ordered) - cut) / len(ordered)


def _like(change: Callable[[float, float, float], object]) -> Recognise:
    """Recognise the right result with one change."""
    return like(lambda step: change(*_right(step)))


def _show(value: Any) -> str:  # noqa: ANN401  # what a learner returned
    """Write an answer with units: a time, or two times and a share."""
    if not isinstance(value, tuple):
        return format_time(value)
    fast_s, slow_s, share = value
    return f"({format_time(fast_s)}, {format_time(slow_s)}, {share:.3g})"


_WORKS: tuple[tuple[str, Callable[[], Work]], ...] = (
    ("a step that is slow once in five", lambda: decoder(0.3, 1.2, 5)),
    # Slow most of the time, so that the median of all samples is not the time of a fast step.
    ("a step that is slow three times in five", lambda: decoder(0.2, 0.5, 5, 3)),
)

EXERCISES = (
    Exercise(
        "case-06.flaw",
        "Which statement about the posted number is true?",
        Choice(
            right="c",
            why="Most steps take much less than the mean and some take much more. Two modes need "
            "two numbers, and how often each comes.",
            wrong={
                "a": Diagnosis(
                    "nobody-waits-a-mean",
                    "Look at the picture: how many samples lie near the mean?",
                ),
                "b": Diagnosis(
                    "more-of-the-same",
                    "More samples make the mean more precise. It is still the time of no step.",
                ),
                "d": Diagnosis(
                    "not-outliers",
                    "Outliers come rarely and anywhere. These come every few steps, and take the "
                    "same time each. A user waits for them, so you must not drop them.",
                ),
            },
        ),
        hints=(
            "Draw the samples: how many heaps are there?",
            "Count the samples that lie within a tenth of the mean.",
        ),
        choices={
            "a": "it is the time of a usual step",
            "b": "it would be the time of a usual step if there were more samples",
            "c": "it is the time of no step at all",
            "d": "it would be right without the slow steps, which are outliers",
        },
    ),
    Exercise(
        "case-06.mend",
        "Mend the program: write mended(step), which returns three numbers. It is tried on other "
        "steps. In each of them one single call is disturbed, and belongs to neither mode.",
        Mended(
            signature="mended(step)",
            returns="a tuple: seconds of a fast step, seconds of a slow step, share of slow steps",
            why="Two modes and a share: from these a reader can compute the mean, and also how "
            "often a user waits for long.",
            works=tuple(HiddenWork(name, lambda make=make: (make(),)) for name, make in _WORKS),  # type: ignore[misc]  # make is bound here
            right=_right,
            mistakes=(
                (
                    like(lambda step: fmean(samples_s(step))),
                    Diagnosis(
                        "mean",
                        "That is still the mean of both modes. Return three numbers: fast, slow "
                        "and the share of the slow ones.",
                    ),
                ),
                (
                    lambda trial: not any(isinstance(value, tuple) for value in trial.values),
                    Diagnosis(
                        "one-number",
                        "One number cannot describe two modes. Return three: fast, slow and the "
                        "share of the slow ones.",
                    ),
                ),
                (
                    _like(lambda fast_s, slow_s, share: (fast_s, slow_s, 100 * share)),
                    Diagnosis("percent", "The share is a number from 0 to 1, not percent."),
                ),
                (
                    _like(lambda fast_s, slow_s, share: (fast_s, slow_s, 1 - share)),
                    Diagnosis("share-of-fast", "That is the share of the fast steps."),
                ),
                (
                    _like(lambda fast_s, slow_s, share: (1e3 * fast_s, 1e3 * slow_s, share)),
                    Diagnosis("milliseconds", "elapsed_time returns milliseconds. Divide by 1e3."),
                ),
                (
                    _like(lambda fast_s, slow_s, share: (slow_s, fast_s, share)),
                    Diagnosis("swapped", "You return the slow step first: fast, slow, share."),
                ),
                (
                    lambda trial: trial.part_is_right(0) and not trial.part_is_right(1),
                    Diagnosis(
                        "outlier-as-mode",
                        "The fast mode is right, the slow one is not. One single call was "
                        "disturbed: the largest sample is no mode. Take the middle of the heap.",
                    ),
                ),
                (
                    lambda trial: not trial.part_is_right(0),
                    Diagnosis(
                        "median-as-fast",
                        "The fast mode is wrong for at least one of the steps. One of them is "
                        "slow most of the time: there the median lies among the slow ones. Split "
                        "the samples first.",
                    ),
                ),
            ),
            show=_show,
            tolerance=0.1,  # a share of few steps is a rough number
            floor=_FLOOR_S,
        ),
        hints=(
            "Sort the samples. Where is the widest gap, once the largest sample is left out?",
            "Below the gap: fast. Above it: slow. Take the median of each part.",
        ),
    ),
)

CLAIMS = (
    Claim(
        "case-06.no-such-step",
        "No sample lies within 10 % of the posted mean",
        unit="samples",
        holds=lambda n_near: n_near == 0,
        because="the two modes may lie closer together here",
    ),
)
