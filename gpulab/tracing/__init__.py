"""The timeline of a program: what host and device did, on one axis of time."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
