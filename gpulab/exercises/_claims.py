"""Claims of the lessons, with their values on the virtual GPU, on a recorded GPU, and on yours."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from importlib.util import find_spec
from typing import Any

from gpulab import device
from gpulab.core.errors import UnknownNameError
from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean
from gpulab.core.requirements import NAME
from gpulab.core.serialization import parse_json
from gpulab.core.units import format_time
from gpulab.device.measurement import Measurement
from gpulab.exercises import _html
from gpulab.exercises._exercise import is_open
from gpulab.exercises._lesson_index import package_of
from gpulab.exercises.answers import read_number
from gpulab.gpus.provenance import device_label

ClaimValue = float | str

DATA = "lesson_claims.json"
SCHEMA = "gpulab.lesson-claims/1"
WORLDS = ("virtual", "recorded")
_SECONDS = ("s", "ms", "µs", "ns")
_HOLDS = _html.Tone("#009E73", "✓", "Holds here.")
_FAILS = _html.Tone("#D55E00", "✗", "Does not hold here.")
_OPEN = _html.Tone("#0072B2", "?", "Not measured yet.")


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact that a lesson states, with a rule that says for which values it is true.

    Attributes
    ----------
    claim_id
        Lesson and name, for example ``"03.floor-differs"``.
    text
        The fact, as one sentence without its full stop.
    unit
        Unit of the value; empty for a plain number. With a unit of time the value is in seconds.
    holds
        Returns whether the fact is true for a value.
    because
        A reason why it may be false on another machine. It completes the sentence "Does not hold
        here, because ...".

    Examples
    --------
    >>> from gpulab import exercises
    >>> fact = exercises.Claim("03.floor", "An event pair takes time", "s", lambda s: s > 0)
    >>> fact.holds(2e-6)
    True
    """

    claim_id: str
    text: str
    unit: str = ""
    holds: Callable[[Any], bool] = bool
    because: str = "this machine is not the one it was stated for"


@dataclass(frozen=True, slots=True)
class World:
    """The value of a claim in one world: on the virtual GPU or on a recorded one.

    Attributes
    ----------
    name
        "virtual" or "recorded".
    place
        Name of the GPU.
    value
        The value; None if it was not recorded.
    """

    name: str
    place: str
    value: ClaimValue | None


@dataclass(frozen=True, slots=True)
class ClaimReview:
    """A claim with its three values, and whether it is true on the machine in use.

    Attributes
    ----------
    text
        The fact.
    worlds
        Name and value of each world: virtual, recorded and yours.
    holds
        Whether the fact is true here; None if nothing was measured yet.
    because
        A reason why it may be false here.
    """

    text: str
    worlds: tuple[tuple[str, str], ...]
    holds: bool | None
    because: str

    def __str__(self) -> str:
        values = " | ".join(f"{name} {value}" for name, value in self.worlds)
        return visible(f"{self.text}. {values}. {self._verdict}")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            f'<span style="margin-right:1.5em"><em>{clean(name)}</em> {clean(value)}</span>'
            for name, value in self.worlds
        )
        tone = _OPEN if self.holds is None else _HOLDS if self.holds else _FAILS
        why = _html.paragraphs(f"Because {self.because}.") if self.holds is False else ""
        line = f'<p style="margin:0.3em 0">{cells}</p>'
        return _html.box(tone, _html.paragraphs(f"{self.text}.") + line + why)

    @property
    def _verdict(self) -> str:
        if self.holds is None:
            return "Measure first: run the cells above."
        return "Holds here." if self.holds else f"Does not hold here, because {self.because}."


def claim(claim_id: str, *, here: object) -> ClaimReview:
    """Show a fact of a lesson with its value on the virtual GPU, on a recorded GPU, and on yours.

    Parameters
    ----------
    claim_id
        Lesson and name, for example ``"03.floor-differs"``.
    here
        Your own value: a ``Measurement``, a number (seconds for a time), or a word.

    Returns
    -------
    ClaimReview
        The three values, and whether the fact is true on the machine in use.

    Raises
    ------
    UnknownNameError
        If no claim has this id.

    Examples
    --------
    >>> from gpulab import exercises
    >>> print(exercises.claim("06.cold-slower", here=1.3))  # doctest: +ELLIPSIS
    The linear layer takes longer with a cold cache than with a hot one. virtual ... Holds here.
    """
    NAME.check(claim_id=claim_id)
    stated = _claims_of(claim_id.partition(".")[0])
    if claim_id not in stated:
        # If the lesson has no claims, the similar names come from all lessons.
        raise UnknownNameError("claim", claim_id, stated or _saved())
    fact, value = stated[claim_id], _value(here)
    if value is not None:
        _GIVEN[claim_id] = value
    saved = _saved().get(claim_id, {})
    worlds = [(_name(world, saved), _shown(fact, saved.get(world))) for world in WORLDS]
    yours = "not measured" if value is None else f"{_write(fact, value)} ({_place(here)})"
    holds = None if value is None else bool(fact.holds(value))
    return ClaimReview(fact.text, (*worlds, ("yours", yours)), holds, fact.because)


def given() -> Mapping[str, ClaimValue]:
    """Return the values that were passed to :func:`claim` since the kernel started, by id."""
    return dict(_GIVEN)


# The benchmarks that record the claims run a lesson's cells and then read the values from here.
_GIVEN: dict[str, ClaimValue] = {}


def _name(world: str, saved: Mapping[str, World]) -> str:
    place = saved[world].place if world == "recorded" and world in saved else ""
    return f"{world} ({place.removeprefix('NVIDIA ')})" if place else world


def _shown(fact: Claim, world: World | None) -> str:
    return "not recorded" if world is None or world.value is None else _write(fact, world.value)


def _place(here: object) -> str:
    if isinstance(here, Measurement):
        return device_label(here.conditions.device_name, here.source)
    # A plain number does not say where it was measured, so it counts for the GPU in use.
    current = device.current()
    return device_label(current.name, current.source)


def _value(here: object) -> ClaimValue | None:
    if is_open(here):
        return None
    if isinstance(here, Measurement):
        return here.median_s
    if isinstance(here, bool):  # a claim that is simply true or false; read_number refuses bools
        return float(here)
    return here if isinstance(here, str) else read_number(here)


def _write(fact: Claim, value: ClaimValue) -> str:
    if isinstance(value, str):
        return value
    if fact.unit in _SECONDS:
        return format_time(value)
    return f"{value:,.4g} {fact.unit}".strip()


@cache
def _claims_of(lesson: str) -> Mapping[str, Claim]:
    """Return the claims of a lesson, by their ids; empty if the lesson has none."""
    room = package_of(lesson)
    # The first test comes first: find_spec raises for a module in a package that does not exist.
    if find_spec(room) is None or find_spec(f"{room}._claims") is None:
        return {}
    stated: tuple[Claim, ...] = import_module(f"{room}._claims").CLAIMS
    return {each.claim_id: each for each in stated}


@cache
def _saved() -> Mapping[str, Mapping[str, World]]:
    """Return the values that gpulab ships: for each claim, its value in each world."""
    text = resources.files("gpulab").joinpath("data", DATA).read_text("utf-8")
    content: Any = parse_json(text)
    return {
        claim_id: {
            name: World(name, str(saved[name]["device_name"]), saved[name]["value"])
            for name in WORLDS
            if name in saved
        }
        for claim_id, saved in content["claims"].items()
    }
