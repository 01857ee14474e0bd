"""Each lesson begins with a number, fits a lab hour, and shows code as people write it."""

import ast
import importlib
import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from benchmarks.lessons.minutes import MOST_MINUTES
from gpulab.lessons._build import BEGIN_SOLUTION, EXTRAS
from tests.support.lesson_text import LessonText, literal_outcomes, words_to_mend
from tests.support.lessons import CASES, SOURCES

MOST_LINES, MOST_MEDIAN = 12, 4
LEAST_SHARE = 0.5  # of a case's lines
MOST_PREDICTIONS, MOST_EXERCISES, MOST_OPENING = 5, 2, 4
PATIENTS = 6  # in a clinic each patient is a guess and an exercise

_QUESTION = re.compile(r"^\w+ = exercises\.(?:predict|draw)\(\n.*?^\)$", re.MULTILINE | re.DOTALL)

Rule = Callable[[LessonText], list[str]]
text_of = cache(LessonText)  # read once for all rules


def _plain_cells(lesson: LessonText) -> list[str]:
    """Return the code of all cells that are no exercises; a question counts as one line."""
    return [
        _QUESTION.sub("question", cell.source)
        for cell in lesson.cells
        if cell.cell_type == "code"
        and "exercise" not in cell.metadata.get("tags", ())
        and BEGIN_SOLUTION not in cell.source
    ]


def short_cells(lesson: LessonText) -> list[str]:
    """Expect cells of at most twelve lines of code, with a median of four."""
    cells = _plain_cells(lesson)
    sizes = [sum(bool(line.strip()) for line in code.splitlines()) for code in cells]
    long = [code for code, size in zip(cells, sizes, strict=True) if size > MOST_LINES]
    return [*long, *(["a median of more than 4 lines"] if median(sizes) > MOST_MEDIAN else [])]


def cells_that_show_something(lesson: LessonText) -> list[str]:
    """Expect an expression or a magic at the end of a cell, or a definition alone."""
    shown = ast.Expr | ast.FunctionDef | ast.ClassDef
    return [code for code in _plain_cells(lesson) if not isinstance(_last(code), shown)]


def _last(code: str) -> ast.stmt:
    return ast.parse(TransformerManager().transform_cell(code)).body[-1]


def headings_in_order(lesson: LessonText) -> list[str]:
    """Expect one title, perhaps another one for the extras, and no level that is left out."""
    texts = (cell.source for cell in lesson.cells if cell.cell_type == "markdown")
    listings = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
    headings = [
        (len(marks), name)
        for text in texts
        for marks, name in re.findall(r"^(#+) +(.+)$", listings.sub("", text), re.MULTILINE)
    ]
    titles = [name for level, name in headings if level == 1]
    wrong = [name for (before, _), (level, name) in pairwise(headings) if level > before + 1]
    is_fine = headings[0][0] == 1 and titles[1:] in ([], [EXTRAS])
    return wrong if is_fine else [*wrong, f"titles: {titles}"]


def a_core_of_35_minutes(lesson: LessonText) -> list[str]:
    """Expect a core that leaves ten minutes of a lab hour of 45 for questions and outputs."""
    minutes = lesson.core.minutes
    return [f"{minutes:.0f} minutes in the core"] if round(minutes) > MOST_MINUTES else []


def few_questions(lesson: LessonText) -> list[str]:
    """Expect at most five predictions and two exercises in the core, and ``benchmark(fn)``."""
    exercises = {name for name in lesson.core.exercises if not name.endswith(".benchmark")}
    is_clinic = lesson.source.stem.endswith("clinic")
    counted = (
        (lesson.core.n_predictions, "predictions", PATIENTS if is_clinic else MOST_PREDICTIONS),
        (len(exercises), "exercises", PATIENTS if is_clinic else MOST_EXERCISES),
    )
    return [f"{count} {what} in the core" for count, what, most in counted if count > most]


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
    touched, visible = lesson.code_lines()
    return [] if touched >= LEAST_SHARE * visible else [f"{touched} of {visible} lines"]


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
    return [call for source in code for call in literal_outcomes(source)]


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
    short_cells,
    cells_that_show_something,
    headings_in_order,
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
    short_cells,
    cells_that_show_something,
    headings_in_order,
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
#
# ```
# # no heading
# ```

# %% [markdown]
# ### Too deep
#
# # Another title

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


LONG = "\n".join(f"x = {number}" for number in range(13))


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        (short_cells, [LONG]),
        (cells_that_show_something, [LONG]),
        (headings_in_order, ["Too deep", "titles: ['99 A bad lesson', 'Another title']"]),
        (a_core_of_35_minutes, ["68 minutes in the core"]),
        (few_questions, ["56 predictions in the core", "3 exercises in the core"]),
        (own_code_in_the_cells, ["3 of 63 cells"]),
        (a_number_at_once, ["8 cells before a number"]),
        (torch_in_the_cells, ["0 of 16 lines"]),
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
    predictions = '\n# %%\nexercises.predict("99.x")\n' * 56
    source.write_text(f"{BAD}{predictions}\n# %%\n{LONG}\n")
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
