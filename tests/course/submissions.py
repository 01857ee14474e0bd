"""Submissions of every kind, made from a lab's notebook as learners do: by changing cells."""

from collections.abc import Mapping
from pathlib import Path

from nbformat import NotebookNode

from gpulab.course import solutions
from gpulab.course._answers import answer_cell, grade_id
from gpulab.course._notebook import read_notebook, to_bytes


def filled_in(release: Path, lab: str, student: str, answers: Mapping[str, str]) -> NotebookNode:
    """Return a lab's notebook with a learner's name and answers in it."""
    notebook = read_notebook(release)
    cells = {answer_cell(lab, name): source for name, source in answers.items()}
    for cell in notebook.cells:
        cell.source = cells.get(grade_id(cell), cell.source)
        if cell.source == 'learner = ""':
            cell.source = f'learner = "{student}"'
    return notebook


def submit(folder: Path, lab: str, student: str, notebook: NotebookNode | bytes) -> Path:
    """Put a notebook where nbgrader looks for submissions."""
    path = folder / "submitted" / student / lab / f"{lab}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(notebook if isinstance(notebook, bytes) else to_bytes(notebook))
    return path


def solved(folder: Path, lab: str, student: str, **changed: str) -> NotebookNode:
    """Return a learner's notebook with all answers right but those that are given."""
    answers = solutions(folder, lab, student) | changed
    return filled_in(folder / "source" / lab / f"{lab}.ipynb", lab, student, answers)
