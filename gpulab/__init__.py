"""Time GPU work correctly in PyTorch, on a CUDA GPU or on a virtual one."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
