"""Run a published listing, to see whether it raises an error."""

from gpulab.core.foreign_text import first_line
from gpulab.device.work import Work
from gpulab.tracing.trials import called


def attempt(listing: Work) -> dict[str, str]:
    """Run a listing, and return its ``"outcome"``: ``"runs"`` or the name of the error it raises.

    This does not check whether its result is right. ``"message"`` is the first line of the error's
    message, or of the returned value.
    """
    trial = called(listing)
    if trial.error is not None:
        return {"outcome": type(trial.error).__name__, "message": first_line(trial.error)}
    return {"outcome": "runs", "message": first_line(trial.value)}
