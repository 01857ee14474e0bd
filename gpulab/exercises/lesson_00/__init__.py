"""Lesson 00, where a number comes from: its exercises."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
