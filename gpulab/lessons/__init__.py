"""The lessons: build the notebooks, copy them, open JupyterLab, and explain their terms."""

from gpulab.lessons._build import build_all
from gpulab.lessons._folder import FIRST_LESSON, copy_lessons, notebooks_folder, shipped
from gpulab.lessons._server import serve, usable_port

__all__ = [
    "FIRST_LESSON",
    "build_all",
    "copy_lessons",
    "notebooks_folder",
    "serve",
    "shipped",
    "usable_port",
]
