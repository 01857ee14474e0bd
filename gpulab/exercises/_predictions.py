"""A prediction: the guess before a measurement, and its comparison with the outcome."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab.core import shell
from gpulab.core.foreign_text import visible
from gpulab.core.units import format_estimate, format_number, format_time
from gpulab.exercises import _html, _saved_guesses
from gpulab.exercises._distance import distance
from gpulab.exercises._entries import CONFIDENCE, Guess, now
from gpulab.exercises._exercise import is_open
from gpulab.exercises._guess_form import GuessForm, follow
from gpulab.exercises._typed import read_typed
from gpulab.exercises.answers import read_number
from gpulab.gpus.provenance import device_label

if TYPE_CHECKING:
    from gpulab.device.measurement import Measurement


# Two characters look like µ: the micro sign U+00B5 and the Greek letter mu U+03BC.
TIMES = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "\u03bcs": 1e-6, "ns": 1e-9}
_COUNTS = (
    *("launches", "calls", "steps", "trials", "answers"),
    *("times", "TFLOP/s", "GB/s", "%"),
)

# The singular of units that count things; "times" is a factor and has none.
_ONE = {
    "launches": "launch",
    "calls": "call",
    "steps": "step",
    "trials": "trial",
    "answers": "answer",
}

_NEXT = " Now see what comes out."
_NO_GUESS = _html.Tone("#0072B2", "?", "No guess.")


@dataclass(frozen=True, slots=True, repr=False)
class GuessReview(_html.ComparedGuess):
    """A guess compared with the outcome: the verdict, and a message with both and what follows.

    ``ratio`` is outcome over guess, None unless both are positive; it judges the guess and not the
    measurement. ``size`` is how far the guess was off, in the unit of the rule: times, percentage
    points, a count or percent; None if the rule gives no number.
    """

    ratio: float | None = None
    size: float | None = None


@dataclass(slots=True)
class Prediction:
    """A question, and the guess that was made before the outcome was known.

    In a notebook with a browser it shows a form in which you type or choose the guess. Anywhere
    else it is a text.

    Attributes
    ----------
    question
        Text of the question.
    guess
        Seconds, a count, or the choice; None if there is no guess, or none that can be read.
    unit
        Unit in which the guess was given.
    choices
        Possible answers; empty if the guess is a number.
    problem
        The reason why the guess cannot be read; empty if it can.
    counts
        The rule that judges the guess; see :func:`predict`.
    base
        For ``counts="direction"``: the value that is neither more nor less.
    name
        Lesson and name under which the guess is saved; empty if it is not saved.
    confidence
        How sure the learner is: "guess", "likely" or "sure"; empty if not given.
    note
        A remark on the guess: it came after the outcome, or its confidence is not known.
    is_lessons
        Whether the question is one of the lessons' own, which is asked by its name.

    Examples
    --------
    >>> from gpulab import exercises
    >>> guess = exercises.predict("How long does the matmul take?", 300, unit="µs")
    >>> print(guess.compare(330e-6))
    Close. You said 300 µs, it was 330 µs: a factor of 1.1. Well guessed.
    """

    question: str
    guess: float | str | None
    unit: str
    choices: tuple[str, ...] = ()
    problem: str = ""
    counts: str = "factor"
    base: float = 1.0
    name: str = ""
    confidence: str = ""
    note: str = ""
    is_lessons: bool = False

    def __str__(self) -> str:
        return visible(f"{self.question} {self._state}")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _html.box(_html.ASKED, _html.paragraphs(f"{self.question}\n\n{self._state}"))

    def _ipython_display_(self) -> None:
        if not shell.is_watched():
            raise NotImplementedError  # IPython shows it as text and HTML then
        GuessForm(self).display()

    def give(self, guess: object, confidence: object = None) -> None:
        """Set the guess or the confidence, as typed in the form, and save it at once.

        What cannot be read changes nothing but ``problem``, which says why.

        Parameters
        ----------
        guess
            As for :func:`predict`, or a text such as ``"5 ms"``, ``"1/3"``, ``"1,000"`` or
            ``"8x"``. ``...`` keeps the guess.
        confidence
            As for :func:`predict`; None keeps it.

        Examples
        --------
        >>> from gpulab import exercises
        >>> asked = exercises.predict("How long does the matmul take?", ..., unit="µs")
        >>> asked.give("1,000")
        >>> print(asked.compare(990e-6))
        Close. You said 1,000 µs, it was 990 µs: the same within 5 %.
        """
        if not is_open(guess):
            number = read_typed(guess, self.unit) if isinstance(guess, str) else guess
            read = (
                _read_choice(guess, self.choices)
                if self.choices
                else _read_guess(guess if number is None else number, self.unit)
            )
            self.problem = read[1]
            if read[0] is None:
                return
            self.guess = read[0]
        self.note = ""
        if not is_open(confidence):
            step, self.note = _read_confidence(confidence)
            self.confidence = step or self.confidence
        self.save()

    def save(self) -> None:
        """Save the guess in the learner's journal, if it has a name; :func:`predict` does so."""
        if self.guess is None or not self.name:
            return
        number, choice = (None, self.guess) if isinstance(self.guess, str) else (self.guess, "")
        entry = Guess(
            self.name,
            now(),
            number,
            choice,
            self.unit,
            self.confidence,
            question=self.question,
            n_choices=len(self.choices),
        )
        self.note = " ".join(filter(None, (self.note, _saved_guesses.keep(entry))))
        follow(self)

    @property
    def typed(self) -> str:
        """The guess as text for the form: a number in the unit, or empty."""
        if self.guess is None or isinstance(self.guess, str):
            return ""
        return f"{self.guess / TIMES.get(self.unit, 1.0):.10g}"

    @property
    def said(self) -> str:
        """What the form says: the guess, why it cannot be read, or nothing yet."""
        return self.problem or ("" if self.guess is None else self._state)

    @property
    def _state(self) -> str:
        if self.guess is not None:
            sure = f" ({self.confidence})" if self.confidence else ""
            note = f" {self.note}" if self.note else ""
            is_late = self.note.endswith(_saved_guesses.LATE)
            return f"You say {self._guess_text(self.guess)}{sure}.{note}{'' if is_late else _NEXT}"
        form = _form(self.unit, self.choices)
        if not self.is_lessons:
            return self.problem or f"Put your guess in place of the three dots: {form}."
        # Not an example such as 300: the guess would be near it.
        call = f'exercises.predict("{self.name}", ...)'
        return (
            self.problem
            or f"Give your guess in its form, or in place of the three dots in {call}: {form}."
        )

    def compare(self, actual: "Measurement | float | str") -> GuessReview:
        """Compare the guess with the outcome.

        Parameters
        ----------
        actual
            The outcome. For a time pass a ``Measurement`` or seconds, for a count the number in
            its unit, for choices the right one.

        Returns
        -------
        GuessReview
            The comparison, which shows itself as the last line of a cell. Without a guess it only
            says what the outcome is.
        """
        if is_open(actual):
            return GuessReview(_NO_GUESS, "There is nothing to compare with yet: measure first.")
        value = str(actual) if self.choices else _value(actual, self.unit)
        if value is None:
            kind = type(actual).__name__
            wanted = (
                "a Measurement or seconds" if self.unit in TIMES else f"a number ({self.unit})"
            )
            return GuessReview(_NO_GUESS, f"compare needs {wanted} and got a {kind}.")
        outcome = _outcome(actual) or self._write(value)
        review = self._review(value, outcome)
        counts = "choice" if self.choices else self.counts
        _saved_guesses.reveal(self.name, outcome, review, counts=counts, size=review.size)
        return review

    def _review(self, value: float | str, outcome: str) -> GuessReview:
        # After the outcome a change is kept, and the guess before it is the one that is judged.
        first = _saved_guesses.before_a_change(self.name, self.unit, self.choices)
        guess, you = (self.guess, "You") if first is None else (first, "You first")
        if guess is None:
            begin = "The outcome:" if self.choices else "It was"
            return GuessReview(_NO_GUESS, f"{begin} {outcome}. {self._state}")
        if isinstance(guess, str) or isinstance(value, str):
            if _plain(str(value)) == _plain(str(guess)):
                message = f"{you} said {_quoted(guess)}, and so it is."
                return GuessReview(_html.RIGHT, message, is_right=True)
            guessed, was = _quoted(guess), _quoted(value)
            message = f"{you} said {guessed}; it was {was}. What did you expect, and why?"
            return GuessReview(_html.DIFFERENT, message, is_right=False)
        judged = distance(self.counts, guess, value, self.base)
        ratio = value / guess if guess > 0 and value > 0 else None
        message = f"{you} said {self._guess_text(guess)}, it was {outcome}{judged.words}"
        return GuessReview(*(judged.tone, message, ratio, judged.size), is_right=judged.is_right)

    def _guess_text(self, guess: float | str) -> str:
        """Return a guess in the unit in which it was typed."""
        if isinstance(guess, str):
            return guess
        # Not format_time, which would round what the learner typed or write it in another unit.
        return _with_unit(f"{guess / TIMES.get(self.unit, 1.0):,.10g}", self.unit)

    def _write(self, value: float | str) -> str:
        if isinstance(value, str):
            return value
        if self.unit in TIMES:
            return format_time(value)
        return _with_unit(format_number(value), self.unit)


