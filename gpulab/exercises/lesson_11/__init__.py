"""Exercises of lesson 11, the profiler: programs to diagnose, monitors, and a recorded trace."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
