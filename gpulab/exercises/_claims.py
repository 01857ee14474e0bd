"""Claims of the lessons, with their values on the virtual GPU, on recorded GPUs, and on yours."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from importlib.util import find_spec
from typing import Any

from gpulab import device
from gpulab.core.errors import InvalidOptionError, UnknownNameError, shown
from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean
from gpulab.core.requirements import NAME
from gpulab.core.serialization import parse_json
from gpulab.core.units import format_ratio, format_time
from gpulab.device.measurement import Measurement
from gpulab.exercises import _html
from gpulab.exercises._exercise import is_open
from gpulab.exercises._lesson_index import package_of
from gpulab.exercises.answers import read_number
from gpulab.gpus.provenance import device_label

ClaimValue = float | str

DATA = "lesson_claims.json"
SCHEMA = "gpulab.lesson-claims/2"
_SECONDS = ("s", "ms", "µs", "ns")
_HOLDS = _html.Tone("#009E73", "✓", "Holds here.")
_FAILS = _html.Tone("#D55E00", "✗", "Does not hold here.")
_OPEN = _html.Tone("#0072B2", "?", "Not measured yet.")
# From this factor on, the card says that the virtual GPU shows too much or too little.
_FAR = 1.5


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
        A possible reason why it is false on another machine, as a clause.
    differs
        Why the virtual GPU and the recorded GPUs disagree, as whole sentences; empty if the fact
        is true for all of them.

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
    differs: str = ""


@dataclass(frozen=True, slots=True)
class World:
    """The saved value of a claim on one GPU, which is called "H200", without maker and memory.

    The source is "virtual" or "recorded".
    """

    source: str
    gpu: str
    value: ClaimValue

    def __str__(self) -> str:
        return f"{self.source} ({self.gpu})" if self.source == "recorded" else self.source


@dataclass(frozen=True, slots=True)
class ClaimReview:
    """A fact of a lesson with its value on each GPU, and whether it is true there.

    ``worlds`` has name, value and truth for the virtual GPU, each recorded one and yours; the
    truth is None without a value. ``why`` says where they disagree, and why the fact may be false
    here; it is empty if they agree.
    """

    text: str
    worlds: tuple[tuple[str, str, bool | None], ...]
    why: str

    @property
    def holds(self) -> bool | None:
        """Whether the fact is true here; None if nothing was measured yet."""
        return self.worlds[-1][2]

    def __str__(self) -> str:
        *others, (_, here, _) = self.worlds
        values = [f"{name} {value}{_TRUTH[truth]}" for name, value, truth in others]
        line = " | ".join([*values, f"yours {here}"])
        return visible(" ".join(filter(None, (f"{self.text}. {line}. {self._verdict}", self.why))))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            f'<span style="margin-right:1.5em;display:inline-block"><em>{clean(name)}</em> '
            f"{clean(value)}{clean(_TRUTH[truth])}</span>"
            for name, value, truth in self.worlds
        )
        tone = _OPEN if self.holds is None else _HOLDS if self.holds else _FAILS
        why = _html.paragraphs(self.why) if self.why else ""
        line = f'<p style="margin:0.3em 0">{cells}</p>'
        return _html.box(tone, _html.paragraphs(f"{self.text}.") + line + why)

    @property
    def _verdict(self) -> str:
        tones = {None: "Measure first: run the cells above.", True: _HOLDS.word}
        return tones.get(self.holds, _FAILS.word)


_TRUTH = {None: "", True: " ✓", False: " ✗"}


def claim(claim_id: str, *, here: object) -> ClaimReview:
    """Show a fact of a lesson with its value on the virtual GPU, on recorded GPUs, and on yours.

    Parameters
    ----------
    claim_id
        Lesson and name, for example ``"03.floor-differs"``.
    here
        Your own value: a ``Measurement``, a number (seconds for a time), or a word.

    Returns
    -------
    ClaimReview
        The values, whether the fact is true for each, and why the GPUs disagree if they do.

    Raises
    ------
    UnknownNameError
        If no claim has this id.
    InvalidOptionError
        If ``here`` is a word and the claim is about a number.

    Examples
    --------
    >>> from gpulab import exercises
    >>> print(exercises.claim("06.rotation-pays", here=1.3))  # doctest: +ELLIPSIS
    In rotation a softmax takes longer than after a flush that reads. virtual ... Holds here...
    """
    NAME.check(claim_id=claim_id)
    stated = _claims_of(claim_id.partition(".")[0])
    if claim_id not in stated:
        # If the lesson has no claims, the similar names come from all lessons.
        raise UnknownNameError("claim", claim_id, stated or _saved())
    fact, value = stated[claim_id], _value(here)
    saved = _saved().get(claim_id, ())
    if isinstance(value, str) and saved and not isinstance(saved[0].value, str):
        raise InvalidOptionError(
            f"here={shown(value)}; this claim is about a number. Pass the number or the "
            "Measurement of a cell above"
        )
    worlds = [
        (str(world), _write(fact, world.value), _truth(fact, world.value)) for world in saved
    ]
    name, source = _origin(here)
    place = device_label(name, source)
    yours = "not measured" if value is None else f"{_write(fact, value)} ({place})"
    truth = None if value is None else _truth(fact, value)
    if value is not None:
        _GIVEN[claim_id] = value
    why = [
        _disagreement(fact, saved),
        _reason(fact, saved, name if source == "virtual" else "") if truth is False else "",
    ]
    return ClaimReview(fact.text, (*worlds, ("yours", yours, truth)), " ".join(filter(None, why)))


def _truth(fact: Claim, value: ClaimValue) -> bool:
    return bool(fact.holds(value))


def _disagreement(fact: Claim, saved: tuple[World, ...]) -> str:
    """Return where the virtual GPU and the recorded ones disagree; empty if they are close."""
    if len({_truth(fact, world.value) for world in saved}) > 1:
        return fact.differs
    values = {world: world.value for world in saved if not isinstance(world.value, str)}
    virtual = next((world for world in values if world.source == "virtual"), None)
    if virtual is None or values[virtual] <= 0:
        return ""
    factors = {
        world.gpu: values[virtual] / value
        for world, value in values.items()
        if world is not virtual and value > 0
    }
    parts = (
        _far(words, {gpu: factor**sign for gpu, factor in factors.items()})
        for sign, words in _strengths(fact)
    )
    return " ".join(filter(None, parts))


def _strengths(fact: Claim) -> tuple[tuple[int, str], ...]:
    """Return what a large and a small factor, virtual over recorded, mean for a claim."""
    much, little = (fact.holds(value) for value in (1e12, 0.0))
    if much == little:  # the rule names no direction
        return ((1, "The virtual GPU reads more"), (-1, "The virtual GPU reads less"))
    more, less = (1, -1) if much else (-1, 1)
    return (
        (more, "The virtual GPU exaggerates this"),
        (less, "The virtual GPU shows too little of this"),
    )


def _far(words: str, factors: Mapping[str, float]) -> str:
    far = [f"the {gpu}" for gpu, factor in factors.items() if factor > _FAR]
    return f"{words}, compared with {' and '.join(far)}." if far else ""


def _reason(fact: Claim, saved: tuple[World, ...], virtual_name: str) -> str:
    """Return why a claim may be false here, or what to check if it should be true.

    ``virtual_name`` is the name of the virtual GPU in use; empty for a CUDA GPU.
    """
    virtual = next((world for world in saved if world.source == "virtual"), None)
    if virtual is not None and virtual_name and not _truth(fact, virtual.value):
        return ""  # the disagreement of the GPUs has said why
    # Another virtual GPU may differ, as another CUDA GPU may.
    if virtual is None or virtual.gpu not in virtual_name.split():
        return f"A possible reason: {fact.because}."
    return (
        f"The virtual GPU gave {_write(fact, virtual.value)} when this lesson was made, so "
        "something differs in this notebook. Restart the kernel and run all cells in order."
    )


def given() -> Mapping[str, ClaimValue]:
    """Return the values that were passed to :func:`claim` since the kernel started, by id."""
    return dict(_GIVEN)


# The benchmarks that record the claims run a lesson's cells and then read the values from here.
_GIVEN: dict[str, ClaimValue] = {}


def _origin(here: object) -> tuple[str, str]:
    """Return the name of the GPU of a value, and its source, such as "virtual"."""
    if isinstance(here, Measurement):
        return here.conditions.device_name, here.source
    # A plain number does not say where it was measured, so it counts for the GPU in use.
    current = device.current()
    return current.name, current.source


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
    # Three digits, as a guess is compared; format_ratio takes no negative number.
    sign = "-" if value < 0 else ""
    return f"{sign}{format_ratio(abs(value))} {fact.unit}".strip()


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
def _saved() -> Mapping[str, tuple[World, ...]]:
    """Return the values that gpulab ships: for each claim the virtual one, then the recorded."""
    text = resources.files("gpulab").joinpath("data", DATA).read_text("utf-8")
    content: Any = parse_json(text)
    return {name: tuple(_worlds(saved)) for name, saved in content["claims"].items()}


def _worlds(saved: Mapping[str, Any]) -> Iterator[World]:
    if "virtual" in saved:
        yield World("virtual", "H200", saved["virtual"])
    for gpu, value in saved.get("recorded", {}).items():
        # "NVIDIA H100 80GB HBM3" is an H100 on the card.
        yield World("recorded", gpu.removeprefix("NVIDIA ").split()[0], value)
