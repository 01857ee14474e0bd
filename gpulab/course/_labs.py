"""All labs, by name."""

from gpulab.course._cache import CACHE
from gpulab.course._question import Lab
from gpulab.course._streams import STREAMS
from gpulab.course._timing import TIMING
from gpulab.errors import UnknownNameError

LABS = {each.name: each for each in (TIMING, CACHE, STREAMS)}


def lab_named(name: str) -> Lab:
    """Return a lab.

    Raises
    ------
    UnknownNameError
        If there is no lab of this name; the message names the nearest.
    """
    if name not in LABS:
        raise UnknownNameError("lab", name, LABS)
    return LABS[name]
