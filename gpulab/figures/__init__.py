"""What every figure shares: a look that reads without colour, a text alternative, and a source."""

from gpulab.figures._figure import WIDTH_IN, Figure, describe, render
from gpulab.figures._inputs import (
    SIZE_IN,
    check_axes,
    check_frame,
    check_words,
    frame_of,
    has_provenance,
    provenance,
)
from gpulab.figures._style import (
    COLOURS,
    Look,
    as_list,
    finish,
    log_axis,
    looks,
    name_of,
    need,
    unit_of,
)

__all__ = [
    "COLOURS",
    "SIZE_IN",
    "WIDTH_IN",
    "Figure",
    "Look",
    "as_list",
    "check_axes",
    "check_frame",
    "check_words",
    "describe",
    "finish",
    "frame_of",
    "has_provenance",
    "log_axis",
    "looks",
    "name_of",
    "need",
    "provenance",
    "render",
    "unit_of",
]
