"""Exercises, figures and three programs of lesson 07: when the GPU is faster than Python."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
