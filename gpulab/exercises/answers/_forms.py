"""Judges for letters and tables: records that contain the key and judge an answer when called."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isclose, isfinite

from gpulab.errors import InvalidOptionError
from gpulab.exercises._exercise import Verdict, is_open
from gpulab.units import parse_time


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A typical mistake: a short name, and the message for a learner who made it.

    Examples
    --------
    >>> from gpulab.exercises.answers import Diagnosis
    >>> print(Diagnosis("no-wait", "You timed the launch.").verdict())
    Not yet. You timed the launch.
    """

    code: str
    message: str

    def verdict(self) -> Verdict:
        """Return the verdict "wrong" with this message."""
        return Verdict(ok=False, message=self.message, diagnosis_code=self.code)


# Errors of a learner's function with their diagnoses; see raised().
KnownErrors = tuple[tuple[str | type[Exception], Diagnosis], ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A judge for one letter; each wrong letter has its own diagnosis.

    Attributes
    ----------
    right, why
        The right letter, and the reason why it is right.
    wrong
        The diagnosis of each wrong letter.

    Examples
    --------
    >>> from gpulab.exercises.answers import Choice, Diagnosis
    >>> judge = Choice("a", "It waits.", {"b": Diagnosis("launch", "b only launches.")})
    >>> print(judge("b"))
    Not yet. b only launches.
    """

    right: str
    why: str
    wrong: Mapping[str, Diagnosis]

    @property
    def how(self) -> str:
        """How to write the answer."""
        return f'Answer with one letter of {", ".join(self._letters)}, for example "a".'

    @property
    def _letters(self) -> list[str]:
        return sorted({self.right, *self.wrong})

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Judge one letter."""
        if is_open(answer):
            return unanswered(self.how)
        letter = answer.strip().lower() if isinstance(answer, str) else ""
        if letter == self.right:
            return Verdict(ok=True, message=self.why)
        if letter in self.wrong:
            return self.wrong[letter].verdict()
        return malformed(answer, self.how)


@dataclass(frozen=True, slots=True)
class Letters:
    """A judge for a set of letters; it explains one letter that is wrong or missing.

    Attributes
    ----------
    right, why
        The right letters, and the reason why they are right.
    wrongly_in, missing
        The diagnosis of each wrong letter and of each missing one. The first that fits is shown,
        so the most instructive mistakes come first.
    all_chosen, none_chosen
        The diagnosis of an answer with every letter, or with none.

    Examples
    --------
    >>> from gpulab.exercises.answers import Diagnosis, Letters
    >>> item, shape = Diagnosis("item", "item waits."), Diagnosis("shape", "shape does not.")
    >>> judge = Letters(frozenset("a"), "Yes.", {"b": shape}, {"a": item}, shape, item)
    >>> judge.how
    'Answer with a set of some of a, b, for example {"a", "b"}.'
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
        known = sorted(self._known)
        example = ", ".join(f'"{letter}"' for letter in known[:2])
        return f"Answer with a set of some of {', '.join(known)}, for example {{{example}}}."

    @property
    def _known(self) -> frozenset[str]:
        return self.right | self.wrongly_in.keys()

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Judge a set of letters."""
        if is_open(answer):
            return unanswered(self.how)
        given = _letters(answer)
        if given is None or not given <= self._known:
            return malformed(answer, self.how)
        if given == self.right:
            return Verdict(ok=True, message=self.why)
        if given == self._known:
            return self.all_chosen.verdict()
        if not given:
            return self.none_chosen.verdict()
        return self._explain(given)

    def _explain(self, given: frozenset[str]) -> Verdict:
        mistakes = [self.wrongly_in[key] for key in self.wrongly_in if key in given]
        mistakes += [self.missing[key] for key in self.missing if key not in given]
        # The others are counted but not named, or a learner could solve it by trying.
        more = len(mistakes) - 1
        tail = f" ({more} more to find after this one.)" if more else ""
        return Diagnosis(mistakes[0].code, mistakes[0].message + tail).verdict()


@dataclass(frozen=True, slots=True)
class Table:
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

    Examples
    --------
    >>> from gpulab.exercises.answers import Diagnosis, Table
    >>> other = Diagnosis("other", "Look again.")
    >>> judge = Table({"a": "hot", "b": "cold"}, "Yes.", (("hot", "cold"),), {}, (other,))
    >>> print(judge({"a": "hot", "b": "hot"}))
    Not yet. Look again. (Wrong so far: b.)
    """

    right: Mapping[str, str | tuple[str, ...]]
    why: str
    allowed: tuple[tuple[str, ...], ...]
    wrong: Mapping[tuple[str, str], Diagnosis]
    otherwise: tuple[Diagnosis, ...]

    @property
    def how(self) -> str:
        """How to write the answer."""
        key, value = next(iter(self.right.items()))
        words = " and ".join(f"one of {', '.join(map(repr, words))}" for words in self.allowed)
        example = (
            self.allowed[0][0]
            if isinstance(value, str)
            else tuple(words[0] for words in self.allowed)
        )
        keys = ", ".join(map(repr, self.right))
        return (
            f"Answer with a dict that has the keys {keys}; each value: {words}. "
            f"For example {{{key!r}: {example!r}, ...}}."
        )

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Judge a dict."""
        if is_open(answer):
            return unanswered(self.how)
        given = self._read(answer)
        if given is None:
            return malformed(answer, self.how)
        missing = [key for key in self.right if key not in given]
        if missing:
            message = f"There is no answer yet for {', '.join(missing)}."
            return Diagnosis("incomplete", message).verdict()
        bad = {key: value for key, value in given.items() if value != _words(self.right[key])}
        if not bad:
            return Verdict(ok=True, message=self.why)
        return self._explain(bad)

    def _explain(self, bad: Mapping[str, tuple[str, ...]]) -> Verdict:
        """Return the verdict on wrong keys, by the first position at which a value differs."""
        more = f" (Wrong so far: {', '.join(sorted(bad))}.)"
        pairs = {key: (words, _words(self.right[key])) for key, words in bad.items()}
        # Of two words the first decides: a cure, for example, follows from the cause before it.
        first = {
            key: next(i for i, (a, b) in enumerate(zip(*pair, strict=True)) if a != b)
            for key, pair in pairs.items()
        }
        found = {(key, bad[key][position]) for key, position in first.items()}
        known = (diagnosis for pair, diagnosis in self.wrong.items() if pair in found)
        diagnosis = next(known, self.otherwise[min(first.values())])
        return Diagnosis(diagnosis.code, diagnosis.message + more).verdict()

    def _read(self, answer: object) -> dict[str, tuple[str, ...]] | None:
        """Return an answer in a uniform form without open entries, or None if it has no form."""
        if not isinstance(answer, Mapping):
            return None
        given = {_key(key): _words(value) for key, value in answer.items() if not is_open(value)}
        fits = all(
            key in self.right
            and len(words) == len(self.allowed)
            and all(word in allowed for word, allowed in zip(words, self.allowed, strict=True))
            for key, words in given.items()
        )
        return given if fits else None


def unanswered(how: str) -> Verdict:
    """Return the verdict "not answered yet", which says how to answer.

    Examples
    --------
    >>> from gpulab.exercises.answers import unanswered
    >>> print(unanswered("Answer with one letter."))
    Not answered yet. Answer with one letter.
    """
    return Verdict(ok=None, message=how)


def malformed(answer: object, how: str) -> Verdict:
    """Return the verdict on an answer that does not have the form that is asked for.

    Examples
    --------
    >>> from gpulab.exercises.answers import malformed
    >>> print(malformed(7, "Answer with one letter."))
    Not yet. 7 isn't a valid answer. Answer with one letter.
    """
    return Diagnosis("not-a-choice", f"{_shown(answer)} isn't a valid answer. {how}").verdict()


def _shown(answer: object) -> str:
    """Return an answer as one line of text, or its type if its ``repr`` raises an error."""
    try:
        text = " ".join(repr(answer).split())
    except Exception:  # noqa: BLE001  # the repr of a learner's object may raise anything
        return f"An object of type {type(answer).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004  # one line


def raised(error: Exception, known: KnownErrors = ()) -> Diagnosis:
    """Return the diagnosis of a function that raised an error when it was tried.

    Parameters
    ----------
    error
        What it raised.
    known
        Classes of errors with their diagnoses. PyTorch and CUDA have no classes for most of their
        errors; for one of those, a part of its message.

    Examples
    --------
    >>> from gpulab.exercises.answers import raised
    >>> raised(ValueError("no data")).message.partition(chr(10))[0]
    'Your function raised ValueError: no data'
    """
    for which, diagnosis in known:
        if isinstance(error, which) if isinstance(which, type) else which in str(error):
            return diagnosis
    message = f"Your function raised {type(error).__name__}: {error}"
    return Diagnosis("raised", f"{message}\n\nCall it yourself in a cell to see the line.")


def no_function(answer: object, how: str) -> Verdict:
    """Return the verdict on an answer that is not a function although one is asked for.

    Examples
    --------
    >>> from gpulab.exercises.answers import no_function
    >>> print(no_function(3, "Answer with the function f."))
    Not yet. 3 isn't a valid answer. Answer with the function f.
    """
    return unanswered(how) if is_open(answer) else malformed(answer, how)


def agrees(given: float, value: float, rel_tol: float = 0.0) -> bool:
    """Return whether a number is close enough to the right value, or is that value rounded.

    A number with at least two digits is right if the value rounds to it: 41 for 41.2, and 0.33
    for a third.

    Examples
    --------
    >>> from gpulab.exercises.answers import agrees
    >>> agrees(41, 41.2), agrees(42, 41.2)
    (True, False)
    """
    if isclose(given, value, rel_tol=rel_tol):
        return True
    # 15 digits is what a float keeps of a decimal number, so no rounding error looks like a digit.
    digits, _, _exponent = f"{given:.15g}".replace(".", "").partition("e")
    # Zeros at the end may be rounded digits, so they do not count. One digit is too few: 40 would
    # be right for 44.
    n_digits = max(len(digits.strip("-0")), 2)
    return isclose(float(f"{value:.{n_digits - 1}e}"), given, rel_tol=1e-9)


def read_number(answer: object) -> float | None:
    """Return a finite number, or the seconds in a text with a unit of time; otherwise None.

    Examples
    --------
    >>> from gpulab.exercises.answers import read_number
    >>> read_number("2 s"), read_number("many")
    (2.0, None)
    """
    if isinstance(answer, str):
        try:
            return parse_time(answer)
        except InvalidOptionError:
            return None
    # True is an int in Python, but nobody means the number 1 by it.
    if isinstance(answer, bool) or not hasattr(answer, "__float__"):
        return None
    try:
        number = float(answer)
        return number if isfinite(number) else None
    except (TypeError, ValueError, RuntimeError):  # an array or a tensor of several numbers
        return None


def _letters(answer: object) -> frozenset[str] | None:
    if isinstance(answer, str):
        # Learners also write "ac" or "a, c" in place of a set.
        answer = [mark for mark in answer if mark.isalnum()]
    if not isinstance(answer, Iterable) or isinstance(answer, Mapping):
        return None
    items = list(answer)
    if not all(isinstance(item, str) for item in items):
        return None
    return frozenset(item.strip().lower() for item in items)


def _key(key: object) -> str:
    return str(key).strip().lower().removesuffix("()")  # learners write "y.item()" for "y.item"


def _words(value: object) -> tuple[str, ...]:
    parts = (value,) if isinstance(value, str) else value
    if not isinstance(parts, Iterable):
        # Text that no table allows, so that a number is refused like any other wrong word.
        return (repr(value),)
    return tuple(str(part).strip().lower() for part in parts)
