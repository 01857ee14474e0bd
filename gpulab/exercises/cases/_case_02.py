"""Case 02: a speed-up that comes from a warm cache, which the other program has just filled."""

from collections.abc import Callable
from functools import cache
from statistics import median
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
    fresh_gpu,
    like,
)
from gpulab.tracing.trials import Trial, WatchedWork, tried

# 256 MiB, as in the post: more than four times the L2 of an H200.
_FLUSH_BYTES = 2**28
_MIB = 2**20


def weights(size_mib: int) -> Any:  # noqa: ANN401  # a tensor; torch is not imported yet
    """Return a tensor of ``size_mib`` MiB on the GPU."""
    import torch

    return torch.ones(size_mib * _MIB // 4, device="cuda")


def _right(old: Work, new: Work, flush: str = "before") -> float:
    """Return old time over new time, in turns; the flush may be in the sample, or missing."""
    import torch

    scratch = torch.empty(_FLUSH_BYTES, dtype=torch.int8, device="cuda")
    sides: list[tuple[Work, list[tuple[Any, Any]]]] = [(old, []), (new, [])]
    for _ in range(3):
        for work, pairs in sides:
            if flush == "before":
                scratch.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]  # torch's gap
            start.record()
            if flush == "inside":
                scratch.zero_()
            work()
            end.record()
            pairs.append((start, end))
    torch.cuda.synchronize()
    old_ms, new_ms = (sum(s.elapsed_time(e) for s, e in pairs) for _, pairs in sides)
    return float(old_ms / new_ms)


def no_flush(old: Work, new: Work) -> float:
    """Time both with a warm cache."""
    old()
    new()
    return _right(old, new, "none")


class _Old(WatchedWork):
    """The old version, which a trial tells from the new one by its class."""


class _New(WatchedWork):
    """The new version."""


def _same_weights() -> tuple[Work, Work]:
    stored = weights(24)
    return _Old(stored.sum), _New(stored.sum)


def _half_of_the_weights() -> tuple[Work, Work]:
    stored = weights(24)
    return stored.sum, stored[: len(stored) // 2].sum


def _quarter_of_the_bytes() -> tuple[Work, Work]:
    return weights(96).sum, weights(24).sum


def _kernels_ns(trial: Trial, version: type[WatchedWork]) -> float:
    """Return how long the kernels of one version usually ran; 0 if none were seen.

    The earlier half of its calls is left out, because it may be a warm-up.
    """
    calls = [call for call in trial.calls if isinstance(call.work, version)]
    records = () if trial.records is None else trial.records.records
    times_ns = [
        sum(
            record.duration_ns
            for record in records
            if record.launch_start_ns and call.start_ns <= record.launch_start_ns < call.end_ns
        )
        for call in calls[len(calls) // 2 :]
    ]
    return median(times_ns) if times_ns else 0.0


@cache
def _border_ns() -> float:
    """Return the time between that of a cold and that of a warm call of the first pair."""
    times_ns = []
    for program in (_right, no_flush):
        with fresh_gpu():
            times_ns.append(_kernels_ns(tried(program, make=_same_weights), _Old))
    return sum(times_ns) / 2


def _warm(*versions: type[WatchedWork]) -> Callable[[MendedTrial], bool]:
    """Return a function that recognises by the kernels which versions found a warm cache."""

    def recognise(mended: MendedTrial) -> bool:
        times_ns = {each: _kernels_ns(mended.trials[0], each) for each in (_Old, _New)}
        warm = {each for each, time_ns in times_ns.items() if 0 < time_ns < _border_ns()}
        return warm == set(versions)

    return recognise


_WORKS: tuple[tuple[str, Callable[[], tuple[Work, Work]]], ...] = (
    ("the same work as old and as new", _same_weights),
    ("a new work that reads half of the old weights", _half_of_the_weights),
    ("a new work with weights of its own, a quarter in size", _quarter_of_the_bytes),
)

EXERCISES = (
    Exercise(
        "case-02.flaw",
        "The cache is emptied in every round. Why is the new version faster all the same?",
        Choice(
            right="c",
            why="The old version reads the weights from memory into the L2 cache. The new one "
            "starts right after it and finds them there. They are not timed in the same state.",
            wrong={
                "a": Diagnosis(
                    "size-is-fine",
                    "256 MiB is more than four times the L2 of an H200. Nothing of the weights "
                    "stays in it. But what does the old version do after the flush?",
                ),
                "b": Diagnosis(
                    "events-are-fine",
                    "An event in the queue is a mark: the GPU writes down when it passes it. One "
                    "mark can end one interval and begin the next.",
                ),
                "d": Diagnosis(
                    "same-code",
                    "In the experiment above both are the same function. It cannot be faster than "
                    "itself.",
                ),
            },
        ),
        hints=(
            "Which data does each of the two read, and where are these at that moment?",
            "Let the new one go first. What happens to the speed-up?",
        ),
        choices={
            "a": "the scratch tensor is too small to empty the cache",
            "b": "one event cannot end one interval and begin another",
            "c": "the old version has just brought the weights into the cache",
            "d": "the new version is better code",
        },
    ),
    Exercise(
        "case-02.mend",
        "Mend the program: write mended(old, new), which times both with a cold cache, as in a "
        "model whose other layers have filled the cache. It is tried on three pairs.",
        Mended(
            signature="mended(old, new)",
            returns="the speed-up: the old time divided by the new one",
            why="For all three pairs your speed-up is about that of two cold calls.",
            works=tuple(HiddenWork(name, make) for name, make in _WORKS),
            right=_right,
            mistakes=(
                (
                    _warm(_New),
                    Diagnosis(
                        "warm-new",
                        "The new version finds its weights in the cache, and the old one does "
                        "not. Empty the cache before each call of the two.",
                    ),
                ),
                (
                    _warm(_Old),
                    Diagnosis(
                        "warm-old",
                        "Now the old version finds its weights in the cache, and the new one "
                        "does not. Empty the cache before each call of the two.",
                    ),
                ),
                (
                    _warm(_Old, _New),
                    Diagnosis(
                        "both-warm",
                        "Both are timed with a warm cache now. That is fair, but not the "
                        "question: in the model other layers run in between. Time both cold.",
                    ),
                ),
                (
                    like(lambda old, new: _right(old, new, "inside")),
                    Diagnosis(
                        "flush-timed",
                        "You time the flush as well, and it takes longer than the work. Record "
                        "the start after the flush.",
                    ),
                ),
                (
                    like(lambda old, new: 1 / _right(old, new)),
                    Diagnosis(
                        "upside-down",
                        "A speed-up is old divided by new: it is above 1 if the new one is "
                        "faster.",
                    ),
                ),
            ),
            show=lambda value: f"{value:.2f} times",
            tolerance=0.1,  # a wait before each sample adds a launch to both times
        ),
        hints=(
            "Give each of the two its own flush, its own start and its own end.",
            "scratch.zero_(), record, old, record, scratch.zero_(), record, new, record.",
        ),
    ),
)

CLAIMS = (
    Claim(
        "case-02.not-faster",
        "The posted program finds a work faster than the same work",
        unit="times",
        holds=lambda ratio: ratio > 1.1,  # noqa: PLR2004  # more than noise
        because="the L2 cache may be too small for these weights here",
    ),
)
