"""A learner's function is called on some cases, before anybody asks what it computes."""

from collections.abc import Iterable

from gpulab.exercises._exercise import Verdict, is_open
from gpulab.exercises.answers._forms import Diagnosis, no_function, unanswered

__all__ = ["tried"]


def tried(
    answer: object, cases: Iterable[tuple[object, ...]], how: str
) -> tuple[list[object], Verdict | None]:
    """Return what a function returns for each case, and a verdict where there is no more to say.

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
        what = f"{type(error).__name__}: {error}"
        return [], Diagnosis(
            "raised", f"Your function raised {what}. Call it yourself in a cell to see."
        ).verdict()
    return found, unanswered(how) if all(map(is_open, found)) else None
