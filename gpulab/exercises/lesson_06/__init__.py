"""Exercises and figures of lesson 06: what the cache contains when a kernel is timed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
