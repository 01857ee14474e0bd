"""Options are read off the front of the line; the code behind them is kept byte for byte."""

import ast
import difflib
import keyword
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError

_MINUS_HINT = "code that begins with a minus goes after --"


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked of one timed cell, already checked.

    Attributes
    ----------
    inner_loops, n_samples
        Calls in a sample, and samples; ``None`` samples until precise enough.
    n_digits
        Significant digits of the printed times.
    quiet, returns_result, save_as
        Print nothing; return the measurement; store it under a name.
    method, backend
        How to time, and on which kind of GPU.
    hot, cold, flush
        State of the cache before each sample, and how a cold one is made.
    floor
        Which floor is taken off.
    climbs, draws_timeline
        Time by every method; show a timeline of one call.
    versus
        Name of the measurement, or of the function, to compare with.
    n_warmup, precision, max_time_s
        As in :func:`gpulab.measure`.
    seed, stream
        Seed of PyTorch's random numbers; name of the user's stream.
    runs_after
        Execute the cell once more, untimed, in the user's namespace.
    """

    inner_loops: int = 1
    n_samples: int | None = None
    n_digits: int = 3
    quiet: bool = False
    returns_result: bool = False
    save_as: str | None = None
    method: str = "calibrated"
    hot: bool = False
    cold: bool = False
    flush: str = "read"
    floor: str = "work"
    climbs: bool = False
    draws_timeline: bool = False
    versus: str | None = None
    backend: str = "auto"
    n_warmup: int | None = None
    precision: float = 0.01
    max_time_s: float = 1.0
    seed: int | None = None
    stream: str | None = None
    runs_after: bool = False

    def __post_init__(self) -> None:
        if self.returns_result and self.runs_after:
            raise UsageError(
                "-o and --run both want to be the cell's result; use -v NAME with --run"
            )
        for first, second, both in (
            ("--hot", "--cold", self.hot and self.cold),
            ("--ladder", "--timeline", self.climbs and self.draws_timeline),
            ("--ladder", "--vs", self.climbs and self.versus is not None),
            ("--timeline", "--vs", self.draws_timeline and self.versus is not None),
        ):
            if both:
                raise UsageError(f"{first} and {second} exclude each other; use one of them")

    @property
    def cache(self) -> str | None:
        """State of the cache that was asked for; None leaves it to the method."""
        return "hot" if self.hot else "cold" if self.cold else None


@dataclass(frozen=True, slots=True)
class _Value:
    """How the text of a value is read, and how to say what was wanted."""

    read: Callable[[str], Any]
    accepts: Callable[[Any], bool]
    wanted: str


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


_BACKENDS = ("auto", "cuda", "virtual")
_COUNT = _Value(int, lambda n: n >= 1, "a whole number, at least 1")
_NAME = _Value(str, _is_name, "the name of a variable")
_FLAG = _Value(str, bool, "alone, without a value")

# Each spelling, the field that it sets, and the value that it takes.
_OPTIONS: dict[str, tuple[str, _Value]] = {
    "-n": ("inner_loops", _COUNT),
    "-r": ("n_samples", _COUNT),
    "-p": ("n_digits", _Value(int, range(1, 16).__contains__, "a whole number from 1 to 15")),
    "-q": ("quiet", _FLAG),
    "-o": ("returns_result", _FLAG),
    "-v": ("save_as", _NAME),
    "--save": ("save_as", _NAME),
    "--method": ("method", _Value(str, bool, "the name of a timing method")),
    "--hot": ("hot", _FLAG),
    "--cold": ("cold", _FLAG),
    "--flush": ("flush", _Value(str, bool, "the name of a flush")),
    "--floor": ("floor", _Value(str, bool, "the name of a floor")),
    "--ladder": ("climbs", _FLAG),
    "--timeline": ("draws_timeline", _FLAG),
    "--vs": ("versus", _NAME),
    "--backend": ("backend", _Value(str, _BACKENDS.__contains__, "auto, cuda or virtual")),
    "--warmup": ("n_warmup", _Value(int, lambda n: n >= 0, "a whole number, 0 or more")),
    "--precision": (
        "precision",
        _Value(float, lambda x: 0 < x < 1, "between 0 and 1, such as 0.01 for 1 %"),
    ),
    "--max-time": (
        "max_time_s",
        _Value(float, lambda x: 0 < x < math.inf, "a number of seconds above 0"),
    ),
    "--seed": ("seed", _Value(int, lambda n: 0 <= n < 2**64, "a whole number, 0 or more")),
    "--stream": ("stream", _NAME),
    "--run": ("runs_after", _FLAG),
}


def parse_options(line: str, *, is_cell: bool) -> tuple[Options, str]:
    """Split a magic's line into its options and the code behind them.

    What begins with one minus and cannot be read as options, but is Python, is code:
    ``-a + 2`` needs no ``--`` in front.

    Parameters
    ----------
    line
        The raw line, as the user typed it.
    is_cell
        Whether the code on the line is the setup of a cell.

    Returns
    -------
    tuple of Options and str
        The checked options, and the rest of the line without the blanks around it.

    Raises
    ------
    UsageError
        If an option is unknown, or its value missing or unusable.
    """
    given: dict[str, object] = {}
    rest = line.strip()
    while rest.startswith("-"):
        word, after = _split_word(rest)
        if word == "--":
            rest = after
            break
        # What fails as an option may still be code, such as -norm(a).
        try:
            found, remaining = _read_word(word, after)
        except UsageError:
            if is_cell or not _is_code(rest):
                raise
            break
        given |= found
        rest = remaining
    return Options(**given), rest  # type: ignore[arg-type]  # the table names fields and their types


def _split_word(text: str) -> tuple[str, str]:
    word = re.match(r"\S*", text)[0]  # type: ignore[index]  # the pattern matches any text
    return word, text[len(word) :].lstrip()


def _read_word(word: str, after: str) -> tuple[dict[str, object], str]:
    """Read one long option or one cluster of short ones, like ``-qn10``."""
    return _read_long(word, after) if word.startswith("--") else _read_cluster(word, after)


def _read_long(word: str, after: str) -> tuple[dict[str, object], str]:
    name, equals, attached = word.partition("=")
    if name not in _OPTIONS:
        raise _unknown(name)
    field, value = _OPTIONS[name]
    if value is _FLAG:
        if equals:
            raise UsageError(f"{word}; {name} stands alone, without a value")
        return {field: True}, after
    if not equals:
        attached, after = _split_word(after)
    return {field: _read_value(name, attached, value)}, after


def _read_cluster(word: str, after: str) -> tuple[dict[str, object], str]:
    found: dict[str, object] = {}
    # As in getopt: flags may stand together, and a value may follow its letter directly.
    for position, letter in enumerate(word[1:], start=2):
        name = f"-{letter}"
        if name not in _OPTIONS:
            raise _unknown(word)
        field, value = _OPTIONS[name]
        if value is _FLAG:
            found[field] = True
            continue
        attached = word[position:]
        if not attached:
            attached, after = _split_word(after)
        return found | {field: _read_value(name, attached, value)}, after
    return found, after


def _read_value(name: str, text: str, value: _Value) -> object:
    if not text:
        raise UsageError(f"{name} has no value; it must be {value.wanted}")
    try:
        result = value.read(text)
    except ValueError:
        result = None
    if result is None or not value.accepts(result):
        raise UsageError(f"{name} {text}; it must be {value.wanted}")
    return result


def _unknown(word: str) -> UsageError:
    near = difflib.get_close_matches(word.lower(), _OPTIONS, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}? " if near else ""
    known = ", ".join(_OPTIONS)
    return UsageError(f"unknown option {word}; {hint}Known: {known}; {_MINUS_HINT}")


def _is_code(text: str) -> bool:
    """Tell code that begins with a minus from a mistaken option."""
    if text.startswith("--") or text in _OPTIONS:
        return False
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
