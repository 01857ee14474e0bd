"""Give each exercise right, wrong and senseless answers in JupyterLab, and read the verdicts.

The right answer is the lesson's own solution. The wrong ones are changes of it: another letter,
two rows exchanged, twice the number, a function that returns nothing.
"""

import ast
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common.folders import ROOT
from benchmarks.common.markdown import padded_table
from gpulab.lessons import _build as lessons

if TYPE_CHECKING:
    from playwright.sync_api import Locator

SOURCES = sorted((ROOT / "notebooks" / "source").rglob("*.py"))
_MARK = "verdict of "
_ERROR = '[data-mime-type="application/vnd.jupyter.error"]'
_RIGHT = "✓ Right."
# Changed answers that are right, too: the first benchmark has to return any positive time of the
# launch, so twice that passes; and a head start that is twice as long as needed is long enough.
# The GPU's memory moves the meeting point by half a percent, which is less than rounding may.
_ALSO_RIGHT = {
    ("01.benchmark", "wrong: twice"),
    ("07.long-enough", "wrong: twice"),
    ("09.meeting-point", "wrong: n and n_fast_gpu exchanged"),
    ("09.meeting-point", "wrong: n is 40201.005025125625"),
    ("09.meeting-point", "wrong: n_fast_gpu is 40404.0404040404"),
}
_HEAD = ("exercise", "right", "wrong answers", "nonsense", "faults")
# Shown in the notebook before the lesson's own cells, and after each cell that checks an answer.
_BEFORE = "from gpulab import exercises as _exercises\n{}"
_AFTER = """
from IPython.display import display as _display
from benchmarks.lessons.attempts import attempts_at as _attempts_at
for _kind, _given in [*_attempts_at({answer})][{part}]:
    print({mark!r} + _kind)
    _display(exercises.check({exercise_id!r}, _given, **dict(readings={readings})))
"""
# JupyterLab folds what a cell shows beyond fifty outputs, and each attempt makes two.
_PARTS = ("0:20", "20:40", "40:60")


