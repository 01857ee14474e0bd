"""A GPU that is computed: unmodified torch.cuda code runs on it, on a virtual clock."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
