"""What a program did: timelines, activity records, data races, and trials of a function."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
