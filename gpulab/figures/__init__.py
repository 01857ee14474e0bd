"""Give every figure a look that reads without colour, a text alternative, and its source."""

from gpulab.figures._figure import WIDTH_IN, Figure, render
from gpulab.figures._inputs import (
    check_words,
    frame_of,
    has_provenance,
    provenance,
)
from gpulab.figures._labels import name_point, name_slope
from gpulab.figures._lanes import Arrow, Lanes, Level, Strip
from gpulab.figures._line_names import name_line
from gpulab.figures._panels import only_labels
from gpulab.figures._plot import FigureOptions, Plot
from gpulab.figures._style import (
    INK,
    MUTED,
    PAPER,
    Look,
    bar_marks,
    finish,
    legend_below,
    log_axis,
    look_of,
    looks,
    marks,
    need,
    size_ticks,
    source_of,
    style,
    unit_of,
    write_beside,
)
from gpulab.figures._svg import picture_address

__all__ = [
    "INK",
    "MUTED",
    "PAPER",
    "WIDTH_IN",
    "Arrow",
    "Figure",
    "FigureOptions",
    "Lanes",
    "Level",
    "Look",
    "Plot",
    "Strip",
    "bar_marks",
    "check_words",
    "finish",
    "frame_of",
    "has_provenance",
    "legend_below",
    "log_axis",
    "look_of",
    "looks",
    "marks",
    "name_line",
    "name_point",
    "name_slope",
    "need",
    "only_labels",
    "picture_address",
    "provenance",
    "render",
    "size_ticks",
    "source_of",
    "style",
    "unit_of",
    "write_beside",
]
