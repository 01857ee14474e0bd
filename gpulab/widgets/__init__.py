"""Notebook widgets that react to mouse and keyboard, built on anywidget."""

from gpulab.widgets._explorer import explorer_class, explorer_page
from gpulab.widgets._front_end import is_watched, jupyter_kernel, widget_data
from gpulab.widgets._guess import guess_class
from gpulab.widgets._jupyter_loop import JupyterLoop
from gpulab.widgets._machine import machine_class
from gpulab.widgets._script import script
from gpulab.widgets._sketch import sketch_class

__all__ = [
    "JupyterLoop",
    "explorer_class",
    "explorer_page",
    "guess_class",
    "is_watched",
    "jupyter_kernel",
    "machine_class",
    "script",
    "sketch_class",
    "widget_data",
]
