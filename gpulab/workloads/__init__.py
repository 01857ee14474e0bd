"""A catalogue of PyTorch operations to time, sweeps over them, and recordings of sweeps."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
