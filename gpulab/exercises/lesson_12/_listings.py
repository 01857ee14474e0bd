"""Run a published listing, to see whether it raises an error."""

from gpulab.device.work import Work
from gpulab.tracing.trials import called


def attempt(listing: Work) -> dict[str, str]:
    """Run a listing, and return whether it runs or which error it raises.

    This does not check whether its result is right.

    Parameters
    ----------
    listing
        A function without arguments, which may raise any error.

    Returns
    -------
    dict
        ``"outcome"``: ``"runs"`` or the name of the error. ``"message"``: the first line of the
        error's message, or of the returned value.

    Examples
    --------
    >>> from gpulab.exercises import lesson_12 as lab
    >>> lab.attempt(lambda: 1 / 0)
    {'outcome': 'ZeroDivisionError', 'message': 'division by zero'}
    """
    trial = called(listing)
    if trial.error is not None:
        return {"outcome": type(trial.error).__name__, "message": _first_line(trial.error)}
    return {"outcome": "runs", "message": _first_line(trial.value)}


def _first_line(value: object) -> str:
    return next(iter(str(value).splitlines()), "")
