"""An answer that is a flush and its defence: the flush is run, the reason is judged."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpulab.exercises._exercise import Verdict, is_open
from gpulab.exercises.answers import Choice, Diagnosis, malformed, raised, unanswered
from gpulab.units import format_time

if TYPE_CHECKING:
    from gpulab.exercises.lesson_06._flush_trial import FlushTrial


# By how much two states must differ before a reading can be told to be one of them.
_TELLABLE = 1.05
_STILL_HOT = (
    "So its weights were still in the cache. Touch more than the L2 holds, twice its size to be "
    "sure, and memory that the layer does not use. (torch.cuda.empty_cache() gives back spare "
    "memory of PyTorch; the L2 is another cache.)"
)
_DIRTY = (
    "It is cold, and it waits for something that is not its own: your flush writes, and what it "
    "wrote has to go to memory while the layer runs. Read instead, as the last thing you do."
)
_HALF = Diagnosis("incomplete", "Both are needed: the flush, and the letter of its defence.")
_WAITS = Diagnosis(
    "waits",
    "Your flush keeps the host until the GPU is done (synchronize, .item(), a copy to the host). "
    "Then the queue is empty when the layer comes, and its launch is in the reading. Only put "
    "work into the queue.",
)


@dataclass(frozen=True, slots=True)
class FlushChoice:
    """A function that empties the cache, and the letter of the reason for it.

    Attributes
    ----------
    reason
        Judges the letter.
    """

    reason: Choice

    @property
    def how(self) -> str:
        """How to write the answer."""
        return (
            'Answer with {"flush": a function without arguments that puts your flush into the '
            'queue, "because": one letter of a, b, c, d}.'
        )

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Run the function ahead of a layer on the GPU in use; then judge the reason."""
        if is_open(answer):
            return unanswered(self.how)
        if not isinstance(answer, Mapping) or not answer.keys() <= {"flush", "because"}:
            return malformed(answer, self.how)
        flush, letter = answer.get("flush"), answer.get("because")
        if is_open(flush) or is_open(letter):
            return unanswered(self.how) if is_open(flush) and is_open(letter) else _HALF.verdict()
        if not callable(flush):
            return malformed(answer, self.how)
        from gpulab.exercises.lesson_06._flush_trial import run

        trial = run(flush)
        fault = explain_flush(trial)
        if fault is not None:
            return fault.verdict()
        verdict = self.reason(letter)
        said = _numbers(trial) if verdict else "The flush is cold and clean, its defence fails."
        return replace(verdict, message=f"{said} {verdict.message}")


def explain_flush(trial: "FlushTrial") -> Diagnosis | None:
    """Say what a flush left in the cache, from the time of the layer behind it."""
    if trial.error is not None:
        return raised(trial.error)
    if trial.waits:
        return _WAITS
    # Where the three states cannot be told apart, they cannot be judged apart either.
    seen = _TELLABLE * trial.hot_s < trial.clean_s
    if seen and trial.own_s < (trial.hot_s + trial.clean_s) / 2:
        return Diagnosis("still-hot", f"{_numbers(trial)} {_STILL_HOT}")
    seen = _TELLABLE * trial.clean_s < trial.dirty_s
    if seen and trial.own_s > (trial.clean_s + trial.dirty_s) / 2:
        return Diagnosis("dirty", f"{_numbers(trial)} {_DIRTY}")
    return None


def _numbers(trial: "FlushTrial") -> str:
    own_s, hot_s, dirty_s = map(format_time, (trial.own_s, trial.hot_s, trial.dirty_s))
    return (
        f"Behind your flush the layer takes {own_s}; hot it takes {hot_s}, behind a flush that "
        f"writes {dirty_s}."
    )
