"""Run notebooks with nbclient, and wait for their kernels however busy the machine is."""

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.common.folders import ROOT
from gpulab.exercises._lesson_index import unit_of
from gpulab.lessons._build import solved

if TYPE_CHECKING:
    from nbclient import NotebookClient
    from nbformat import NotebookNode

# The lessons, and then the cases.
SOURCES = sorted((ROOT / "notebooks" / "source").rglob("*.py"))
# nbclient gives a kernel a minute to start, and its outputs 4 s. A busy machine needs more.
_PATIENCE_S = 3600


def chosen(units: Sequence[str]) -> list[Path]:
    """Return the sources of some lessons and cases, such as 03 or case-01; of all without any."""
    return [source for source in SOURCES if not units or unit_of(source).startswith(tuple(units))]


def client_of(notebook: "NotebookNode", folder: str | Path) -> "NotebookClient":
    """Return a client that runs a notebook in a folder, without a limit for its cells."""
    from nbclient import NotebookClient

    return NotebookClient(
        notebook,
        timeout=None,
        startup_timeout=_PATIENCE_S,
        iopub_timeout=_PATIENCE_S,
        resources={"metadata": {"path": str(folder)}},
    )


def without_gpu() -> dict[str, str]:
    """Return the environment of a kernel that imports this checkout and sees no CUDA GPU."""
    return os.environ | {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}


def run_solved(source: Path) -> "NotebookNode":
    """Run a lesson with its solutions, without a CUDA GPU; return it with its outputs."""
    notebook = solved(source)
    with TemporaryDirectory(prefix="gpulab-lesson-") as folder:
        client_of(notebook, folder).execute(env=without_gpu())
    return notebook