@dataclass(frozen=True, slots=True)
class Check:
    """A call of ``exercises.check`` in a lesson, as source text."""

    exercise_id: str
    answer: str
    readings: str


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdicts that the page showed for one exercise, by kind of answer, and its errors."""

    exercise_id: str
    verdicts: tuple[tuple[str, str], ...]
    errors: tuple[str, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """Verdicts that do not fit the kind of answer, and every stack trace on the page."""
        found = [f"error: {error.splitlines()[-1]}" for error in self.errors]
        for kind, text in self.verdicts:
            if not text:
                found.append(f"{kind}: nothing is shown")
            elif "Traceback" in text:
                found.append(f"{kind}: a stack is shown")
            elif not _is_expected(self.exercise_id, kind, text):
                found.append(f"{kind}: {' '.join(text.split())[:60]}")
        return tuple(found)


def run(names: Sequence[str], *, show: bool) -> tuple[Judged, ...]:
    """Run the lessons in one page, and print a row for each exercise; ``show`` prints verdicts."""
    from tests.support.jupyterlab import Lab, chromium, jupyter

    found: list[Judged] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        jupyter(Path(folder)) as address,
        chromium() as page,
    ):
        lab = Lab(address, page, Path(folder) / "jupyterlab.log")
        for source in SOURCES:
            if not names or source.stem in names or source.stem.split("_")[0] in names:
                of_lesson = [*_judged(lab, source)]
                found += of_lesson
                if show:
                    print("\n".join(_lines(of_lesson)), flush=True)
    print("\n".join(padded_table(_HEAD, [_row(each) for each in found])))
    return tuple(found)


def checks(source: Path) -> list[Check]:
    """Return the calls of ``exercises.check`` of a solved lesson, in their order."""
    return [check for cell in lessons.solved(source).cells for check in _checks_of(cell)]


def _judged(lab: Any, source: Path) -> Iterator[Judged]:  # noqa: ANN401  # of the tests' support
    """Run one solved lesson with cells of attempts added, and read what the page shows."""
    import nbformat

    from tests.support.jupyterlab import upload

    notebook = lessons.solved(source)
    before = "\n".join(
        f"_exercises.check({each.exercise_id!r}, {nonsense})"
        for each in checks(source)
        # Before the lesson has defined anything: a learner may run the cells in any order.
        for nonsense in ("...", "None", "'?'")
    )
    cells = [nbformat.v4.new_code_cell(_BEFORE.format(before))]
    places = {}
    for cell in notebook.cells:
        cells.append(cell)
        for check in _checks_of(cell):
            places[check.exercise_id] = range(len(cells), len(cells) + len(_PARTS))
            cells += [
                nbformat.v4.new_code_cell(_AFTER.format(part=part, mark=_MARK, **asdict(check)))
                for part in _PARTS
            ]
    notebook.cells = cells
    upload(lab.address, source.stem, json.loads(nbformat.writes(notebook)))
    with lab.notebook(source.stem) as shown:
        _run_whatever_happens(lab.page)
        all_cells = shown.locator(".jp-Cell")
        first = all_cells.nth(0).locator(_ERROR).all_inner_texts()
        for exercise_id, indices in places.items():
            yield _read([all_cells.nth(index) for index in indices], exercise_id, first)
            # The errors of the first cell belong to the lesson, so they count for one exercise
            # only.
            first = []


def _run_whatever_happens(page: Any) -> None:  # noqa: ANN401  # a page of playwright
    """Run every cell and wait for all of them; cells with errors must not stop the run."""
    from tests.support.jupyterlab import ALL_HAVE_RUN

    idle = page.get_by_text("Python 3 (ipykernel) | Idle")
    idle.wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(ALL_HAVE_RUN, polling=100)
    idle.wait_for()


def _read(cells: Sequence["Locator"], exercise_id: str, earlier: Sequence[str]) -> Judged:
    """Read the verdicts under the added cells; a line before each one names its attempt."""
    verdicts, kind = [], ""
    for cell in cells:
        for text in cell.locator(".jp-OutputArea-output").all_inner_texts():
            if text.strip().startswith(_MARK):
                kind = text.strip().removeprefix(_MARK)
            else:
                verdicts.append((kind, text.strip()))
    errors = [text for cell in cells for text in cell.locator(_ERROR).all_inner_texts()]
    return Judged(exercise_id, tuple(verdicts), (*earlier, *errors))


def _checks_of(cell: Any) -> list[Check]:  # noqa: ANN401  # a cell of nbformat
    if cell.cell_type != "code" or "exercises.check(" not in cell.source:
        return []
    found = []
    for node in ast.walk(ast.parse(cell.source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "exercises.check":
            exercise_id, answer = (ast.unparse(each) for each in node.args[:2])
            readings = next((ast.unparse(each.value) for each in node.keywords), "None")
            found.append(Check(ast.literal_eval(exercise_id), answer, readings))
    return found


def _lines(found: Sequence[Judged]) -> list[str]:
    return [
        f"{each.exercise_id:24}{kind:34}{' '.join(text.split())[:150]}"
        for each in found
        for kind, text in each.verdicts
    ]


def _is_expected(exercise_id: str, kind: str, text: str) -> bool:
    is_right = kind == "right" or (exercise_id, kind) in _ALSO_RIGHT
    return is_right == text.startswith(_RIGHT)


def _row(found: Judged) -> tuple[str, ...]:
    counts = {name: [0, 0] for name in ("right", "wrong", "nonsense")}
    for kind, text in found.verdicts:
        count = counts[kind.split(":")[0]]
        count[0] += _is_expected(found.exercise_id, kind, text)
        count[1] += 1
    cells = [f"{as_expected} of {all_}" for as_expected, all_ in counts.values()]
    return (found.exercise_id, *cells, "; ".join(found.faults))
