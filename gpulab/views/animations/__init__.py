"""Short films of what the virtual GPU did, for the lessons: a queue, a cache and a race."""

from gpulab.views.animations._shipped import make, show

__all__ = ["make", "show"]
