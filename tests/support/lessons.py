"""Lessons with a first cell that blocks the network, and a last one that checks the exercises."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "notebooks" / "source").glob("*.py"))
CASES = sorted((ROOT / "notebooks" / "source" / "cases").glob("*.py"))
NO_NETWORK = """
import socket
def refuse(*_args, **_kwargs):
    raise OSError("a lesson must not use the network")
socket.create_connection = socket.getaddrinfo = socket.socket.connect = refuse
"""
LOOK = "from gpulab.exercises import _progress\nentries = _progress.entries()\n"
EXERCISES_ARE = {
    "right": f"{LOOK}assert len(entries) >= 2 and all(e.ok for e in entries.values()), entries",
    "not tried": f"{LOOK}assert not any(entry.n_tries for entry in entries.values()), entries",
}


def source_of(lesson: str) -> Path:
    """Return the file that a lesson is built from."""
    return ROOT / "notebooks" / "source" / f"{lesson}.py"


def checked(notebook: "NotebookNode", expected: str) -> "NotebookNode":
    """Return a lesson that fails if it uses the network, or if its exercises are not as expected.

    ``expected`` is a key of ``EXERCISES_ARE``.
    """
    import nbformat

    first, last = (
        nbformat.v4.new_code_cell(code) for code in (NO_NETWORK, EXERCISES_ARE[expected])
    )
    notebook.cells = [first, *notebook.cells, last]
    return notebook
