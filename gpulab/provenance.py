"""Where a time comes from: measured here, recorded on another GPU, or computed by a model."""

from gpulab import gpus
from gpulab.errors import UnknownNameError

SOURCES = ("measured", "recorded", "virtual")


def check_source(source: str) -> None:
    """Refuse anything but the three sources.

    Raises
    ------
    UnknownNameError
        If ``source`` is not one of them; the message names the nearest.
    """
    if source not in SOURCES:
        raise UnknownNameError("source", source, SOURCES)


def place(device_name: str, source: str) -> str:
    """Name device and source so that a virtual GPU is never read as a real one.

    >>> place("NVIDIA H200", "measured")
    'NVIDIA H200, measured'
    >>> place("NVIDIA H200", "virtual")
    'virtual NVIDIA H200'
    >>> place("Tesla T4", "virtual")
    'virtual Tesla T4, extrapolated'
    """
    return virtual(device_name) if source == "virtual" else f"{device_name}, {source}"


def virtual(device_name: str) -> str:
    """Name a virtual GPU, and say so where none like it was recorded."""
    note = ", extrapolated" if gpus.is_extrapolated(device_name) else ""
    return f"virtual {device_name}{note}"
