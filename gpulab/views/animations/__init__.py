"""Short films of what the virtual GPU did, for the lessons: a queue, a cache and a race."""

from gpulab.views.animations._show import show

__all__ = ["show"]
