"""Exercises and figures of lesson 09: from which size on the GPU is faster than the CPU."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
