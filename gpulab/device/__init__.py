"""The GPU in use, real or virtual: what it is, its clocks, its work, and what it measured."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
