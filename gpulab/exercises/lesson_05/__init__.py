"""Exercises and figures of lesson 05: clocks that change during a measurement."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