def _read_confidence(confidence: object) -> tuple[str, str]:
    """Return the confidence, and what to type instead if it is not known."""
    step = "" if is_open(confidence) else _plain(str(confidence))
    if not step or step in CONFIDENCE:
        return step, ""
    known = ", ".join(map(repr, CONFIDENCE))
    return "", f"confidence={confidence!r} is not known; use one of {known}."


def _read_choice(guess: object, choices: tuple[str, ...]) -> tuple[str | None, str]:
    for choice in choices:
        if _plain(choice) == _plain(str(guess)):
            return choice, ""
    return None, f"{guess!r} isn't one of the choices; give {_form('', choices)}."


def _read_guess(guess: object, unit: str) -> tuple[float | None, str]:
    """Return a guess in seconds or as a count, and the problem if it cannot be read.

    A text with a unit of time, such as "2 ms", overrides ``unit``.
    """
    number = read_number(guess)
    problem = bad_unit(unit)
    # Text is read as a duration, which cannot be the answer to a question for a count.
    if not problem and (number is None or (isinstance(guess, str) and unit not in TIMES)):
        problem = f"{guess!r} isn't a number; give {_form(unit, ())}."
    if problem or number is None:
        return None, problem
    if number < 0:
        what = "a time is above zero" if unit in TIMES else "give a number of at least 0"
        return None, f"{number:g} is negative: {what}."
    return number if isinstance(guess, str) else number * TIMES.get(unit, 1.0), ""


