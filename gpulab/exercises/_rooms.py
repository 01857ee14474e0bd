"""Find the package of a lesson's exercises and claims; all cases share one package."""

from pathlib import Path


def room_of(unit: str) -> str:
    """Return the package of a lesson (``"03"``, ``"08b"``) or of a case (``"case-03"``)."""
    name = "cases" if unit.startswith("case-") else f"lesson_{unit[:2]}"
    return f"gpulab.exercises.{name}"


def unit_of(notebook: Path) -> str:
    """Return the first part of a notebook's ids: ``"08b"`` for a lesson, else ``"case-03"``."""
    number = notebook.stem.partition("_")[0]
    return f"case-{number}" if notebook.parent.name == "cases" else number
