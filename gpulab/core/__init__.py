"""What every part of the package uses: errors, checks of arguments, units, files and text."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
