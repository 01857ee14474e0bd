"""Lesson 06, what is in the cache: its exercises, and the staircase that its notebook draws."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
