"""The questions that the lessons ask before a measurement, each with the idea behind it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from gpulab.core.errors import UnknownNameError
from gpulab.exercises._history import lesson_of
from gpulab.exercises._lesson_index import N_LESSONS, package_of

_PACKAGES = (
    *(f"gpulab.exercises.lesson_{n:02}" for n in range(N_LESSONS)),
    "gpulab.exercises.cases",
)
_NAME = re.compile(r"(?:case-)?\d\d\w?\.[\w-]+")


@dataclass(frozen=True, slots=True)
class GuessQuestion:
    """A question for a guess; its name is ``"01.naive"``, or empty for a question of your own.

    The guess is a number in ``unit``, or one of the choices. ``counts`` is the rule that judges
    it; by default the unit decides. For ``counts="direction"``, ``base`` is the value that is
    neither more nor less. The review of progress shows ``idea`` to learners whose guess was wrong.
    """

    name: str
    question: str
    unit: str = "µs"
    choices: tuple[str, ...] = ()
    counts: str | None = None
    base: float = 1.0
    idea: str = ""


def is_name(text: str) -> bool:
    """Return whether a text is the name of a question, such as ``"01.naive"``, known or not."""
    return _NAME.fullmatch(text) is not None


def question_of(name: str) -> GuessQuestion:
    """Return the question with this name, or raise `UnknownNameError` with the nearest."""
    own = package_of(lesson_of(name))
    # Only the package of the name is imported, because all of them would take longer.
    packages = [own] if own in _PACKAGES else _PACKAGES
    known = {name: asked for each in packages for name, asked in _questions_in(each).items()}
    if name not in known:
        raise UnknownNameError("prediction", name, known)
    return known[name]


def ideas() -> Mapping[str, str]:
    """Return the idea behind each prediction and drawing, as one sentence, by its name."""
    known: dict[str, str] = {}
    for package in _PACKAGES:
        known |= {name: question.idea for name, question in _questions_in(package).items()}
        known |= getattr(_module(package), "DRAWN", {})
    return known


@cache
def _questions_in(package: str) -> Mapping[str, GuessQuestion]:
    questions: tuple[GuessQuestion, ...] = _module(package).GUESSES
    return MappingProxyType({question.name: question for question in questions})


def _module(package: str) -> Any:  # noqa: ANN401  # modules have no types
    return import_module(f"{package}._guesses")
