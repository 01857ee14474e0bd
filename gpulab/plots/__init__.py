"""Every static figure: one function for each record, drawn with matplotlib."""

from gpulab.plots._basic import (
    call_times,
    check_figure,
    compare_methods,
    distribution,
    draw,
    predicted_against_measured,
    samples,
    scaling,
)
from gpulab.plots._crossover import crossover, draw_crossover
from gpulab.plots._ladder import draw_ladder
from gpulab.plots._roofline import gaps, roofline
from gpulab.tracing import draw_timeline
from gpulab.tracing import timeline_axes as timeline

__all__ = [
    "call_times",
    "check_figure",
    "compare_methods",
    "crossover",
    "distribution",
    "draw",
    "draw_crossover",
    "draw_ladder",
    "draw_timeline",
    "gaps",
    "predicted_against_measured",
    "roofline",
    "samples",
    "scaling",
    "timeline",
]
