"""A GPU that is computed: unmodified torch.cuda code runs on it, on a virtual clock.

The parts import one way: ``simulator`` (no torch), ``tensors``, ``kernels``, ``dispatch``,
``patches``. Each is entered through its ``__init__``; a module ``_x`` belongs to its folder alone.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
