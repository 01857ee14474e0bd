"""Change right answers in one place, and compare each verdict with an independent reference.

    CUDA_VISIBLE_DEVICES= python -m benchmarks.judges                  20 changes for each exercise
    CUDA_VISIBLE_DEVICES= python -m benchmarks.judges 13. 07.graph-it  only these exercises
    CUDA_VISIBLE_DEVICES= python -m benchmarks.judges --most 50        50 changes for each

The right functions are those of the tests; right data are found by the reference itself. A change
drops a statement or swaps two, puts a pause in place of a wait, runs a loop once, or changes a
number, an operator, a word or an entry. The reference knows nothing of the judges: order is right
if ``gpulab.hazards()`` finds no race, times are those of the simulator's records or known
beforehand, values are computed on the CPU, and listings are run. A number near the border of what
counts as right is grey: there either verdict is right. The table counts the changes, the grey ones
and the false verdicts; each false verdict is printed with its change.
"""

import random
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence

import gpulab
from benchmarks.common.command_line import parser_of
from benchmarks.common.time_limit import at_most
from benchmarks.judges.changes import Changed, changed_answers, changed_data
from benchmarks.judges.data_references import TRUTHS, agrees
from benchmarks.judges.references import GREY_NUMBERS, REFERENCES
from benchmarks.judges.timing_references import TIMING_REFERENCES
from gpulab import exercises
from gpulab.exercises._api import StoppedCheck, exercise, exercise_ids

_MOST_S = 10.0  # a changed loop may never end


class TooLong(KeyboardInterrupt):
    """A changed answer did not end. As Ctrl-C, which a judge does not take for its error."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge changed answers, and print the false verdicts and their number."""
    parser = parser_of("benchmarks.judges", __doc__)
    parser.add_argument("exercises", nargs="*", default=[""], help="how their ids begin")
    parser.add_argument("--most", type=int, default=20, help="changes of each (default: 20)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    total: Counter[str] = Counter()
    for exercise_id in exercise_ids():
        if not exercise_id.startswith(tuple(options.exercises)):
            continue
        if exercise_id not in {*TRUTHS, *TIMING_REFERENCES, *REFERENCES}:
            print(f"{exercise_id:24} asks for words, and no program decides which are right")
            continue
        changed, reference = changes_of(exercise_id)
        chosen = random.Random(options.seed)  # noqa: S311  # no secret
        sample = chosen.sample(changed, min(options.most, len(changed)))
        counts = Counter(outcome_of(each, reference) for each in sample)
        total += counts
        print(_row(exercise_id, counts), flush=True)
    print(_row("all", total))


def _row(name: str, counts: Counter[str]) -> str:
    n_tried, n_grey, n_false = counts.total(), counts["grey"], counts["false"]
    return f"{name:24} tried {n_tried:5}   grey {n_grey:4}   false verdicts {n_false:4}"


def changes_of(exercise_id: str) -> tuple[list[Changed], Callable[..., bool]]:
    """Return the changes of an exercise's right answers, and its reference."""
    if exercise_id in TRUTHS:
        truth, fields = TRUTHS[exercise_id](), exercise(exercise_id).judge.fields
        if fields is None:
            message = f"{exercise_id} asks for a function, and its reference returns data"
            raise TypeError(message)
        changed = list(changed_data(exercise_id, fields, truth))
        return changed, lambda answer: agrees(exercise_id, answer, truth)
    return list(changed_answers(exercise_id)), (TIMING_REFERENCES | REFERENCES)[exercise_id]


def outcome_of(changed: Changed, reference: Callable[..., bool]) -> str:
    """Return whether the verdict on a changed answer is "true" or "false", or may be either."""
    GREY_NUMBERS.clear()
    is_right = within_limit(lambda: reference(changed.answer))
    if is_right and GREY_NUMBERS:
        return "grey"
    with gpulab.virtual_gpu("H200", first_use=False):
        verdict = within_limit(lambda: exercises.check(changed.exercise_id, changed.given))
    if bool(verdict) is bool(is_right):
        return "true"
    print(f"{changed.exercise_id} {changed.name}: {changed.change}")
    print(textwrap.indent(f"reference: {bool(is_right)}; verdict: {verdict}", "    "), flush=True)
    return "false"


def within_limit(call: Callable[[], object]) -> object:
    """Return what a call returns; None if it raises an error or takes too long."""
    try:
        with at_most(_MOST_S, TooLong):
            return call()
    except (Exception, TooLong, StoppedCheck):  # noqa: BLE001  # a changed answer may raise anything
        return None


if __name__ == "__main__":
    main()
