"""The ``%cudatime`` and ``%%cudatime`` magics: time a line or a cell in IPython."""

from gpulab.magic._magics import load_ipython_extension, unload_ipython_extension

__all__ = ["load_ipython_extension", "unload_ipython_extension"]
