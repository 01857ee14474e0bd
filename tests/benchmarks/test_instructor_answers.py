"""The instructor's answers follow from the lessons, and the guide names only what exists."""

import re
from types import SimpleNamespace

import pytest

from benchmarks import instructor_answers as answers
from gpulab.exercises._guess_question import question_of
from tests.support.lesson_text import LessonText
from tests.support.lessons import CASES, ROOT, SOURCES

# the sources are read by jupytext, which takes seconds to import
pytestmark = pytest.mark.slow

GUIDE = ROOT / "docs" / "instructor"
NAMED = re.compile(r"\b(?:case-)?\d\db?\.[a-z][a-z0-9-]+[a-z0-9]")
CHECK = re.compile(r'exercises\.check\(\s*"([^"]+)"')
SECTION = re.compile(r"^\| (\d+) \| (.+?) \|", re.MULTILINE)
LAB_HOUR_MIN = 45


def everything() -> str:
    """Return the sources of all lessons and cases."""
    return "\n".join(source.read_text("utf-8") for source in [*SOURCES, *CASES])


def test_the_page_is_what_the_lessons_give() -> None:
    """The page of answers is up to date; python -m benchmarks.instructor_answers write."""
    assert answers.PAGE.read_text("utf-8") == answers.page()


def test_each_exercise_has_its_answer() -> None:
    """Every check of a lesson has a heading with at least a line of code."""
    page = answers.PAGE.read_text("utf-8")
    checks = {
        name
        for source in [*SOURCES, *CASES]
        for name in re.findall(CHECK, source.read_text("utf-8"))
    }
    answered = set(re.findall(r"^### (\S+)\n\n```python\n.", page, re.MULTILINE))
    assert answered == checks


def test_outcomes_are_read_from_a_notebook_that_ran() -> None:
    """An outcome belongs to the question that is named beside it."""

    def cell(source: str, shown: str = "") -> SimpleNamespace:
        outputs = [{"data": {"text/plain": shown}}]
        return SimpleNamespace(cell_type="code", source=source, outputs=outputs)

    shown = "No guess. It was 3.5\ntimes. Give your guess in place of the three dots"
    cells = [
        SimpleNamespace(cell_type="markdown"),
        cell('exercises.predict("01.flat")'),
        cell('gpulab.compare(a, b)\nexercises.compare(\n    "01.flat", 3.5)', shown),
    ]
    question = question_of("01.flat").question
    assert answers.outcomes_of(cells) == [[question, "3.5 times"]]


def test_the_guide_names_exercises_and_claims_that_exist() -> None:
    """Each id in the guide, such as 03.floor, belongs to an exercise or claim of a lesson."""
    lessons = everything()
    pages = "\n".join(path.read_text("utf-8") for path in sorted(GUIDE.glob("*.md")))
    named = set(NAMED.findall(pages))
    assert len(named) > 40
    assert {name for name in named if f'"{name}"' not in lessons} == set()


def test_the_guide_plans_the_core_of_each_lesson() -> None:
    """The guide has the minutes of sections of each core, in order, and they fit a lab hour."""
    text = (GUIDE / "lessons.md").read_text("utf-8")
    lessons = {LessonText(source).cells[0].source.split("\n")[0]: source for source in SOURCES}
    parts = re.split(r"^#(# \d.+)\n", text, flags=re.MULTILINE)[1:]
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert set(sections) == set(lessons)
    for title, part in sections.items():
        plan = part.partition("| minutes | section |")[2].partition("\n\n")[0]
        planned = SECTION.findall(plan)
        headings = LessonText(lessons[title]).headings
        names = [name for _, name in planned]
        assert [name for name in headings if name in names] == names, title
        assert 0 < sum(int(minutes) for minutes, _ in planned) <= LAB_HOUR_MIN, title
