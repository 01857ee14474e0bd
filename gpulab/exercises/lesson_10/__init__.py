"""Exercises of lesson 10, the roofline, and three programs that are slower than it predicts."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
