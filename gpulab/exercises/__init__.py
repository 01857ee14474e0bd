"""Predict, measure, be told what the mistake was: questions that check reasoning, never speed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
