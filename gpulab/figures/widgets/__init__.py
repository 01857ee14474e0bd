"""Notebook widgets that react to mouse and keyboard, built on anywidget."""

from gpulab.figures.widgets._jupyter_loop import JupyterLoop
from gpulab.figures.widgets._messages import listen
from gpulab.figures.widgets._page import page_html
from gpulab.figures.widgets._script import script
from gpulab.figures.widgets._view import show_view, view_class, widget_data

__all__ = [
    "JupyterLoop",
    "listen",
    "page_html",
    "script",
    "show_view",
    "view_class",
    "widget_data",
]
