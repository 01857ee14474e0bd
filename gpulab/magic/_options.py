"""Read the options at the start of a magic's line; the code after them stays byte for byte.

Options that ``measure`` has too go into its own record, which has their defaults and checks.
"""

import ast
import difflib
import keyword
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from gpulab.core.errors import InvalidOptionError, UnknownNameError

if TYPE_CHECKING:
    from gpulab.timing import MeasurementOptions

_QUOTES = ("'", '"')
_MINUS_HINT = "write -- before code that begins with a minus"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOptions:
    """The options of one timed cell, already checked.

    ``measurement`` has those of :func:`gpulab.measure`. ``save_as`` and ``stream`` are names of
    variables; ``versus`` is that of the measurement, or of the function, to compare with.
    ``backend`` is ``"auto"``, ``"cuda"`` or ``"virtual"``. ``each`` is code that runs before each
    sample; ``flops_text`` and ``bytes_text`` are expressions. With ``runs_after`` the cell is
    executed once more, untimed, in the user's namespace.
    """

    measurement: "MeasurementOptions"
    n_digits: int = 3
    quiet: bool = False
    returns_result: bool = False
    save_as: str | None = None
    shows_ladder: bool = False
    shows_timeline: bool = False
    versus: str | None = None
    backend: str = "auto"
    each: str = ""
    flops_text: str = ""
    bytes_text: str = ""
    seed: int | None = None
    stream: str | None = None
    runs_after: bool = False


@dataclass(frozen=True, slots=True)
class _Value:
    """An option with a value, which sets a field: how to read its text, and what it must be.

    ``read`` raises ValueError if it cannot; ``wanted`` completes the sentence "it must be ...".
    """

    field: str
    read: Callable[[str], Any]
    accepts: Callable[[Any], bool]
    wanted: str


@dataclass(frozen=True, slots=True)
class _SharedValue:
    """An option with a value that :class:`~gpulab.timing.MeasurementOptions` checks."""

    field: str
    read: Callable[[str], Any]

    @property
    def wanted(self) -> str:
        """Completes the sentence "it must be ..."."""
        from gpulab.timing import MeasurementOptions

        return MeasurementOptions.requirement(self.field).wanted

    def accepts(self, value: Any) -> bool:  # noqa: ANN401  # as the fields of the record
        """Return whether the option accepts this value; `UnknownNameError` for an unknown name."""
        from gpulab.timing import MeasurementOptions

        try:
            MeasurementOptions.requirement(self.field).check(**{self.field: value})
        except InvalidOptionError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Flag:
    """An option without a value; it sets its field to a fixed one."""

    field: str
    value: object = True


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _finite(text: str) -> float:
    # float() also reads "inf" and "nan".
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _unquoted(text: str) -> str:
    return text[1:-1] if text[:1] in _QUOTES and text[-1:] == text[:1] else text


_Option = _Value | _SharedValue | _Flag

BACKENDS = ("auto", "cuda", "virtual")
_NAME = "the name of a variable"
_AMOUNT = 'a number, or an expression of your variables such as "2 * n**3"'

# Each spelling of an option, and the field that it sets.
_OPTIONS: dict[str, _Option] = {
    "-n": _SharedValue("inner_loops", int),
    "-r": _SharedValue("n_samples", int),
    # 15 digits is what a float keeps of a decimal number.
    "-p": _Value("n_digits", int, range(1, 16).__contains__, "a whole number from 1 to 15"),
    "-q": _Flag("quiet"),
    "-o": _Flag("returns_result"),
    "-v": _Value("save_as", str, _is_name, _NAME),
    "--save": _Value("save_as", str, _is_name, _NAME),
    "--method": _SharedValue("method", str),
    "--hot": _Flag("cache", "hot"),
    "--cold": _Flag("cache", "cold"),
    "--flush": _SharedValue("flush", str),
    "--floor": _SharedValue("floor", str),
    "--ladder": _Flag("shows_ladder"),
    "--timeline": _Flag("shows_timeline"),
    "--vs": _Value("versus", str, _is_name, _NAME),
    "--backend": _Value("backend", str, BACKENDS.__contains__, "auto, cuda or virtual"),
    "--warmup": _SharedValue("n_warmup", int),
    "--precision": _SharedValue("precision", float),
    "--max-time": _SharedValue("max_time_s", _finite),
    "--flops": _Value("flops_text", _unquoted, bool, _AMOUNT),
    "--bytes": _Value("bytes_text", _unquoted, bool, _AMOUNT),
    "--each": _Value("each", _unquoted, bool, 'code, in quotes: --each "w.grad = None"'),
    "--seed": _Value("seed", int, lambda n: 0 <= n < 2**64, "a whole number, 0 or more"),
    "--stream": _Value("stream", str, _is_name, _NAME),
    "--run": _Flag("runs_after"),
}
_EXCLUSIVE = (
    ("--hot", "--cold"),
    ("--ladder", "--timeline"),
    ("--ladder", "--vs"),
    ("--timeline", "--vs"),
    ("--timeline", "--each"),
)


