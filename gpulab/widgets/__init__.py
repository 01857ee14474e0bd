"""Pictures for notebooks that react to mouse and keyboard, built on anywidget."""

from gpulab.widgets._front_end import is_watched, running_kernel, widget_data
from gpulab.widgets._picture import picture_class

__all__ = ["is_watched", "picture_class", "running_kernel", "widget_data"]
