"""What people look at: plots, live pictures, explorers, the machine and films."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
