"""The table of all labs, by name."""

from gpulab.core.errors import UnknownNameError
from gpulab.course._cache import CACHE
from gpulab.course._question import Lab
from gpulab.course._streams import STREAMS
from gpulab.course._timing import TIMING

LABS = {each.name: each for each in (TIMING, CACHE, STREAMS)}


def lab_named(name: str) -> Lab:
    """Return a lab, or raise `UnknownNameError`, which suggests the nearest name."""
    if name not in LABS:
        raise UnknownNameError("lab", name, LABS)
    return LABS[name]
