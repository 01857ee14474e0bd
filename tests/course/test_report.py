"""The report of a class cannot be forged by names of folders, and damaged notebooks are read."""

import re
from pathlib import Path

import pytest
from nbformat import from_dict

from gpulab import course
from gpulab.core.errors import InvalidOptionError
from gpulab.course._answers import forget_copies, problems_of, source_of
from gpulab.course._folder import SECRET_VARIABLE
from tests.course.conftest import SECRET

FORGED = "eve\x1b[2J\ntiming    ada                 11 of 11"


@pytest.mark.slow
def test_names_of_folders_forge_no_row(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each submission has one row; a link is named and not followed."""
    monkeypatch.setenv(SECRET_VARIABLE, SECRET)
    long_id = "somebody.with.a.long.name@university.example"
    submitted = folder / "submitted"
    for student in (FORGED, long_id):
        (submitted / student / "timing").mkdir(parents=True)
    (submitted / "mallory").symlink_to("/etc")
    (submitted / long_id / "etc").symlink_to("/etc")
    *rows, last = course.report(folder).splitlines()
    assert re.match("Answers on this machine run behind .*limits on time, memory and output", last)
    assert len(rows) == 4
    assert not any("\x1b" in row or row.startswith("timing    ada") for row in rows)
    for row in rows:
        student, text = row.split(None, 1)[1].rsplit("  NOT GRADED: ", 1)
        assert student.strip() in {long_id, "mallory", FORGED.replace("\n", " ")} or "x1b" in row
        assert text in {"timing.ipynb is missing", "it is a link, which is not followed"}


@pytest.mark.parametrize(
    "cell",
    [
        {"source": "learner = 'ada'", "metadata": {}},
        {"cell_type": "code", "metadata": {}},
        {"cell_type": "code", "source": ["learner = ", "'ada'"], "metadata": None},
        {"cell_type": "code", "source": 3, "metadata": {"nbgrader": {"grade_id": "timing-tail"}}},
        {"cell_type": "code", "source": [3], "metadata": {"nbgrader": 1}},
        {},
    ],
)
def test_a_cell_of_any_form_is_read(cell: dict[str, object]) -> None:
    """A cell without type, source or metadata, or with others, is no error."""
    notebook = from_dict({"cells": [cell], "metadata": {"kernelspec": "python3"}})
    assert problems_of(notebook, ("timing-tail",), "ada")
    forget_copies(notebook, ("timing-tail",))
    assert source_of(notebook, "timing-tail") in {None, ""}


@pytest.mark.parametrize(
    ("name", "value"),
    [("token", None), ("token", ""), ("learner", ""), ("learner", "\ud800"), ("learner", 1)],
)
def test_a_lab_checks_token_and_learner(name: str, value: object) -> None:
    """A token or an id that is no text is refused with name and value."""
    with pytest.raises(InvalidOptionError, match=f"{name}="):
        course.lab("timing", **{"token": "t", "learner": "ada", name: value})  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InvalidOptionError, match="variables=None; it must be the variables of"):
        course.lab("timing", token="t", learner="ada").form("waits", None)  # type: ignore[arg-type]  # wrong on purpose