def option_names() -> tuple[str, ...]:
    """Return each spelling of an option, as users type it."""
    return tuple(_OPTIONS)


def parse_options(line: str, *, is_cell: bool) -> tuple[CellOptions, str]:
    """Split a magic's raw line into its options and the code after them, without outer blanks.

    Text that begins with one minus is code if it is not a valid option but valid Python: ``-a +
    2`` needs no ``--`` before it. ``is_cell`` says that the code is the setup of a cell.
    `UsageError` if an option is unknown, or its value is missing or cannot be used.
    """
    values: dict[str, Any] = {}  # the value of each spelling, in the order of the line
    rest = line.strip()
    while rest.startswith("-"):
        word, after = _split_word(rest)
        if word == "--":
            rest = after
            break
        # Text that is not a valid option may still be code, such as -norm(a).
        try:
            from_word, remaining = _read_word(word, after)
        except UsageError:
            if is_cell or not _is_code(rest):
                raise
            break
        # A repeated option moves to the end, so that the last spelling of a field wins.
        values = {
            name: value for name, value in values.items() if name not in from_word
        } | from_word
        rest = remaining
    return _options(values), rest


def _options(values_by_spelling: dict[str, Any]) -> CellOptions:
    """Return the options, given the value of each spelling."""
    from gpulab.timing import MeasurementOptions

    if {"-o", "--run"} <= values_by_spelling.keys():
        raise UsageError("-o and --run both set the cell's result; use -v NAME with --run")
    for first, second in _EXCLUSIVE:
        if {first, second} <= values_by_spelling.keys():
            raise UsageError(f"{first} and {second} cannot be used together; use one of them")
    values = {_OPTIONS[name].field: value for name, value in values_by_spelling.items()}
    shared = {name: values.pop(name) for name in MeasurementOptions.names() & values.keys()}
    try:
        return CellOptions(measurement=MeasurementOptions(**shared), **values)
    except InvalidOptionError as error:  # two options of measure that contradict each other
        raise UsageError(str(error)) from None


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
    option = _OPTIONS[name]
    if isinstance(option, _Flag):
        if equals:
            raise UsageError(f"{word}; {name} takes no value; write {name} alone")
        return {name: option.value}, after
    if not equals:
        attached, after = _split_value(after)
    return {name: _read_value(name, attached, option)}, after


def _split_value(text: str) -> tuple[str, str]:
    """Return a value and what follows it; a value in quotes may have blanks in it."""
    end = text.find(text[0], 1) + 1 if text[:1] in _QUOTES else 0
    if not end:
        return _split_word(text)
    return text[:end], text[end:].lstrip()


def _read_cluster(word: str, after: str) -> tuple[dict[str, object], str]:
    values: dict[str, object] = {}
    # As in getopt: several flags may share one minus, and a value may follow its letter directly.
    for position, letter in enumerate(word[1:], start=2):
        name = f"-{letter}"
        if name not in _OPTIONS:
            raise _unknown(word)
        option = _OPTIONS[name]
        if isinstance(option, _Flag):
            values[name] = option.value
            continue
        attached = word[position:]
        if not attached:
            attached, after = _split_word(after)
        return values | {name: _read_value(name, attached, option)}, after
    return values, after


def _read_value(name: str, text: str, option: _Value | _SharedValue) -> object:
    if not text:
        raise UsageError(f"{name} has no value; it must be {option.wanted}")
    try:
        value = option.read(text)
        is_accepted = option.accepts(value)
    except UnknownNameError as error:
        raise UsageError(f"{name} {text}: {error}") from None
    except ValueError:
        is_accepted = False
    if not is_accepted:
        raise UsageError(f"{name} {text}; it must be {option.wanted}")
    return value


def _unknown(word: str) -> UsageError:
    near = difflib.get_close_matches(word.lower(), _OPTIONS, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}? " if near else ""
    known = ", ".join(_OPTIONS)
    return UsageError(f"unknown option {word}; {hint}Known: {known}; {_MINUS_HINT}")


def _is_code(text: str) -> bool:
    """Return whether text that begins with a minus is code rather than a mistaken option."""
    if text.startswith("--") or text in _OPTIONS:
        return False
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
