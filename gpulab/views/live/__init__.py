"""Figures that grow while something runs: a GPU under load, or results as they arrive."""

from gpulab.views.live._live import draw, ladder, load, series
from gpulab.views.live._records import Series, Trace

__all__ = ["Series", "Trace", "draw", "ladder", "load", "series"]
