"""Lesson 12, Variability and claims: its exercises, and a listing that is tried."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
