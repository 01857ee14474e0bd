"""A cache of executed lessons, by a digest of everything that decides their outputs.

The lessons' tests run each lesson with its solutions and save it here. The book reads it from
here, and runs only the lessons that are missing.
"""

import hashlib
import os
import platform
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat

from benchmarks.common.notebooks import run_solved
from gpulab.core.disk import write_whole
from gpulab.lessons import _build

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbformat import NotebookNode

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "executed"
# A kernel of PyTorch needs about half a gigabyte, and uses one core.
MOST_KERNELS = 2


def keep(source: Path, notebook: "NotebookNode") -> None:
    """Save a lesson that was run with its solutions, and delete older runs of it."""
    kept = _file(source)
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_whole(kept, nbformat.writes(notebook).encode())  # the book may be reading it just now
    for other in kept.parent.glob(f"{source.stem}-*.ipynb"):
        if other != kept:
            other.unlink(missing_ok=True)


def executed(sources: "Sequence[Path]") -> "list[NotebookNode]":
    """Return solved lessons with their outputs; run those that are not saved."""
    with ThreadPoolExecutor(min(MOST_KERNELS, os.cpu_count() or 1)) as pool:
        list(pool.map(_run, [source for source in sources if not _file(source).exists()]))
    return [nbformat.read(_file(source), as_version=4) for source in sources]


def _run(source: Path) -> None:
    keep(source, run_solved(source))


def _file(source: Path) -> Path:
    code = "\0".join(cell.source for cell in _build.solved(source).cells)
    key = hashlib.sha256(package_digest() + code.encode()).hexdigest()[:16]
    return FOLDER / f"{source.stem}-{key}.ipynb"


@cache
def package_digest() -> bytes:
    """Return a digest of gpulab's files, and of the versions that draw and compute."""
    import matplotlib as mpl
    import torch

    digest = hashlib.sha256(f"{platform.python_version()} {torch.__version__} ".encode())
    digest.update(mpl.__version__.encode())
    package = ROOT / "gpulab"
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return digest.digest()
