"""The forms an answer can have: dataclasses whose fields are the key and whose call judges."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isclose, isfinite

from gpulab.errors import InvalidOptionError
from gpulab.exercises._exercise import Verdict, is_open
from gpulab.units import parse_time


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The name of a typical mistake, and what to tell the learner who made it."""

    code: str
    message: str

    def verdict(self) -> Verdict:
        """Make the verdict on an answer with this mistake."""
        return Verdict(ok=False, message=self.message, diagnosis_code=self.code)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few letters; every wrong one has its diagnosis.

    Attributes
    ----------
    right, why
        The right letter, and why it is right.
    wrong
        Letter to diagnosis, for all the others.
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
    """A set of letters; a letter too many or too few is diagnosed, the most telling one first.

    Attributes
    ----------
    right, why
        The right letters, and why they are right.
    wrongly_in, missing
        Letter to diagnosis, in the order in which mistakes are worth talking about.
    all_chosen, none_chosen
        What to say when the answer has every letter, or none.
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
        more = len(mistakes) - 1
        tail = f" ({more} more to find after this one.)" if more else ""
        return Diagnosis(mistakes[0].code, mistakes[0].message + tail).verdict()


@dataclass(frozen=True, slots=True)
class Table:
    """A value for each of a few keys.

    Attributes
    ----------
    right, why
        The right value of each key, and why. A value is a word or a tuple of words.
    allowed
        The words for each position of a value.
    wrong
        (key, word) to diagnosis, in the order in which mistakes are worth talking about.
    otherwise
        For each position of a value, what to say when no other diagnosis fits.
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
        """Diagnose the first position in which a value differs, over all wrong keys."""
        more = f" (Wrong so far: {', '.join(sorted(bad))}.)"
        pairs = {key: (words, _words(self.right[key])) for key, words in bad.items()}
        first = {
            key: next(i for i, (a, b) in enumerate(zip(*pair, strict=True)) if a != b)
            for key, pair in pairs.items()
        }
        found = {(key, bad[key][position]) for key, position in first.items()}
        known = (diagnosis for pair, diagnosis in self.wrong.items() if pair in found)
        diagnosis = next(known, self.otherwise[min(first.values())])
        return Diagnosis(diagnosis.code, diagnosis.message + more).verdict()

    def _read(self, answer: object) -> dict[str, tuple[str, ...]] | None:
        """Bring an answer into one form; None if it cannot be one.  ``...`` is left out."""
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
    """Make the verdict on no answer: it says how to give one."""
    return Verdict(ok=None, message=how)


def malformed(answer: object, how: str) -> Verdict:
    """Make the verdict on an answer that is none of the possible ones."""
    return Diagnosis("not-a-choice", f"{_shown(answer)} isn't a valid answer. {how}").verdict()


def _shown(answer: object) -> str:
    """Show an answer on one line; of one that cannot be shown, its type."""
    try:
        text = " ".join(repr(answer).split())
    except Exception:  # noqa: BLE001  # what a learner gives may raise when it is shown
        return f"An object of type {type(answer).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004  # one line


def raised(error: Exception) -> Diagnosis:
    """Make the diagnosis of a function that raised an error when it was tried."""
    message = f"Your function raised {type(error).__name__}: {error}"
    return Diagnosis("raised", f"{message}\n\nCall it yourself in a cell to see the line.")


def no_function(answer: object, how: str) -> Verdict:
    """Make the verdict on what cannot be called where a function is asked for."""
    return unanswered(how) if is_open(answer) else malformed(answer, how)


def agrees(given: float, value: float, rel_tol: float = 0.0) -> bool:
    """Tell whether a number is right: near enough, or the value rounded to its digits.

    A number with at least two digits is right if the value rounds to it: 41 for 41.2, and 0.33
    for a third.
    """
    if isclose(given, value, rel_tol=rel_tol):
        return True
    digits, _, _exponent = f"{given:.15g}".replace(".", "").partition("e")
    n_digits = max(len(digits.strip("-0")), 2)
    return isclose(float(f"{value:.{n_digits - 1}e}"), given, rel_tol=1e-9)


def read_number(answer: object) -> float | None:
    """Read a finite number, or text with a unit of time (then in seconds); None for all else."""
    if isinstance(answer, str):
        try:
            return parse_time(answer)
        except InvalidOptionError:
            return None
    if isinstance(answer, bool) or not hasattr(answer, "__float__"):
        return None
    try:
        number = float(answer)
        return number if isfinite(number) else None
    except (TypeError, ValueError, RuntimeError):  # an array or a tensor of several numbers
        return None


def _letters(answer: object) -> frozenset[str] | None:
    if isinstance(answer, str):
        answer = [mark for mark in answer if mark.isalnum()]
    if not isinstance(answer, Iterable) or isinstance(answer, Mapping):
        return None
    items = list(answer)
    if not all(isinstance(item, str) for item in items):
        return None
    return frozenset(item.strip().lower() for item in items)


def _key(key: object) -> str:
    return str(key).strip().lower().removesuffix("()")


def _words(value: object) -> tuple[str, ...]:
    parts = (value,) if isinstance(value, str) else value
    if not isinstance(parts, Iterable):
        return (repr(value),)
    return tuple(str(part).strip().lower() for part in parts)