def _quoted(choice: float | str) -> str:
    """Return a choice as text, in quotes if its words could run into the sentence."""
    return f"\u201c{choice}\u201d" if " " in str(choice) else str(choice)


def _with_unit(number: str, unit: str) -> str:
    """Return a number with its unit: "1 launch", and "1.00 times", which is no count."""
    if number != "1":
        return f"{number} {unit}"
    return "1.00 times" if unit == "times" else f"1 {_ONE.get(unit, unit)}"


def bad_unit(unit: str) -> str:
    """Return what to write in place of a unit that is not known; empty for a known one."""
    if unit in TIMES or unit in _COUNTS:
        return ""
    known = ", ".join(["s", "ms", "µs", "ns", *_COUNTS])
    return f"unit={unit!r} is not known; use one of {known}."


def _form(unit: str, choices: tuple[str, ...]) -> str:
    if choices:
        return f"one of {', '.join(map(repr, choices))}"
    return f"a number in {unit}" if unit in TIMES else f"a number ({unit})"


def _value(actual: object, unit: str) -> float | None:
    """Return an outcome as a number: for a time, a Measurement gives its median."""
    from gpulab.device.measurement import Measurement

    if isinstance(actual, Measurement) and unit in TIMES:
        return actual.median_s
    return read_number(actual)


def _outcome(actual: object) -> str:
    """Return the text of a Measurement, with interval and GPU; empty for anything else."""
    from gpulab.device.measurement import Measurement

    if not isinstance(actual, Measurement):
        return ""
    value = format_estimate(actual.median_s, *actual.interval_s)
    return f"{value} ({device_label(actual.conditions.device_name, actual.source)})"


def _plain(text: str) -> str:
    return text.strip().lower()
