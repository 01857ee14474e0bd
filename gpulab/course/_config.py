"""Configure nbgrader for a course: gpulab judges the answers, and no cell is executed."""

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

from gpulab.core.disk import write_whole
from gpulab.core.errors import GpulabError
from gpulab.course._answers import Notebook, forget_copies, grade_id, marks_cell, problems_of
from gpulab.course._confine import AnswerLimits
from gpulab.course._folder import MARKS, CourseFolder, require_nbgrader
from gpulab.course._judging import Grader, Mark
from gpulab.course._labs import lab_named
from gpulab.course._notebook import STUB, cell_ids, output
from gpulab.course._question import Lab
from gpulab.course._sandbox import Sandbox

_NOTE = "gpulab"
# The steps of nbgrader that stay: some clean a submission, the others save the marks. Its step
# "Execute" is left out, because it would run the learner's code without limits.
_CLEANING = ("ClearOutput", "DeduplicateIds", "OverwriteKernelspec", "OverwriteCells")
_KEEPING = ("LimitOutput", "SaveAutoGrades", "AssignLatePenalties", "CheckCellMetadata")


def configure(config: Any, folder: Path, limits: AnswerLimits | None = None) -> None:  # noqa: ANN401  # traitlets' Config
    """Set up nbgrader for a course; the ``nbgrader_config.py`` of the course calls this.

    If the course cannot be graded, this prints one line and ends the command. Otherwise nbgrader
    would go on without this configuration.

    Parameters
    ----------
    config
        nbgrader's configuration; this changes it.
    folder
        Folder of the course.
    limits
        Limits for one answer; by default those of `AnswerLimits`.

    Examples
    --------
    A folder that is not a course ends the command with one line:

    >>> from pathlib import Path
    >>> from traitlets.config import get_config
    >>> from gpulab import course
    >>> try:
    ...     course.configure(get_config(), Path("my-course"))
    ... except SystemExit as end:
    ...     print("Error: " in str(end))
    True
    """
    try:
        require_nbgrader()
        CourseFolder.opened(folder)
    except GpulabError as error:
        sys.exit(f"Error: {error}")
    # Opened at the first submission, and once: most commands of nbgrader judge nothing.
    grader = cache(lambda: Grader(CourseFolder.opened(folder), Sandbox(limits)))

    def look(notebook: Notebook, resources: Any) -> tuple[Notebook, Any]:  # noqa: ANN401  # nbconvert's
        return _looked_at(notebook, resources), resources

    def grade(notebook: Notebook, resources: Any) -> tuple[Notebook, Any]:  # noqa: ANN401  # nbconvert's
        return _graded(grader(), notebook, resources), resources

    config.CourseDirectory.root = str(folder)
    config.ClearSolutions.code_stub = {"python": STUB}
    config.OverwriteCells.add_missing_cells = True
    config.Autograde.sanitize_preprocessors = [look, *map(_own, _CLEANING)]
    config.Autograde.autograde_preprocessors = [grade, *map(_own, _KEEPING)]


def _own(name: str) -> str:
    return f"nbgrader.preprocessors.{name}"


def _looked_at(notebook: Notebook, resources: Any) -> Notebook:  # noqa: ANN401  # nbconvert's
    """Record what is wrong with a submission's cells, before nbgrader repairs some of them."""
    about = resources["nbgrader"]
    lab = lab_named(about["notebook"])
    notebook.metadata[_NOTE] = problems_of(notebook, cell_ids(lab), about["student"])
    forget_copies(notebook, cell_ids(lab))
    return notebook


def _graded(grader: Grader, notebook: Notebook, resources: Any) -> Notebook:  # noqa: ANN401  # nbconvert's
    """Judge a submission; write the marks where nbgrader reads them, and into a file of ours."""
    about = resources["nbgrader"]
    lab = lab_named(about["notebook"])
    problems = list(notebook.metadata.pop(_NOTE, []))
    marks = grader.marks(lab, notebook, about["student"])
    for mark in marks:
        _write_outputs(notebook, marks_cell(lab.name, mark.question), mark, problems)
    _keep(grader.course.path, lab, about["student"], marks, problems)
    return notebook


def _write_outputs(notebook: Notebook, cell_id: str, mark: Mark, problems: list[str]) -> None:
    """Give a cell two outputs: nbgrader reads the marks, and the learner reads the reasons."""
    reasons = "\n".join([str(mark), *(f"  note: {problem}" for problem in problems)])
    for cell in notebook.cells:
        if grade_id(cell) == cell_id:
            cell.outputs = [
                output("stream", name="stdout", text=f"{reasons}\n"),
                output("execute_result", data={"text/plain": f"{mark.points:g}"}),
            ]


def _keep(
    folder: Path, lab: Lab, student: str, marks: tuple[Mark, ...], problems: list[str]
) -> None:
    record = {
        "student": student,
        "problems": problems,
        "marks": [
            {"question": mark.question, "points": mark.points, "of": mark.max_points}
            | {"flag": mark.flag, "lines": mark.lines}
            for mark in marks
        ],
    }
    path = folder / MARKS / lab.name / f"{student}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(record, indent=2).encode() + b"\n")
