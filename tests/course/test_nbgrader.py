"""nbgrader's own commands grade an exported course, up to marks in the gradebook."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock
from nbformat import NotebookNode
from traitlets.config import Config

from gpulab import course
from gpulab.course._labs import LABS
from gpulab.course._notebook import read_notebook, to_bytes
from tests.course.conftest import SECRET
from tests.support.submissions import filled_in, solved, submit

pytestmark = pytest.mark.slow

_FLOOD = "def tail(work, n_calls):\n    while True: print('x' * 2**20)"
_SCORES = """
SELECT student.id, COALESCE(SUM(grade.auto_score), 0) FROM grade
JOIN submitted_notebook ON grade.notebook_id = submitted_notebook.id
JOIN submitted_assignment ON submitted_notebook.assignment_id = submitted_assignment.id
JOIN student ON submitted_assignment.student_id = student.id GROUP BY student.id
"""


def nbgrader(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run nbgrader's command in the folder of a course."""
    # nbgrader starts alembic by its name, so the environment's programs must be on the path.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def scores_in(folder: Path) -> dict[str, float]:
    """Return the marks of each learner from nbgrader's gradebook."""
    database = sqlite3.connect(folder / "gradebook.db")
    try:
        return dict(database.execute(_SCORES).fetchall())
    finally:
        database.close()


def without(notebook: NotebookNode, cell_id: str) -> NotebookNode:
    """Return the notebook without one of its cells."""
    notebook.cells = [cell for cell in notebook.cells if cell.id != cell_id]
    return notebook


