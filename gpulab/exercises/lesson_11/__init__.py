"""Lesson 11, Profiler: its exercises, the programs to diagnose, and a trace from an H200."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
