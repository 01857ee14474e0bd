"""Figures that grow while something runs: a GPU under load, or results as they arrive."""

from gpulab.live._figure import shade_reasons
from gpulab.live._live import draw, ladder, load, series
from gpulab.live._records import Series, Trace

__all__ = ["Series", "Trace", "draw", "ladder", "load", "series", "shade_reasons"]
