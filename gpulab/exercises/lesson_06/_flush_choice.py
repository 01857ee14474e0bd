"""The judge for a cache flush and the reason for it: it runs the flush and judges the reason."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab.core.units import format_time
from gpulab.exercises.answers import MALFORMED, AnswerJudge, Choice, Diagnosis, raised, values_in

if TYPE_CHECKING:
    from gpulab.exercises.lesson_06._flush_trial import FlushTrial


# If the times of two states differ by less than this, the judge cannot say which one a reading is.
_TELLABLE = 1.05
# Counters on an H200 saw no difference from 1.5 times the L2 on (docs/cold-cache.md). The limit is
# a little lower, for buffers that are cut to whole rows.
_ENOUGH_L2 = 1.45
_STILL_HOT = (
    "So its weights were still in the cache. Read twice the size of the L2, from memory that the "
    "layer does not use. (torch.cuda.empty_cache() returns unused memory of PyTorch's allocator. "
    "It does nothing to the L2.)"
)
_DIRTY = (
    "It is cold, but it also waits for your flush: what the flush wrote goes to memory while the "
    "layer runs. Read instead, and read memory that your flush has not just written."
)
_WAITS = Diagnosis(
    "waits",
    "Your flush blocks the host until the GPU is done (synchronize, .item(), a copy to the host). "
    "Then the queue is empty when the layer is launched, and the reading contains the launch. "
    "Only put work into the queue.",
)


@dataclass(frozen=True, slots=True)
class FlushChoice(AnswerJudge):
    """A judge for a function that empties the cache and the letter of its reason."""

    reason: Choice
    how: str = (
        'Answer with {"flush": a function without arguments that puts your flush into the '
        'queue, "because": one letter of a, b, c, d}.'
    )

    def judge(self, answer: object) -> Diagnosis | str:
        """Run the function before a layer on the GPU in use; if it is right, judge the reason."""
        parts = values_in(answer, ("flush", "because"), lambda part: part)
        if isinstance(parts, Diagnosis):
            return parts
        if not callable(parts["flush"]):
            return MALFORMED
        from gpulab.exercises.lesson_06._flush_trial import run

        trial = run(parts["flush"])
        fault = explain_flush(trial)
        if fault is not None:
            return fault
        verdict = self.reason(parts["because"])
        if verdict:
            return f"{_numbers(trial)} {verdict.message}"
        message = f"Your flush is right; your reason is not. {verdict.message}"
        return Diagnosis(verdict.diagnosis_code, message)


def explain_flush(trial: "FlushTrial") -> Diagnosis | None:
    """Return the diagnosis of a wrong flush, by the layer's time and its bytes; else None."""
    if trial.error is not None:
        return raised(trial.error)
    if trial.waits:
        return _WAITS
    # On a GPU on which two states take the same time, the judge does not decide between them.
    is_telling = _TELLABLE * trial.hot_s < trial.clean_s
    if is_telling and trial.own_s < (trial.hot_s + trial.clean_s) / 2:
        return Diagnosis("still-hot", f"{_numbers(trial)} {_STILL_HOT}")
    is_telling = _TELLABLE * trial.clean_s < trial.dirty_s
    if is_telling and trial.own_s > (trial.clean_s + trial.dirty_s) / 2:
        return Diagnosis("dirty", f"{_numbers(trial)} {_DIRTY}")
    return _too_small(trial) if trial.touched_l2 < _ENOUGH_L2 else None


def _too_small(trial: "FlushTrial") -> Diagnosis:
    return Diagnosis(
        "too-small",
        f"Your flush touches only {trial.touched_l2:.1f} times the L2. The layer's time of "
        f"{format_time(trial.own_s)} looks cold here, but counters on an H200 still found part of "
        "the data in the cache after reading one L2, and nothing more from 1.5 on. Read twice the "
        "L2.",
    )


def _numbers(trial: "FlushTrial") -> str:
    own_s, hot_s, dirty_s = map(format_time, (trial.own_s, trial.hot_s, trial.dirty_s))
    return (
        f"The layer takes {own_s} after your flush, {hot_s} when it is hot, and {dirty_s} after a "
        "flush that writes."
    )
