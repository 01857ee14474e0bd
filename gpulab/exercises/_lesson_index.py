"""Find the lesson, the section and the cell of a prediction or an exercise."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from gpulab.core.errors import UnknownNameError
from gpulab.core.requirements import TEXT
from gpulab.core.serialization import parse_json
from gpulab.lessons import notebooks_folder, shipped

N_LESSONS = 14  # by their numbers, 00 to 13; 07b counts as 07
COURSE = "course"
# The lessons whose exercises or predictions this kernel has used: `progress()` shows these.
MET: set[str] = set()
_HEADING = re.compile(r"^(#{1,2}) +(.+)$", re.MULTILINE)
_PREDICTION = re.compile(
    r"""\bexercises\.predict\(\s*["']([\w.-]+)["']|\bname=["']((?:case-)?\d\d\w?\.[\w-]+)["']"""
)
_EXERCISE = re.compile(r'\bexercises\.(?:ask|check|continue_from)\(\s*"([\w.-]+)"')


@dataclass(frozen=True, slots=True)
class LessonCell:
    """A cell of a lesson with its section; the link has file and cell, from the lessons."""

    lesson: str
    section: str
    link: str

    def __str__(self) -> str:
        return f"{self.lesson}, {self.section}" if self.section else self.lesson


@dataclass(slots=True)
class LessonContents:
    """The predictions' cells by name and the exercises of one notebook, in its order.

    ``is_further`` has the ids of the exercises, and whether the heading "Going further" comes
    before each.
    """

    title: str
    predictions: dict[str, LessonCell] = field(default_factory=dict)
    is_further: dict[str, bool] = field(default_factory=dict)


def cell_of(name: str) -> LessonCell | None:
    """Return the cell of a lesson that asks a prediction, or None if no lesson has it."""
    lesson = lessons().get(name.partition(".")[0])
    return None if lesson is None else lesson.predictions.get(name)


def lessons_with(exercise_id: str) -> list[str]:
    """Return the lessons whose notebooks ask an exercise.

    The id does not say it: exercise "08.x" may be in the notebook of lesson 08b.
    """
    return [name for name, contents in lessons().items() if exercise_id in contents.is_further]


def package_of(unit: str) -> str:
    """Return the package with the exercises of a lesson (``"03"``, ``"08b"``) or ``"case-03"``.

    All cases share one package.
    """
    name = "cases" if unit.startswith("case-") else f"lesson_{unit[:2]}"
    return f"gpulab.exercises.{name}"


def unit_of(notebook: Path) -> str:
    """Return the first part of a notebook's ids: ``"08b"`` for a lesson, else ``"case-03"``."""
    number = notebook.stem.partition("_")[0]
    return f"case-{number}" if notebook.parent.name == "cases" else number


def check_lesson(lesson: str | None) -> None:
    """Raise `UnknownNameError` unless this is a lesson, the course, or None."""
    TEXT.or_none.check(lesson=lesson)
    if lesson is not None and lesson != COURSE and lesson not in lessons():
        raise UnknownNameError("lesson", lesson, lessons())


@cache
def lessons() -> Mapping[str, LessonContents]:
    """Return the contents of all lessons and cases, by their number (``"08b"``, ``"case-03"``)."""
    # Notebooks are read as text, because progress covers lessons that this kernel never ran.
    folder = notebooks_folder()
    paths = [path for path in shipped(folder) if path.suffix == ".ipynb"]
    return {unit_of(path): _contents_of(folder, path) for path in sorted(paths, key=unit_of)}


def _contents_of(folder: Path, path: Path) -> LessonContents:
    notebook: Any = parse_json((folder / path).read_bytes())
    contents, section = LessonContents(path.stem), ""
    is_further = False
    for cell_type, cell_id, source in _cells(notebook):
        if cell_type == "markdown":
            for level, heading in _HEADING.findall(source):
                if contents.title == path.stem:
                    contents.title = heading
                section = "" if level == "#" else heading
                is_further |= (level, heading) == ("#", "Going further")
            continue
        cell = LessonCell(contents.title, section, f"{path.as_posix()}#cell-id={cell_id}")
        names = (named or drawn for named, drawn in _PREDICTION.findall(source))
        contents.predictions |= dict.fromkeys(names, cell)
        for exercise_id in _EXERCISE.findall(source):
            contents.is_further.setdefault(exercise_id, is_further)
    return contents


def _cells(notebook: Any) -> Iterator[tuple[str, str, str]]:  # noqa: ANN401  # as JSON has it
    for cell in notebook["cells"]:
        yield cell["cell_type"], cell["id"], "".join(cell["source"])
