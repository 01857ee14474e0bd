"""The case files: benchmarks as people publish them, each with a flaw to find and repair."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
