"""Notebook widgets that react to mouse and keyboard, built on anywidget."""

from gpulab.figures.widgets._explorer import explorer_class, explorer_page
from gpulab.figures.widgets._form import answer_form, form_class
from gpulab.figures.widgets._front_end import (
    cell_code,
    is_watched,
    jupyter_kernel,
    replace_cell,
    widget_data,
)
from gpulab.figures.widgets._jupyter_loop import JupyterLoop
from gpulab.figures.widgets._machine import machine_class
from gpulab.figures.widgets._messages import ignore_state, listen
from gpulab.figures.widgets._script import script
from gpulab.figures.widgets._sketch import sketch_class

__all__ = [
    "JupyterLoop",
    "answer_form",
    "cell_code",
    "explorer_class",
    "explorer_page",
    "form_class",
    "ignore_state",
    "is_watched",
    "jupyter_kernel",
    "listen",
    "machine_class",
    "replace_cell",
    "script",
    "sketch_class",
    "widget_data",
]
