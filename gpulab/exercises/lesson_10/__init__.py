"""Lesson 10, the roofline: its exercises, a figure, and three slow programs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
