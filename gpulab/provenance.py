"""Where a time comes from: measured here, recorded on another GPU, or computed by a model."""

from gpulab import gpus
from gpulab.foreign_text import one_line
from gpulab.requirements import NameOf

SOURCES = ("measured", "recorded", "virtual")


def check_source(source: str) -> None:
    """Refuse anything but the three sources.

    Raises
    ------
    UnknownNameError
        If ``source`` is not one of them; the message names the nearest.
    """
    NameOf("source", SOURCES).check(source=source)


def device_label(device_name: str, source: str) -> str:
    """Return device and source as one text, in which no virtual GPU reads as a real one.

    >>> device_label("NVIDIA H200", "measured")
    'NVIDIA H200, measured'
    >>> device_label("NVIDIA H200", "virtual")
    'virtual NVIDIA H200'
    >>> device_label("Tesla T4", "virtual")
    'virtual Tesla T4, extrapolated'
    """
    return (
        virtual_label(device_name) if source == "virtual" else f"{one_line(device_name)}, {source}"
    )


def virtual_label(device_name: str) -> str:
    """Return the text for a virtual GPU, with a note if only its data sheet is known."""
    note = ", extrapolated" if gpus.is_extrapolated(device_name) else ""
    return f"virtual {one_line(device_name)}{note}"
