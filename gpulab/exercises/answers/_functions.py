"""What a learner's function returns on some cases, or the verdict that it returns nothing."""

from collections.abc import Iterable

from gpulab.exercises._exercise import Verdict, is_open
from gpulab.exercises.answers._forms import no_function, raised, unanswered

__all__ = ["run_on_cases"]


def run_on_cases(
    answer: object, cases: Iterable[tuple[object, ...]], how: str
) -> tuple[list[object], Verdict | None]:
    """Return the results of a function for some cases, or the verdict that there are none.

    Parameters
    ----------
    answer
        What the learner gave; anything.
    cases
        The arguments of each call.
    how
        How the answer is to be written.

    Returns
    -------
    tuple
        The results; and a verdict if the answer is open, is no function, or raises.
    """
    if not callable(answer):
        return [], no_function(answer, how)
    try:
        found = [answer(*case) for case in cases]
    except Exception as error:  # noqa: BLE001  # a learner's function may raise anything
        return [], raised(error).verdict()
    return found, unanswered(how) if all(map(is_open, found)) else None
