"""Lesson 08, streams: its exercises, the bench for a double buffer, and a figure of overlap."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
