"""Where a time comes from: measured here, recorded on another GPU, or computed by a model."""

from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import NameOf
from gpulab.gpus._datasheets import is_extrapolated

SOURCES = ("measured", "recorded", "virtual")


def check_source(source: str) -> None:
    """Raise `UnknownNameError`, with the nearest, unless this is one of :data:`SOURCES`."""
    NameOf("source", SOURCES).check(source=source)


def device_label(device_name: str, source: str) -> str:
    """Return a label with the device and the source of its times."""
    return (
        virtual_label(device_name) if source == "virtual" else f"{one_line(device_name)}, {source}"
    )


def virtual_label(device_name: str) -> str:
    """Return the label of a virtual GPU, with a note if its times are extrapolated.

    They are extrapolated if gpulab knows the GPU's data sheet only, and has no recording of it.
    """
    note = ", extrapolated" if is_extrapolated(device_name) else ""
    return f"virtual {one_line(device_name)}{note}"
