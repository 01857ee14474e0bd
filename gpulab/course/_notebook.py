"""The notebook of a lab, with nbgrader's metadata for the answers and the marks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpulab.course._answers import Notebook, answer_cell, marks_cell
from gpulab.course._keys import Key, solution_of
from gpulab.course._question import Lab, LabQuestion

STUB = "...  # your answer"
_SCHEMA = 3  # version of nbgrader's metadata
_KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# If nbgrader executes the cells without the course's configuration, this line makes each of them
# fail. Without it, every answer would get full marks.
_HIDDEN = """### BEGIN HIDDEN TESTS
raise RuntimeError("this cell is judged outside the notebook: use the course's nbgrader_config.py")
### END HIDDEN TESTS"""


def cell_ids(lab: Lab) -> tuple[str, ...]:
    """Return nbgrader's ids of all cells that a submission must have."""
    return tuple(
        make(lab.name, question.name)
        for question in lab.questions
        for make in (answer_cell, marks_cell)
    )


def source_notebook(lab: Lab, token: str, keys: Mapping[str, Key]) -> Notebook:
    """Return the instructor's notebook; nbgrader makes the learners' notebook from it.

    nbgrader removes the solutions and the hidden tests. The keys are by question. Only solutions
    that are functions are written into the notebook, because the right values differ between
    learners.
    """
    cells = [
        _text(f"# {lab.title}\n\n{lab.text} The lab gives {lab.points} points."),
        *_setup(lab, token),
    ]
    for question in lab.questions:
        cells += _cells_of(lab, question, keys[question.name])
    for number, cell in enumerate(cells):
        # nbformat gives random ids; with these, a second export writes the same file.
        described = cell.metadata.get("nbgrader", {})
        cell.id = described.get("grade_id", f"{lab.name}-{number}")
    metadata = {"kernelspec": _KERNELSPEC, "language_info": {"name": "python"}}
    return _v4().new_notebook(cells=cells, metadata=metadata)


def _setup(lab: Lab, token: str) -> list[Any]:
    return [
        _text(
            "Write your id, under which you submit, between the quotation marks. Your questions "
            "have numbers of their own. Then run the cell."
        ),
        _code('learner = ""'),
        _code(
            "import gpulab\nfrom gpulab import course\n\n"
            'gpulab.use("H200")\n'
            f'lab = course.lab("{lab.name}", token="{token}", learner=learner)\nlab'
        ),
    ]


def _cells_of(lab: Lab, question: LabQuestion, key: Key) -> list[Any]:
    answer, marks = answer_cell(lab.name, question.name), marks_cell(lab.name, question.name)
    solution = solution_of(question, key, None)
    return [
        _text(f"## {question.title} ({question.points} points)"),
        _code(f'lab.ask("{question.name}")'),
        _code(
            f"# {question.how}\n### BEGIN SOLUTION\n{solution}\n### END SOLUTION",
            {"grade_id": answer, "grade": False, "solution": True, "locked": False},
        ),
        _code(
            f'lab.form("{question.name}", locals())\n{_HIDDEN}',
            {"grade_id": marks, "grade": True, "solution": False, "locked": True}
            | {"points": question.points},
        ),
    ]


def output(kind: str, **fields: object) -> Any:  # noqa: ANN401  # nbformat's
    """Return an nbformat output of a cell."""
    return _v4().new_output(kind, **fields)


def to_bytes(notebook: Notebook) -> bytes:
    """Return the bytes of a notebook's file."""
    return f"{_v4().writes(notebook)}\n".encode()


def read_notebook(path: Path) -> Notebook:
    """Read a notebook's file; for a damaged file nbformat raises errors of many classes."""
    import nbformat

    read: Any = nbformat.read
    return read(path, as_version=4)


def _v4() -> Any:  # noqa: ANN401  # nbformat's functions are untyped
    import nbformat

    return nbformat.v4


def _text(source: str) -> Any:  # noqa: ANN401  # nbformat's
    return _v4().new_markdown_cell(source)


def _code(source: str, described: dict[str, object] | None = None) -> Any:  # noqa: ANN401  # nbformat's
    if described is None:
        return _v4().new_code_cell(source)
    shape = {"schema_version": _SCHEMA, "task": False, "cell_type": "code"}
    return _v4().new_code_cell(source, metadata={"nbgrader": shape | described})