@pytest.fixture(scope="session")
def graded(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a course with a graded lab; pytest's workers grade once, and each gets a copy."""
    course_folder = tmp_path_factory.mktemp("graded") / "course"
    base = tmp_path_factory.getbasetemp()
    first = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "graded-first"
    with FileLock(first.with_suffix(".lock")):
        if not first.exists():
            grade(shutil.copytree(folder, first.with_suffix(".unfinished"), dirs_exist_ok=True))
            first.with_suffix(".unfinished").rename(first)
    return shutil.copytree(first, course_folder)


def grade(folder: Path) -> None:
    """Release a lab and grade every kind of submission with nbgrader's commands."""
    assert nbgrader(folder, "generate_assignment", "timing").returncode == 0
    release = folder / "release" / "timing" / "timing.ipynb"
    notebooks = {
        "ada": solved(folder, "timing", "ada"),
        "bob": filled_in(release, "timing", "bob", {}),
        "cheat": solved(folder, "timing", "cheat", tail=_FLOOD),
        "deleted": without(solved(folder, "timing", "deleted"), "timing-readings"),
        "repaired": without(solved(folder, "timing", "repaired"), "timing-tail-marks"),
        "zoe": solved(folder, "timing", "ADA "),
    }
    repaired = notebooks["repaired"]
    repaired.cells[0].metadata["nbgrader"] = {"grade_id": "mine", "solution": True}
    repaired.metadata.kernelspec = {"name": "ir", "display_name": "R"}
    repaired.cells.insert(4, repaired.cells[6])
    for student, notebook in notebooks.items():
        submit(folder, "timing", student, notebook)
    submit(folder, "timing", "torn", to_bytes(notebooks["ada"])[:900])
    configuration = folder / "nbgrader_config.py"
    text = configuration.read_text("utf-8")
    assert text.count(".parent)") == 1
    limits = "course.AnswerLimits(cpu_s=3600, wall_s=3600)"
    configuration.write_text(text.replace(".parent)", f".parent, {limits})"))
    done = nbgrader(folder, "autograde", "timing")
    assert "torn" in done.stderr


def test_marks_reach_the_gradebook(graded: Path) -> None:
    """A solved lab gets all marks, an untouched one none, a cheat those of the other answers."""
    scores = scores_in(graded)
    assert (scores["ada"], scores["bob"], scores["cheat"]) == (11.0, 0.0, 6.0)
    # Damage that nbgrader repairs costs nothing, and a missing answer gets no marks.
    assert scores["repaired"] == 11.0
    assert scores["deleted"] == 7.0


def test_damage_and_misuse_are_reported_by_name(graded: Path) -> None:
    """The report has a line for each damaged or suspicious notebook."""
    text = course.report(graded)
    found = {line.split()[1]: line for line in text.splitlines() if line.startswith("timing")}
    assert found["ada"].split(None, 2)[2] == "11 of 11: waits 2/2  readings 4/4  tail 5/5"
    assert found["torn"].endswith("NOT GRADED: timing.ipynb cannot be read (NotJSONError)")
    for line in (
        "tail: output: It printed more than is allowed.",
        "note: cell timing-readings is missing",
        "note: cell timing-tail-marks is missing",
        "note: the kernel is 'ir' and not 'python3'",
        "note: cell timing-waits exists 2 times",
        "note: the notebook is for learner 'ADA '; it was submitted by 'zoe'",
    ):
        assert line in text


def test_the_released_notebook_contains_no_key(graded: Path) -> None:
    """The learner's notebook has no solution, no hidden test and no secret."""
    text = (graded / "release" / "timing" / "timing.ipynb").read_text("utf-8")
    secret = (graded / "grader" / "secret").read_text("utf-8").strip()
    for word in ("SOLUTION", "HIDDEN", "elapsed_time", "RuntimeError", secret):
        assert word not in text


def test_without_the_configuration_nobody_gets_marks(graded: Path) -> None:
    """If nbgrader executes the cells as usual, each hidden test fails instead of giving marks."""
    notebook = read_notebook(graded / "source" / "timing" / "timing.ipynb")
    marked = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    assert len(marked) == len(LABS["timing"].questions)
    for cell in marked:
        hidden = cell.source.split("### BEGIN HIDDEN TESTS")[1]
        with pytest.raises(RuntimeError, match="judged outside the notebook"):
            exec(hidden, {})


def test_grading_without_the_secret_stops(graded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a wrong or missing secret, grading stops with one line, and no mark is changed."""
    file, before = graded / "grader" / "secret", scores_in(graded)
    monkeypatch.setenv("GPULAB_GRADER_SECRET", "another")
    done = nbgrader(graded, "autograde", "timing", "--force")
    assert done.returncode == 1
    assert f"Error: the grader's secret is not that of the course in {graded}; put" in done.stderr
    assert "Traceback" not in done.stderr
    assert scores_in(graded) == before
    monkeypatch.delenv("GPULAB_GRADER_SECRET")
    file.rename(graded / "away")
    try:
        with pytest.raises(SystemExit) as stopped:
            course.configure(Config(), graded)
    finally:
        (graded / "away").rename(file)
    assert str(stopped.value) == (
        f"Error: the grader's secret cannot be read from {file} (No such file or directory); "
        "put it back, or set GPULAB_GRADER_SECRET"
    )


def test_marks_are_saved_with_their_reasons(graded: Path) -> None:
    """Each submission has a file with points and flags, for other tools."""
    record = json.loads((graded / "marks" / "timing" / "cheat.json").read_text("utf-8"))
    tail = record["marks"][2]
    found = [tail[name] for name in ("question", "points", "of", "flag")]
    assert found == ["tail", 0.0, 5, "output"]


def test_feedback_shows_marks_and_reasons_and_no_key(graded: Path) -> None:
    """The feedback page has marks and reasons, and contains no secret and no path."""
    done = nbgrader(graded, "generate_feedback", "timing", "--student", "cheat")
    assert done.returncode == 0, done.stderr
    page = (graded / "feedback" / "cheat" / "timing" / "timing.html").read_text("utf-8")
    for words in ("(Score: 6.0 / 11.0)", "4 of 4 points for readings", "more than is allowed"):
        assert words in page
    assert SECRET not in page
    assert str(graded) not in page
