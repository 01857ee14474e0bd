"""Case 02: a speed-up that comes from a warm cache, which the other program has just filled."""

from collections.abc import Callable
from typing import Any

from gpulab.device.work import Work
from gpulab.exercises._claims import Claim
from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Choice, Diagnosis, HiddenWork, Mended, like

# 256 MiB, as in the post: more than four times the L2 of an H200.
_FLUSH_BYTES = 2**28
_MIB = 2**20


def weights(size_mib: int) -> Any:  # noqa: ANN401  # a tensor; torch is not imported yet
    """Return a tensor of ``size_mib`` MiB on the GPU."""
    import torch

    return torch.ones(size_mib * _MIB // 4, device="cuda")


def _ratio(old: Work, new: Work, *, flushes: str = "both", n_rounds: int = 3) -> float:
    """Return old time over new time, timed in turns.

    ``flushes`` says before which of the two works the cache is emptied.
    """
    import torch

    scratch = torch.empty(_FLUSH_BYTES, dtype=torch.int8, device="cuda")
    pairs: dict[str, list[tuple[Any, Any]]] = {"old": [], "new": []}
    order = ("new", "old") if flushes == "new" else ("old", "new")
    for _ in range(n_rounds):
        for name in order:
            if flushes in ("both", name):
                scratch.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]  # torch's gap
            start.record()
            if flushes == "inside":
                scratch.zero_()
            (old if name == "old" else new)()
            end.record()
            pairs[name].append((start, end))
    torch.cuda.synchronize()
    old_ms, new_ms = (sum(s.elapsed_time(e) for s, e in pairs[name]) for name in ("old", "new"))
    return float(old_ms / new_ms)


def _right(old: Work, new: Work) -> float:
    return _ratio(old, new)


def as_posted(old: Work, new: Work) -> float:
    """Empty the cache only for the old work, as the published program does."""
    return _ratio(old, new, flushes="old")


def other_order(old: Work, new: Work) -> float:
    """Time the new work first, so that the old one finds a warm cache."""
    return _ratio(old, new, flushes="new")


def no_flush(old: Work, new: Work) -> float:
    """Time both with a warm cache."""
    old()
    new()
    return _ratio(old, new, flushes="none")


def flush_inside(old: Work, new: Work) -> float:
    """Time the flush as well."""
    return _ratio(old, new, flushes="inside")


def upside_down(old: Work, new: Work) -> float:
    """Divide the new time by the old one."""
    return 1 / _ratio(old, new)


def _same_weights() -> tuple[Work, Work]:
    stored = weights(24)
    return stored.sum, stored.sum


def _half_of_the_weights() -> tuple[Work, Work]:
    stored = weights(24)
    return stored.sum, stored[: len(stored) // 2].sum


def _quarter_of_the_bytes() -> tuple[Work, Work]:
    return weights(96).sum, weights(24).sum


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
            why="For the same work your speed-up is 1, and for the two other pairs it is that of "
            "two cold calls.",
            works=tuple(HiddenWork(name, make) for name, make in _WORKS),
            right=_right,
            mistakes=(
                (
                    like(as_posted),
                    Diagnosis(
                        "warm-new",
                        "The new version still runs right after the old one, on the same "
                        "weights. Empty the cache before each of the two.",
                    ),
                ),
                (
                    like(other_order),
                    Diagnosis(
                        "warm-old",
                        "You changed the order. Now the old version finds the weights in the "
                        "cache. Empty it before each of the two.",
                    ),
                ),
                (
                    like(no_flush),
                    Diagnosis(
                        "both-warm",
                        "Both are timed with a warm cache now. That is fair, but not the "
                        "question: in the model other layers run in between. Time both cold.",
                    ),
                ),
                (
                    like(flush_inside),
                    Diagnosis(
                        "flush-timed",
                        "You time the flush as well, and it takes longer than the work. Record "
                        "the start after the flush.",
                    ),
                ),
                (
                    like(upside_down),
                    Diagnosis(
                        "upside-down",
                        "A speed-up is old divided by new: it is above 1 if the new one is "
                        "faster.",
                    ),
                ),
            ),
            show=lambda value: f"{value:.2f} times",
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
