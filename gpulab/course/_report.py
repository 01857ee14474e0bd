"""The instructor's table after grading: marks, flags and damaged notebooks of each learner."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpulab.core.errors import DamagedDataError
from gpulab.core.foreign_text import one_line
from gpulab.core.serialization import parse_json, read_bytes
from gpulab.course._confine import confinement
from gpulab.course._folder import MARKS, CourseFolder
from gpulab.course._notebook import read_notebook


def report(folder: Path) -> str:
    """Return a table of all submissions of a course, with marks and faults.

    The last line says how answers are confined on this machine.

    Parameters
    ----------
    folder
        Folder of the course.

    Raises
    ------
    CourseFolderError
        If the folder contains no course.
    GradingError
        If the secret is missing or wrong.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gpulab import course
    >>> try:
    ...     print(course.report(Path("my-course")))
    ... except OSError as error:
    ...     print(error)
    my-course is not a course; make one: gpulab course export --nbgrader FOLDER
    """
    course = CourseFolder.opened(folder)
    rows = [row for path in _submitted(course.path) for row in _rows_of(course.path, path)]
    if not rows:
        return f"{folder / 'submitted'} has no submissions yet"
    # A name of a folder is a learner's text: it gets its own column and cannot begin a line.
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) + 2 for column in (0, 1)]
    lines = [f"{lab:<{widths[0]}}{student:<{widths[1]}}{text}" for lab, student, text in cells]
    return "\n".join([*lines, f"Answers on this machine run behind {confinement()}."])


def _submitted(folder: Path) -> Iterator[Path]:
    """Yield the folder of each submission, ``submitted/STUDENT/LAB``, and links in its place."""
    for student in sorted((folder / "submitted").glob("*")):
        if student.is_symlink():
            yield student / "?"
        elif student.is_dir():
            yield from sorted(path for path in student.iterdir() if path.is_dir())


def _rows_of(folder: Path, submission: Path) -> list[tuple[str, str, str]]:
    """Return the rows of a submission: its lab, its student, and what is to be said."""
    lab, student = submission.name, submission.parent.name
    path = folder / MARKS / lab / f"{student}.json"
    if submission.is_symlink() or submission.parent.is_symlink():
        return [(lab, student, "NOT GRADED: it is a link, which is not followed")]
    try:
        first, *rest = _graded(path)
    except FileNotFoundError:
        why = _why_not(submission, lab)
    # Written by gpulab, but a disk or an editor can put any JSON there.
    except (OSError, DamagedDataError, AttributeError, LookupError, TypeError, ValueError):
        why = f"{path} cannot be read; run nbgrader autograde with --force"
    else:
        return [(lab, student, first), *(("", "", line) for line in rest)]
    return [(lab, student, f"NOT GRADED: {why}")]


def _graded(path: Path) -> Iterator[str]:
    """Yield the lines of a file of marks: the points, then flags and notes."""
    record: Any = parse_json(read_bytes(path))
    marks = record["marks"]
    points, possible = (sum(mark[name] for mark in marks) for name in ("points", "of"))
    each = "  ".join(f"{mark['question']} {mark['points']:g}/{mark['of']}" for mark in marks)
    yield f"{points:g} of {possible}: {each}"
    for mark in marks:
        if mark["flag"]:
            yield f"{mark['question']}: {mark['flag']}: {mark['lines'][0]}"
    yield from (f"note: {problem}" for problem in record["problems"])


def _why_not(submission: Path, lab: str) -> str:
    path = submission / f"{lab}.ipynb"
    if not path.is_file():
        return f"{path.name} is missing"
    try:
        read_notebook(path)
    except Exception as error:  # noqa: BLE001  # a file may be damaged in any way
        return f"{path.name} cannot be read ({type(error).__name__})"
    return "nbgrader has not graded it yet"
