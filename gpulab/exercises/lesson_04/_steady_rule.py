"""The judge for a function that finds the steady state, by loops whose right answer is known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from gpulab.core.errors import shown
from gpulab.core.units import counted
from gpulab.exercises.answers import Diagnosis, FunctionJudge, read_number, run_on_cases
from gpulab.exercises.lesson_04.traces import WarmUpTrace, traces


@dataclass(frozen=True, slots=True)
class SteadyRule(FunctionJudge):
    """A judge for a function that finds the first steady iteration of a loop."""

    how: str = (
        "Answer with the function: write def first_steady(samples_s). samples_s is a list of "
        "seconds in the order taken. Return an index counted from 0, or len(samples_s) if the "
        "loop is not steady yet."
    )

    def judge_function(self, function: Callable[..., object]) -> Diagnosis | str:
        """Run the function on every loop, and explain the first wrong result."""
        # Copies, because the function may sort its list or remove samples from it.
        cases = [(list(trace.samples_s),) for trace in traces()]
        results, fault = run_on_cases(function, cases)
        if fault is not None:
            return fault
        indices = _read_indices(results)
        return indices if isinstance(indices, Diagnosis) else _explain(indices) or _FOUND


def _read_indices(answers: Sequence[object]) -> list[int] | Diagnosis:
    """Return the index for each loop, or the diagnosis of a result that is not an index."""
    indices = []
    for trace, value in zip(traces(), answers, strict=True):
        number = None if isinstance(value, str) else read_number(value)
        if number is None or not number.is_integer() or not 0 <= number <= len(trace.samples_s):
            return Diagnosis(
                "not-an-index",
                f"For {trace.name!r} your function returned {shown(value)}. Return the index of "
                f"the first steady iteration, a whole number from 0 to {len(trace.samples_s)}. It "
                "is how many calls to leave out, not how long they take.",
            )
        indices.append(int(number))
    return indices


def _explain(indices: Sequence[int]) -> Diagnosis | None:
    # One index for six different loops is a fixed count, whether it is right for some or not.
    if len(set(indices)) == 1 and indices[0] < len(traces()[0].samples_s):
        return Diagnosis(
            "guessed-count",
            f"Your function leaves out {counted(indices[0], 'call')} of every loop, whatever the "
            "samples are. That is too many for one loop and too few for another.",
        )
    wrong = [
        (trace, index)
        for trace, index in zip(traces(), indices, strict=True)
        if not trace.first <= index <= trace.last
    ]
    return _explain_one(*wrong[0]) if wrong else None


def _explain_one(trace: WarmUpTrace, index: int) -> Diagnosis:
    """Return why a rule leaves out too few or too many iterations of one loop."""
    n, level_s = len(trace.samples_s), median(trace.samples_s[len(trace.samples_s) // 2 :])
    if trace.first == n:
        return _MOVING
    if index == n:
        return Diagnosis(
            "never",
            f"In {trace.name!r} your rule finds no steady state, but there is one. Real samples "
            "scatter a little, and single ones are outliers. Allow for both.",
        )
    if index > trace.last:
        return _OUTLIER if trace.trap == "late outlier" else _late(trace, index)
    # The calls around the lucky one take three times the level, so this is the lucky one itself.
    if trace.trap == "lucky sample" and trace.samples_s[index] < 2 * level_s:
        return _LUCKY
    mean_s = fmean(trace.samples_s)
    # It starts at the first sample below the mean of all, right after one above it.
    if index > 0 and trace.samples_s[index - 1] >= mean_s > trace.samples_s[index]:
        return _MEAN
    return Diagnosis(
        "too-early",
        f"In {trace.name!r} your rule starts at {index}. A call there still takes "
        f"{max(trace.samples_s[index : trace.first]) / level_s:.3g} times as long as at the end.",
    )


def _late(trace: WarmUpTrace, index: int) -> Diagnosis:
    return Diagnosis(
        "too-late",
        f"In {trace.name!r} your rule starts at {index}, but the loop is steady from {trace.first}"
        " on. That is safe, and it wastes good samples. Is your tolerance too small?",
    )


_FOUND = (
    "Your rule finds the start in all six loops, and none in the one that is still moving. "
    "gpulab.stats.steady_from takes the level and the noise from the end of the loop, and starts "
    "at the first samples in a row at this level. gpulab.measure uses it."
)
_MOVING = Diagnosis(
    "still-moving",
    "In 'still moving' the times grow until the last call, but your rule finds a start. Compare "
    "two parts of the end. If they differ, return len(samples_s).",
)
_OUTLIER = Diagnosis(
    "outlier-as-warm-up",
    "In 'one late outlier' your rule waits until after the outlier. One slow call among fast ones "
    "is not warm-up. Allow a few of them: the median ignores them.",
)
_LUCKY = Diagnosis(
    "one-lucky-call",
    "In 'a lucky call' your rule starts at a single fast sample, and the next ones are slow "
    "again. Ask for several in a row.",
)
_MEAN = Diagnosis(
    "mean-as-level",
    "Your rule starts at the first sample below the mean. The slow first calls pull the mean up, "
    "so almost every sample is below it. Take the level from the end of the loop, as the median.",
)
