"""The kinds of answers, such as letters, numbers or a function, each with its judge."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
