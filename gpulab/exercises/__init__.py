"""Exercises of the lessons: predict, measure, and learn which mistake explains a wrong answer."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
