"""Choose or find the GPU in use, real or virtual, and report what this machine can time."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
