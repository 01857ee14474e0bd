"""Lesson 13, the clinic: twelve broken programs, what is wrong with each, and their judge."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
