"""Short films of what the virtual GPU did, for the lessons: a queue, a cache and a race."""

from gpulab.animations._film import Film, Level, Note, Strip
from gpulab.animations._page import Animation, page_of
from gpulab.animations._programs import FILMS
from gpulab.animations._shipped import make, show

__all__ = ["FILMS", "Animation", "Film", "Level", "Note", "Strip", "make", "page_of", "show"]
