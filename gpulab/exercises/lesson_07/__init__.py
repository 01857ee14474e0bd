"""Exercises and three programs of lessons 07 and 07b: when the GPU is faster than Python."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
