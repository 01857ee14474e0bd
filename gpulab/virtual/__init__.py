"""A GPU that is computed: unmodified torch.cuda code runs on it, on a virtual clock.

Its packages import in one direction: ``simulator`` (without torch), ``tensors``, ``operators``,
``dispatch``, ``patches``. Import each through its ``__init__``; modules named ``_x`` are private
to their package.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
