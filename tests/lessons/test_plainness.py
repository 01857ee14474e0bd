"""Each lesson begins with a number, fits a lab hour, and shows code as people write it."""

import importlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from benchmarks.lessons.minutes import MOST_MINUTES
from gpulab.core.errors import NotebookError
from gpulab.lessons._form import check_form
from tests.support.lesson_text import LessonText, literal_outcomes, words_to_mend
from tests.support.lessons import CASES, SOURCES

LEAST_SHARE = 0.5  # of a case's lines
MOST_PREDICTIONS, MOST_EXERCISES, MOST_OPENING = 5, 2, 4
PATIENTS = 6  # in a clinic each patient is a guess and an exercise

Rule = Callable[[LessonText], list[str]]
text_of = cache(LessonText)  # read once for all rules


def form(lesson: LessonText) -> list[str]:
    """Expect cells of at most twelve lines, with a median of four, that show something."""
    try:
        check_form(lesson.source.stem, type("Notebook", (), {"cells": lesson.cells}))
    except NotebookError as error:
        return [str(error)]
    return []


def a_core_of_35_minutes(lesson: LessonText) -> list[str]:
    """Expect a core that leaves ten minutes of a lab hour of 45 for questions and outputs."""
    minutes = lesson.core.minutes
    return [f"{minutes:.0f} minutes in the core"] if round(minutes) > MOST_MINUTES else []


def few_questions(lesson: LessonText) -> list[str]:
    """Expect at most five predictions and two exercises in the core, and ``benchmark(fn)``."""
    exercises = {name for name in lesson.core.exercises if not name.endswith(".benchmark")}
    is_clinic = lesson.source.stem.endswith("clinic")
    found = (
        (lesson.core.n_predictions, "predictions", PATIENTS if is_clinic else MOST_PREDICTIONS),
        (len(exercises), "exercises", PATIENTS if is_clinic else MOST_EXERCISES),
    )
    return [f"{count} {what} in the core" for count, what, most in found if count > most]


def own_code_in_the_cells(lesson: LessonText) -> list[str]:
    """Expect two of three code cells of the core with code that a learner would write at work."""
    n_own, n_cells = lesson.core.n_own, len(lesson.core.codes)
    return [] if 3 * n_own >= 2 * n_cells else [f"{n_own} of {n_cells} cells"]


def a_number_at_once(lesson: LessonText) -> list[str]:
    """Expect at most four cells before the first number of an experiment."""
    n_cells = lesson.core.n_cells_before_a_number
    return [f"{n_cells} cells before a number"] if n_cells > MOST_OPENING else []


def torch_in_the_cells(lesson: LessonText) -> list[str]:
    """Expect half of a case's visible code to touch torch, a clock or an explorer.

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
    numbers_with_a_source,
    plain_words,
    outcomes_that_came_out,
    computed_alternatives,
    keys_out_of_sight,
)
PATTERN: tuple[Rule, ...] = (
    a_core_of_35_minutes,
    few_questions,
    own_code_in_the_cells,
    a_number_at_once,
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


def id_of(source: Path) -> str:
    """Return the number of a lesson, with its letter: "08b"."""
    return source.stem.split("_")[0]


@pytest.mark.parametrize("source", SOURCES, ids=id_of)
@pytest.mark.parametrize("rule", [*RULES, *PATTERN], ids=lambda rule: rule.__name__)
def test_lessons_are_plain(rule: Rule, source: Path) -> None:
    """Every lesson follows every rule."""
    wrong = rule(text_of(source))
    assert not wrong, "\n".join(wrong)


BAD = """\
# %% [markdown]
# # 99 A bad lesson

# %% [markdown]
# It takes 3.1 µs, and that tells you all.

# %%
from gpulab import exercises

rows = [1, 2]
len(rows)

# %%
draw(rows, alt="It rises.")

# %%
exercises.ask("99.a")

# %%
exercises.check("99.b", exercises.check("99.c", ...))

# %%
exercises.continue_from("99.benchmark")

# %%
exercises.compare("99.x", "more")
"""


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        (a_core_of_35_minutes, ["67 minutes in the core"]),
        (few_questions, ["56 predictions in the core", "3 exercises in the core"]),
        (own_code_in_the_cells, ["3 of 62 cells"]),
        (a_number_at_once, ["7 cells before a number"]),
        (torch_in_the_cells, ["0 of 3 lines"]),
        (numbers_with_a_source, ["It takes 3.1 µs, and that tells you all."]),
        (
            plain_words,
            ["'tells' (better: says, shows) in: It takes 3.1 µs, and that tells you all."],
        ),
        (outcomes_that_came_out, ["exercises.compare('99.x', 'more')"]),
        (computed_alternatives, ['draw(rows, alt="It rises.")']),
    ],
)
def test_each_rule_finds_a_bad_lesson(rule: Rule, wrong: list[str], tmp_path: Path) -> None:
    """Each rule says what is wrong in a bad lesson."""
    source = tmp_path / "99_bad.py"
    source.write_text(BAD + '\n# %%\nexercises.predict("99.x")\n' * 56)
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
