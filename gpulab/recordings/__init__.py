"""Measured data of real GPUs by name: shipped with the package, or made by anyone."""

from gpulab.recordings._file import (
    RecordingContents,
    Row,
    as_line,
    read,
    seal,
    section_line,
    unsealed,
    write,
)
from gpulab.recordings._recording import (
    Recording,
    compare,
    list,  # noqa: A004 # recordings.list() reads as it is meant
    load,
    save,
)

__all__ = [
    "Recording",
    "RecordingContents",
    "Row",
    "as_line",
    "compare",
    "list",
    "load",
    "read",
    "save",
    "seal",
    "section_line",
    "unsealed",
    "write",
]
