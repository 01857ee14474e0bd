"""Each lesson fits a class hour, shows ordinary code, and names its numbers' sources."""

import importlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from gpulab.core.errors import NotebookError
from gpulab.lessons._form import EXTRAS, check_form
from tests.support.lesson_text import LessonText, literal_outcomes, words_to_mend
from tests.support.lessons import CASES, SOURCES

MOST_CELLS, MOST_MINUTES, LEAST_SHARE = 60, 45, 0.5

Rule = Callable[[LessonText], list[str]]
text_of = cache(LessonText)  # read once for all rules


def form(lesson: LessonText) -> list[str]:
    """Expect cells of at most twelve lines, with a median of four, that show something."""
    try:
        check_form(lesson.source.stem, type("Notebook", (), {"cells": lesson.cells}))
    except NotebookError as error:
        return [str(error)]
    return []


def a_core_of_sixty_cells(lesson: LessonText) -> list[str]:
    """Expect at most 60 cells before the extras, so that they fit a class hour."""
    n_cells = len(lesson.core)
    return [f"{n_cells} cells in the core"] if n_cells > MOST_CELLS else []


def a_table_with_minutes(lesson: LessonText) -> list[str]:
    """Expect a table of minutes, with at most 45 in the core, and a row for the extras."""
    wrong = []
    if not lesson.minutes or lesson.core_minutes > MOST_MINUTES:
        wrong.append(f"{lesson.core_minutes} minutes in the core")
    has_extras = len(lesson.core) < len(lesson.cells)
    if has_extras and not any(EXTRAS.lower() in row.lower() for row in lesson.minutes):
        wrong.append("the extras are not in the table")
    return wrong


def torch_in_the_cells(lesson: LessonText) -> list[str]:
    """Expect half of the visible code to touch torch, a clock or an explorer.

    Questions and imports are not counted; lines that a learner writes are.
    """
    touched, seen = lesson.code_lines()
    return [] if touched >= LEAST_SHARE * seen else [f"{touched} of {seen} lines"]


def numbers_with_a_source(lesson: LessonText) -> list[str]:
    """Expect a source in each paragraph that has a number with a unit."""
    return lesson.unsourced


def plain_words(lesson: LessonText) -> list[str]:
    """Expect only usual words in the texts that a learner reads."""
    return [
        f"{word} in: {' '.join(text.split())}"
        for text in lesson.strings
        for word in words_to_mend(text)
    ]


def outcomes_that_came_out(lesson: LessonText) -> list[str]:
    """Expect predictions to be compared with computed values, not with literals."""
    code = (cell.source for cell in lesson.cells if cell.cell_type == "code")
    return [found for source in code for found in literal_outcomes(source)]


def computed_alternatives(lesson: LessonText) -> list[str]:
    """Expect no text alternative written by hand, because it may not fit the data."""
    return [
        line
        for cell in lesson.cells
        if cell.cell_type == "code"
        for line in cell.source.splitlines()
        if "alt=" in line
    ]


def keys_out_of_sight(lesson: LessonText) -> list[str]:
    """Expect that a lesson's package offers no exercise together with its key."""
    room = importlib.import_module(f"gpulab.exercises.{lesson.room}")
    return ["EXERCISES"] if "EXERCISES" in dir(room) else []


RULES: tuple[Rule, ...] = (
    form,
    a_core_of_sixty_cells,
    a_table_with_minutes,
    torch_in_the_cells,
    numbers_with_a_source,
    plain_words,
    outcomes_that_came_out,
    computed_alternatives,
    keys_out_of_sight,
)


def a_case_of_fifteen_minutes(lesson: LessonText) -> list[str]:
    """Expect 10 to 18 cells, the minutes and a quoted post in the first, and two exercises."""
    text = lesson.cells[0].source
    wrong = [what for what in ("15 minutes", "> **", "(") if what not in text]
    n_cells = len(lesson.cells)
    n_checks = sum("exercises.check(" in cell.source for cell in lesson.cells)
    return [*wrong, *([f"{n_cells} cells"] if not 10 <= n_cells <= 18 else [])] + (
        [f"{n_checks} checks"] if n_checks != 2 else []
    )


CASE_RULES: tuple[Rule, ...] = (
    form,
    a_case_of_fifteen_minutes,
    torch_in_the_cells,
    numbers_with_a_source,
    plain_words,
    outcomes_that_came_out,
    computed_alternatives,
    keys_out_of_sight,
)


@pytest.mark.parametrize("source", CASES, ids=lambda source: source.stem[:2])
@pytest.mark.parametrize("rule", CASE_RULES, ids=lambda rule: rule.__name__)
def test_cases_are_plain(rule: Rule, source: Path) -> None:
    """Every case follows the rules of lessons and is short."""
    wrong = rule(text_of(source))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem[:3].rstrip("_"))
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_lessons_are_plain(rule: Rule, source: Path) -> None:
    """Every lesson follows every rule."""
    wrong = rule(text_of(source))
    assert not wrong, "\n".join(wrong)


BAD = """\
# %% [markdown]
# # 99 A bad lesson
#
# | section | minutes |
# |---|---|
# | 1 All | 50 |

# %% [markdown]
# It takes 3.1 µs, and that tells you all.

# %%
rows = [1, 2]
len(rows)

# %%
draw(rows, alt="It rises.")

# %%
exercises.compare("01.flat", "more")
"""


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        (a_core_of_sixty_cells, ["61 cells in the core"]),
        (a_table_with_minutes, ["50 minutes in the core"]),
        (torch_in_the_cells, ["0 of 3 lines"]),
        (numbers_with_a_source, ["It takes 3.1 µs, and that tells you all."]),
        (
            plain_words,
            ["'tells' (better: says, shows) in: It takes 3.1 µs, and that tells you all."],
        ),
        (outcomes_that_came_out, ["exercises.compare('01.flat', 'more')"]),
        (computed_alternatives, ['draw(rows, alt="It rises.")']),
    ],
)
def test_each_rule_finds_a_bad_lesson(rule: Rule, wrong: list[str], tmp_path: Path) -> None:
    """Each rule says what is wrong in a bad lesson."""
    source = tmp_path / "99_bad.py"
    source.write_text(BAD + "\n# %%\nrows\n" * 56)
    assert rule(LessonText(source)) == wrong


@pytest.mark.parametrize(
    "prose",
    [
        "*Recorded* on an H200: 3.1 µs.",
        "Is it less than 5 % of the reading?",
        "One call every 0.1 s.",
        "The 95 % interval of the median.",
        "Recorded on an H200:\n#\n# | what | takes |\n# |---|---|\n# | a | 3 µs |",
        "`x = 3 ms`",
    ],
)
def test_numbers_that_name_their_source_are_left_alone(prose: str, tmp_path: Path) -> None:
    """Recordings, chosen limits, the name of an interval and code need no other source."""
    source = tmp_path / "99_good.py"
    source.write_text(f"# %% [markdown]\n# # A lesson\n#\n# {prose}\n")
    assert LessonText(source).unsourced == []
