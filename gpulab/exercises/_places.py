"""Find the lesson, the section and the cell of a prediction or an exercise."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from gpulab.errors import NotebookError, UnknownNameError
from gpulab.exercises._rooms import unit_of
from gpulab.lessons import notebooks_folder, shipped
from gpulab.requirements import TEXT
from gpulab.serialization import parse_json

DATA = "lesson_predictions.json"
# The lessons whose exercises or predictions this kernel has used: `progress()` shows these.
MET: set[str] = set()
_HEADING = re.compile(r"^(#{1,2}) +(.+)$", re.MULTILINE)
_PREDICTION = re.compile(r'\bname="((?:case-)?\d\d\w?\.[\w-]+)"')
_EXERCISE = re.compile(r'\bexercises\.(?:ask|check)\(\s*"([\w.-]+)"')


@dataclass(frozen=True, slots=True)
class Place:
    """A cell of a lesson.

    Attributes
    ----------
    lesson
        Title of the lesson, such as ``"04 Warm-up"``.
    section
        Heading of the section.
    link
        Address of the cell, from the folder of the lessons: file and cell.
    """

    lesson: str
    section: str
    link: str

    def __str__(self) -> str:
        return f"{self.lesson}, {self.section}" if self.section else self.lesson


@dataclass(slots=True)
class LessonPlaces:
    """The predictions and the exercises of one notebook.

    Attributes
    ----------
    title
        Title of the lesson, such as ``"04 Warm-up"``.
    predictions
        The place of each prediction, by its name.
    exercise_ids
        Ids of the exercises, in the order of the notebook.
    """

    title: str
    predictions: dict[str, Place] = field(default_factory=dict)
    exercise_ids: list[str] = field(default_factory=list)


def place_of(name: str) -> Place | None:
    """Return the place of a prediction in the lessons, or None if no lesson has it."""
    lesson = lessons().get(name.partition(".")[0])
    return None if lesson is None else lesson.predictions.get(name)


def lessons_with(exercise_id: str) -> list[str]:
    """Return the lessons whose notebooks ask an exercise.

    The id does not say it: exercise "08.x" may be in the notebook of lesson 08b.
    """
    return [name for name, found in lessons().items() if exercise_id in found.exercise_ids]


def check_lesson(lesson: str) -> None:
    """Raise an error unless there is a lesson with this number.

    Raises
    ------
    UnknownNameError
        If no lesson has this number; the message suggests the nearest.
    """
    TEXT.check(lesson=lesson)
    if lesson not in lessons():
        raise UnknownNameError("lesson", lesson, lessons())


@cache
def ideas() -> Mapping[str, str]:
    """Return the idea behind each prediction, as one sentence, by the prediction's name."""
    text = resources.files("gpulab").joinpath("data", DATA).read_text("utf-8")
    content: Any = parse_json(text)
    return {str(name): str(idea) for name, idea in content["ideas"].items()}


@cache
def lessons() -> Mapping[str, LessonPlaces]:
    """Return the places in all lessons and cases, by their number (``"08b"``, ``"case-03"``)."""
    try:
        # Notebooks are read as text, because progress covers lessons that this kernel never ran.
        folder = notebooks_folder()
    except NotebookError:  # an incomplete installation has no links, and all else works
        return {}
    paths = [path for path in shipped(folder) if path.suffix == ".ipynb"]
    return {unit_of(path): _places_in(folder, path) for path in sorted(paths, key=unit_of)}


def _places_in(folder: Path, path: Path) -> LessonPlaces:
    notebook: Any = parse_json((folder / path).read_bytes())
    found, section = LessonPlaces(path.stem), ""
    for cell_type, cell_id, source in _cells(notebook):
        if cell_type == "markdown":
            for level, heading in _HEADING.findall(source):
                # Only the first heading of this level is the title of the lesson.
                if level == "#":
                    found.title = heading if found.title == path.stem else found.title
                section = "" if level == "#" else heading
            continue
        place = Place(found.title, section, f"{path.as_posix()}#cell-id={cell_id}")
        found.predictions |= dict.fromkeys(_PREDICTION.findall(source), place)
        found.exercise_ids += [
            each for each in _EXERCISE.findall(source) if each not in found.exercise_ids
        ]
    return found


def _cells(notebook: Any) -> Iterator[tuple[str, str, str]]:  # noqa: ANN401  # as JSON has it
    for cell in notebook["cells"]:
        yield cell["cell_type"], cell["id"], "".join(cell["source"])
