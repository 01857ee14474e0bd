"""Judges for letters and tables: records that contain the key and judge an answer when called."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from math import isclose, isfinite
from operator import contains
from typing import TypeVar

from gpulab.core.errors import InvalidOptionError, shown
from gpulab.core.units import parse_time
from gpulab.exercises._exercise import is_open
from gpulab.exercises._fields import Fields
from gpulab.exercises._typed import read_typed
from gpulab.exercises.answers._judging import MALFORMED, UNANSWERED, AnswerJudge, Diagnosis
from gpulab.tracing.trials import number_in

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Choice(AnswerJudge):
    """A judge for one letter; each wrong letter has its diagnosis, and ``why`` says the reason."""

    right: str
    why: str
    wrong: Mapping[str, Diagnosis]

    @property
    def how(self) -> str:
        """How to write the answer."""
        return f"Answer with one letter of {', '.join(self._letters)}, in quotes."

    @property
    def fields(self) -> Fields:
        """The letters, of which one is marked."""
        return Fields("one", tuple(self._letters))

    @property
    def _letters(self) -> list[str]:
        return sorted({self.right, *self.wrong})

    def judge(self, answer: object) -> Diagnosis | str:
        """Judge one letter."""
        letters = _letters([answer] if isinstance(answer, str) else answer) or frozenset()
        # Learners also write "b)" or ["b"].
        letter = next(iter(letters)).strip("(). ") if len(letters) == 1 else ""
        if letter == self.right:
            return self.why
        if letter in self.wrong:
            return self.wrong[letter]
        return MALFORMED


@dataclass(frozen=True, slots=True)
class Letters(AnswerJudge):
    """A judge for a set of letters; it explains one letter that is wrong or missing.

    Of ``wrongly_in`` and then ``missing`` the first diagnosis that fits is shown, so the most
    instructive mistakes come first. ``all_chosen`` and ``none_chosen`` are those of an answer with
    every letter, or with none.
    """

    right: frozenset[str]
    why: str
    wrongly_in: Mapping[str, Diagnosis]
    missing: Mapping[str, Diagnosis]
    all_chosen: Diagnosis
    none_chosen: Diagnosis

    @property
    def how(self) -> str:
        """How to write the answer."""
        return (
            f'Answer with a set of some of {", ".join(sorted(self._known))}, as in {{"x", "y"}}.'
        )

    @property
    def fields(self) -> Fields:
        """The letters, of which some are marked."""
        return Fields("some", tuple(sorted(self._known)))

    @property
    def _known(self) -> frozenset[str]:
        return self.right | self.wrongly_in.keys()

    def judge(self, answer: object) -> Diagnosis | str:
        """Judge a set of letters."""
        letters = _letters(answer)
        if letters is None or not letters <= self._known:
            return MALFORMED
        if letters == self.right:
            return self.why
        if letters == self._known:
            return self.all_chosen
        if not letters:
            return self.none_chosen
        return self._explain(letters)

    def _explain(self, letters: frozenset[str]) -> Diagnosis:
        mistakes = [self.wrongly_in[key] for key in self.wrongly_in if key in letters]
        mistakes += [self.missing[key] for key in self.missing if key not in letters]
        # The others are counted but not named, or a learner could solve it by trying.
        more = len(mistakes) - 1
        tail = f" ({more} more to find after this one.)" if more else ""
        return Diagnosis(mistakes[0].code, mistakes[0].message + tail)


@dataclass(frozen=True, slots=True)
class Table(AnswerJudge):
    """A judge for a dict with a word, or a tuple of words, for each key.

    Attributes
    ----------
    right, why
        The right value of each key, and the reason. A value is a word or a tuple of words.
    allowed
        The words that each position of a value may have.
    wrong
        The diagnosis of each pair of key and wrong word. The first that fits is shown.
    otherwise
        For each position of a value, the diagnosis if no other one fits.
    headings
        What each position of a value is, if there are several; the form shows it.
    counts_only
        Say how many values are right and not which are wrong: with few words to choose from, a
        learner could solve the exercise by trying.
    """

    right: Mapping[str, str | tuple[str, ...]]
    why: str
    allowed: tuple[tuple[str, ...], ...]
    wrong: Mapping[tuple[str, str], Diagnosis]
    otherwise: tuple[Diagnosis, ...]
    headings: tuple[str, ...] = ()
    counts_only: bool = False

    @property
    def how(self) -> str:
        """How to write the answer."""
        words = " and ".join(f"one of {', '.join(map(repr, words))}" for words in self.allowed)
        keys = ", ".join(map(repr, self.right))
        return (
            f"Answer with a dict that has the keys {keys}; each value: {words}. Put your words in "
            f"place of the dots in {self.skeleton}."
        )

    @property
    def fields(self) -> Fields:
        """A row for each key, with the words of each part."""
        return Fields("table", tuple(self.right), self.allowed, headings=self.headings)

    @property
    def skeleton(self) -> str:
        """The dict with dots in place of the words, so that no example gives an entry away."""
        dots = ", ".join("..." for _ in self.allowed)
        value = dots if len(self.allowed) == 1 else f"({dots})"
        return "{" + ", ".join(f"{key!r}: {value}" for key in self.right) + "}"

    def judge(self, answer: object) -> Diagnosis | str:
        """Judge a dict."""
        words = values_in(answer, self.right, self._read)
        if isinstance(words, Diagnosis):
            return words
        bad = {key: value for key, value in words.items() if value != _words(self.right[key])}
        return self._explain(bad) if bad else self.why

    def _explain(self, bad: Mapping[str, tuple[str, ...]]) -> Diagnosis:
        """Return the diagnosis of wrong keys, by the first position at which a value differs."""
        pairs = {key: (words, _words(self.right[key])) for key, words in bad.items()}
        # Of two words the first decides: a cure, for example, follows from the cause before it.
        first = {
            key: next(i for i, (a, b) in enumerate(zip(*pair, strict=True)) if a != b)
            for key, pair in pairs.items()
        }
        wrong_pairs = {(key, bad[key][position]) for key, position in first.items()}
        known = (diagnosis for pair, diagnosis in self.wrong.items() if pair in wrong_pairs)
        diagnosis = next(known, self.otherwise[min(first.values())])
        if self.counts_only:
            n_all = len(self.right)
            message = f"{n_all - len(bad)} of {n_all} are right. {diagnosis.message}"
        else:
            message = f"{diagnosis.message} (Wrong so far: {', '.join(sorted(bad))}.)"
        return Diagnosis(diagnosis.code, message)

    def _read(self, value: object) -> tuple[str, ...] | None:
        words = _words(value)
        fits = len(words) == len(self.allowed) and all(map(contains, self.allowed, words))
        return words if fits else None


def values_in(
    answer: object, keys: Iterable[str], read: Callable[[object], _Value | None]
) -> dict[str, _Value] | Diagnosis:
    """Return the value of each key of a dict, or the diagnosis of an answer that has not all.

    ``read`` returns a value in the form in which it is compared, or None if it has no form.
    """
    if not isinstance(answer, Mapping):
        return MALFORMED
    rows = [(_known_key(key, keys), key, value) for key, value in answer.items()]
    unknown = [key for known, key, _ in rows if known is None]
    if unknown:
        return _unknown_key(unknown[0], keys)
    forms = {known: read(value) for known, _, value in rows if known and not _is_blank(value)}
    values = {key: value for key, value in forms.items() if value is not None}
    if len(values) < len(forms):
        return MALFORMED
    missing = [key for key in keys if key not in values]
    if values and missing:
        return Diagnosis("incomplete", f"There is no answer yet for {', '.join(missing)}.")
    return values or UNANSWERED


def _known_key(key: object, keys: Iterable[str]) -> str | None:
    """Return the key that a learner means, also with its module or with brackets."""
    written = _key_text(key)
    ends = [known for known in keys if written.endswith(f".{_key_text(known)}")]
    exact = [known for known in keys if _key_text(known) == written]
    return next(iter(exact or (ends if len(ends) == 1 else ())), None)


_LONGEST_KEY = 100  # characters; to compare many more takes seconds


def _unknown_key(key: object, known: Iterable[str]) -> Diagnosis:
    """Return the diagnosis of a key that an answer may not have; it names the nearest ones."""
    nearest = get_close_matches(_key_text(key)[:_LONGEST_KEY], list(known), n=1)
    keys = ", ".join(map(repr, known))
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"its keys are {keys}."
    return Diagnosis("unknown-key", f"{shown(key)} is no key of this table; {hint}")


def agrees(number: float, value: float, rel_tol: float = 0.0) -> bool:
    """Return whether a number is close enough to the right value, or is that value rounded.

    A number with at least two digits is right if the value rounds to it: 41 for 41.2, and 0.33
    for a third.
    """
    if isclose(number, value, rel_tol=rel_tol):
        return True
    # 15 digits is what a float keeps of a decimal number, so no rounding error looks like a digit.
    digits, _, _exponent = f"{number:.15g}".replace(".", "").partition("e")
    # Zeros at the end may be rounded digits, so they do not count. One digit is too few: 40 would
    # be right for 44.
    n_digits = max(len(digits.strip("-0")), 2)
    return isclose(float(f"{value:.{n_digits - 1}e}"), number, rel_tol=1e-9)


def read_number(answer: object) -> float | None:
    """Return a finite number, or the seconds in a text with a unit of time; otherwise None."""
    if isinstance(answer, str):
        try:
            return parse_time(answer)
        except InvalidOptionError:
            return None
    if isinstance(answer, bool):  # an int in Python, but nobody means the number 1 by True
        return None
    try:
        number = float(answer)  # type: ignore[arg-type]  # anything else raises TypeError
        return number if isfinite(number) else None
    except (TypeError, ValueError, RuntimeError, OverflowError):  # several numbers, or 10**400
        return None


def plain_number(answer: object) -> float | None:
    """Return a number without a unit, also from a text; None for anything else.

    >>> plain_number("1,022"), plain_number(4), plain_number("4 ms")
    (1022.0, 4.0, None)
    """
    if not isinstance(answer, str):
        return read_number(answer)
    typed = read_typed(answer, unit="")
    return typed if isinstance(typed, float) else None


# Of an iterator without end, or a very long list; no answer has so many.
_MOST_ITEMS = 100


def _letters(answer: object) -> frozenset[str] | None:
    """Return the letters of a set, list, array, text, or dict of truth values; None if others."""
    if isinstance(answer, Mapping):
        # {"a": True, "b": False} chooses a.
        if not all(isinstance(value, bool) or is_open(value) for value in answer.values()):
            return None
        answer = [key for key, value in answer.items() if value is True]
    if isinstance(answer, str):
        # Learners also write "ac" or "a, c" in place of a set.
        answer = [mark for mark in answer if mark.isalnum()]
    if not isinstance(answer, Iterable):
        return None
    return frozenset(map(_word, islice(answer, _MOST_ITEMS)))


def _key_text(key: object) -> str:
    """Return a key as it is compared: without capitals, spaces around it, and brackets."""
    return str(key).strip().lower().removesuffix("()")  # learners write "y.item()" for "y.item"


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()  # an array of one word
    if isinstance(value, str) or not isinstance(value, Iterable) or number_in(value) is not None:
        return (_word(value),)
    return tuple(map(_word, islice(value, _MOST_ITEMS)))


def _word(value: object) -> str:
    """Return one word of an answer; a number counts as its text, 36.0 as "36"."""
    number = number_in(value)
    return str(value).strip().lower() if number is None else f"{number:.15g}"


def _is_blank(value: object) -> bool:
    """Return whether an entry is open, or has an open part, as in the skeleton."""
    if is_open(value):
        return True
    return isinstance(value, tuple | list) and any(map(is_open, value))
