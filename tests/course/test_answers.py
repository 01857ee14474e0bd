"""Answers get the right marks: right ones, typical mistakes, and every kind of misuse."""

from dataclasses import replace
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from gpulab.course import solutions
from gpulab.course._judging import Grader, Mark
from gpulab.course._labs import LABS
from tests.course.conftest import LIMITS
from tests.support.submissions import CHEATS, MISTAKES, SLY, filled_in, solved

pytestmark = pytest.mark.slow


def marks_of(grader: Grader, folder: Path, lab: str) -> dict[str, Mark]:
    """Return the marks of a right submission."""
    notebook = solved(folder, lab, "ada")
    return {mark.question: mark for mark in grader.marks(LABS[lab], notebook, "ada")}


def mark_of(grader: Grader, lab: str, question: str, source: str) -> Mark:
    """Return the mark of one answer, in a submission without the others."""
    cell = new_code_cell(source, metadata={"nbgrader": {"grade_id": f"{lab}-{question}"}})
    marks = grader.marks(LABS[lab], new_notebook(cells=[cell]), "ada")
    return next(mark for mark in marks if mark.question == question)


@pytest.mark.parametrize("lab", LABS)
def test_right_answers_get_full_marks_and_no_answers_none(
    grader: Grader, folder: Path, lab: str
) -> None:
    """The keys get full marks each time, and an untouched notebook gets none."""
    first, second = (marks_of(grader, folder, lab) for _ in range(2))
    assert {name: mark.points for name, mark in first.items()} == {
        question.name: question.points for question in LABS[lab].questions
    }
    assert first == second
    untouched = filled_in(folder / "source" / lab / f"{lab}.ipynb", lab, "ada", {})
    for cell in untouched.cells:  # as nbgrader releases it
        if "### BEGIN SOLUTION" in cell.source:
            cell.source = "...  # your answer"
    marks = grader.marks(LABS[lab], untouched, "ada")
    assert {(mark.points, mark.flag) for mark in marks} == {(0.0, "unanswered")}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_costs_only_its_part(grader: Grader, mistake: str) -> None:
    """An answer with a typical mistake gets the marks for its right parts."""
    lab, question = mistake.partition(":")[0].split(".")
    source, points = MISTAKES[mistake]
    mark = mark_of(grader, lab, question, source)
    assert (mark.points, mark.flag) == (points, "")


@pytest.mark.parametrize(
    ("flag", "source"),
    [(flag, source) for source, flag in CHEATS.items()],
)
def test_misuse_is_marked_and_the_next_answer_is_unharmed(
    grader: Grader, folder: Path, flag: str, source: str
) -> None:
    """Misuse gets no marks and a flag, and a right answer after it gets full marks."""
    with pytest.MonkeyPatch.context() as patch:
        if flag == "time":
            patch.setattr(grader.sandbox, "limits", replace(LIMITS, cpu_s=1))
        cheated = mark_of(grader, "timing", "tail", source)
    assert (cheated.points, cheated.flag) == (0.0, flag)
    if flag not in {"misuse", "syntax", "unanswered"}:  # those are not run
        right = solutions(folder, "timing", "ada")["tail"]
        assert mark_of(grader, "timing", "tail", right).points == cheated.max_points


def test_sly_answers_get_no_points(grader: Grader) -> None:
    """Answers that look for the length of the work, or change the checker, get no points."""
    outcomes = {}
    for title, source in SLY:
        lab, _, question = title.partition(":")[0].partition(".")
        outcomes[title] = mark_of(grader, lab, question, source)
    earned = {title: mark for title, mark in outcomes.items() if mark.points}
    assert not earned
    assert sum(bool(mark.flag) for mark in outcomes.values()) >= len(SLY) - 2


@pytest.mark.parametrize(
    "source",
    [
        "waits = 'acefg'",  # the key of exercise 01.hidden-sync
        "waits = 'kmnprstu'",
        "waits = ['k']",
        "readings = {'slept': 1}",
        "readings = {name: 1.0 for name in ('slept', 'events')}",
        "readings = open('grader/timing.py').read()",
        f"readings = {{'slept': 1{'0' * 400}, 'waited': 1e999, 'events': True}}",
        f"readings = {'-' * 100_000}1",
    ],
)
def test_wrong_values_get_no_marks(grader: Grader, source: str) -> None:
    """Keys of the practice exercises, guesses of all letters and computed values get no marks."""
    assert mark_of(grader, "timing", source.partition(" ")[0], source).points == 0


def test_a_neighbours_answers_are_wrong(grader: Grader, folder: Path) -> None:
    """Another learner's values do not get full marks, because each learner's numbers differ."""
    copied = solved(folder, "timing", "ada")
    marks = {mark.question: mark for mark in grader.marks(LABS["timing"], copied, "bob")}
    own = solutions(folder, "timing", "bob")
    assert own["readings"] != solutions(folder, "timing", "ada")["readings"]
    assert marks["readings"].points < marks["readings"].max_points
