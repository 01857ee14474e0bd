"""Exercises of lesson 12: why times vary, and which published claims are true."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
