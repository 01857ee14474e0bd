"""Try a listing that somebody published, to see whether it runs at all."""

from gpulab.work import Work


def attempt(listing: Work) -> dict[str, str]:
    """Run a listing and return what came of it.

    It says whether the listing runs. It does not say whether what the listing computes is right.

    Parameters
    ----------
    listing
        Function without arguments; it may raise any error.

    Returns
    -------
    dict
        ``"outcome"``: ``"runs"`` or the name of the error; ``"message"``: the first line of the
        error's message, or of what the listing returned.
    """
    try:
        value = listing()
    except Exception as error:  # noqa: BLE001  # a listing may raise anything
        return {"outcome": type(error).__name__, "message": _first_line(error)}
    return {"outcome": "runs", "message": _first_line(value)}


def _first_line(value: object) -> str:
    return next(iter(str(value).splitlines()), "")
