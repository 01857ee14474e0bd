"""Exercises and figures of lesson 08, streams, and a test bench for double buffers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
