"""Guesses are compared with outcomes, and a notebook continues whatever is typed as a guess."""

from importlib import import_module

import numpy as np
import pytest

from gpulab.core.errors import InvalidOptionError, UnknownNameError
from gpulab.device.measurement import Measurement
from gpulab.exercises import predict
from gpulab.exercises._lesson_index import N_LESSONS
from tests.support.conditions import HERE

VIRTUAL = Measurement((553e-6,) * 3 + (554e-6,) * 3 + (555e-6,) * 3, "events", "virtual", HERE)
QUESTION = "How long does it take?"
US, SHARE, CALLS = {"unit": "µs"}, {"unit": "%"}, {"unit": "calls"}
WAY = {"unit": "times", "counts": "direction"}
RATE = {"unit": "TFLOP/s", "counts": "percent"}
KNOWN = (
    "use one of s, ms, µs, ns, launches, calls, steps, trials, answers, times, TFLOP/s, GB/s, %."
)


def test_a_guess_is_compared_with_a_measurement() -> None:
    """The text has guess and outcome with units, the interval, the source and the ratio."""
    comparison = predict(QUESTION, 40, "µs").compare(VIRTUAL)
    assert str(comparison) == (
        "Far off. You said 40 µs, it was 554 µs [553, 555] (virtual NVIDIA H200): "
        "a factor of 13.9. It works in another way than you thought."
    )
    assert comparison.ratio == pytest.approx(13.85)


# The unit and the rule of a guess, the guess, the outcome, and what is said after both.
JUDGED: list[tuple[dict[str, str], float, float, str]] = [
    # Ratios within 1.5, within 3, within 10 and beyond get four different words.
    (US, 554, 554e-6, "Close. 554 µs, 554 µs: exactly."),
    (US, 540, 554e-6, "Close. 540 µs, 554 µs: the same within 5 %."),
    (US, 400, 554e-6, "Close. 400 µs, 554 µs: a factor of 1.39. Well guessed."),
    (
        *(US, 277, 554e-6),
        "Near. 277 µs, 554 µs: a factor of 2. Within a factor of 3: about the right size.",
    ),
    (US, 5000, 554e-6, "Off. 5,000 µs, 554 µs: a factor of 9.03. What makes the difference?"),
    (
        *(US, 5.54e6, 554e-6),
        (
            "Far off. 5,540,000 µs, 554 µs: a factor of 10,000. "
            "It works in another way than you thought."
        ),
    ),
    (US, 0, 554e-6, "Far off. 0 µs, 554 µs. What did you leave out?"),
    (US, 3, 0, "Far off. 3 µs, 0.00 s. What did you leave out?"),
    # A guess on the wrong side of 1 is wrong; otherwise the difference from 1 counts.
    (
        *(WAY, 1, 1.145),
        "Wrong direction. 1.00 times, 1.15 times: more than 1, not the same.",
    ),
    (WAY, 0.97, 1.06, "Wrong direction. 0.97 times, 1.06 times: more than 1, not less."),
    (WAY, 1.3, 1.145, "Near. 1.3 times, 1.15 times. The direction is right: more than 1."),
    (WAY, 4, 2.9, "Near. 4 times, 2.9 times. The direction is right: more than 1."),
    (WAY, 0.4, 0.5, "Close. 0.4 times, 0.5 times. The direction is right: less than 1."),
    (WAY, 1.01, 0.99, "Close. 1.01 times, 0.99 times: both are about 1."),
    (WAY, 1.1, 40, "Far off. 1.1 times, 40 times. The direction is right: more than 1."),
    # A guess of 50 % for 95 % is far off, although its ratio is below two.
    (SHARE, 50, 95, "Far off. 50 %, 95 %: 45 percentage points more."),
    (SHARE, 70, 95, "Off. 70 %, 95 %: 25 percentage points more."),
    (SHARE, 96, 95, "Close. 96 %, 95 %: 1 percentage point less."),
    (SHARE, 85, 95, "Near. 85 %, 95 %: 10 percentage points more."),
    # A count is judged by its difference, which also works for zero.
    (CALLS, 2, 3, "Near. 2 calls, 3 calls: one more."),
    (CALLS, 4, 3, "Near. 4 calls, 3 calls: one fewer."),
    (CALLS, 1000, 1021, "Near. 1,000 calls, 1,021 calls: 21 more."),
    (CALLS, 5, 3, "Off. 5 calls, 3 calls: 2 fewer."),
    (CALLS, 40, 3, "Far off. 40 calls, 3 calls: 37 fewer."),
    (CALLS, 1, 1, "Close. 1 call, 1 call: exactly."),
    (CALLS, 0, 1, "Near. 0 calls, 1 call: one more."),
    # For rates that can be worked out, a factor of two is off.
    (RATE, 700, 690, "Close. 700 TFLOP/s, 690 TFLOP/s: 1.43 % less."),
    (RATE, 0.5, 0.6, "Near. 0.5 TFLOP/s, 0.6 TFLOP/s: 20 % more."),
    (RATE, 500, 600, "Near. 500 TFLOP/s, 600 TFLOP/s: 20 % more."),
    (RATE, 300, 600, "Off. 300 TFLOP/s, 600 TFLOP/s: 100 % more."),
    (RATE, 100, 600, "Far off. 100 TFLOP/s, 600 TFLOP/s: 500 % more."),
    (RATE, 0, 600, "Far off. 0 TFLOP/s, 600 TFLOP/s. What did you leave out?"),
]


@pytest.mark.parametrize(("rule", "guess", "actual", "words"), JUDGED)
def test_each_rule_has_its_words(
    rule: dict[str, str], guess: float, actual: float, words: str
) -> None:
    """The verdict comes first, then guess and outcome in their unit, and the distance."""
    said = str(predict("How much?", guess, **rule).compare(actual))  # type: ignore[arg-type]  # texts
    assert said.replace("You said ", "").replace(", it was ", ", ") == words


def test_the_base_of_a_direction_has_the_unit_of_the_guess() -> None:
    """With a base, a guess is judged as more or less than the base instead of 1."""
    prediction = predict("What now?", 12, "µs", counts="direction", base=10)
    assert prediction.base == pytest.approx(10e-6)
    assert str(prediction.compare(9e-6)).startswith("Wrong direction. ")
    assert str(prediction.compare(12.1e-6)).startswith("Close. ")


def test_unknown_rules_and_bases_are_refused() -> None:
    """An unknown rule or a base of 0 raises an error, since it is a mistake of the notebook."""
    with pytest.raises(UnknownNameError, match="unknown rule of what counts 'ratio'"):
        predict(QUESTION, 3, counts="ratio")
    with pytest.raises(InvalidOptionError, match="base=0; it must be"):
        predict(QUESTION, 3, counts="direction", base=0)


@pytest.mark.parametrize(
    ("guess", "unit", "guess_s"),
    [
        (2, "s", 2.0),
        (2.0, "ms", 2e-3),
        (np.float64(2), "µs", 2e-6),
        (2, "us", 2e-6),
        (2, "\u03bcs", 2e-6),
        (2, "ns", 2e-9),
        ("2 ms", "µs", 2e-3),
        (1021, "launches", 1021.0),
    ],
)
def test_guesses_are_stored_in_seconds_or_as_counts(
    guess: object, unit: str, guess_s: float
) -> None:
    """Times are converted to seconds, text may contain its own unit, counts do not change."""
    prediction = predict(QUESTION, guess, unit)
    assert prediction.guess == pytest.approx(guess_s, rel=1e-12)
    assert prediction.problem == ""


@pytest.mark.parametrize("blank", [..., None])
def test_no_guess_says_how_to_give_one(blank: object) -> None:
    """For a placeholder, the text shows the question and the form of a guess."""
    prediction = predict(QUESTION, blank, "ms")
    form = "Put your guess in place of the three dots: a number in ms."
    assert str(prediction) == repr(prediction) == f"{QUESTION} {form}"
    assert str(prediction.compare(554e-6)) == f"No guess. It was 554 µs. {form}"
    choice = predict(QUESTION, blank, choices=("yes", "no"))
    assert (
        str(choice) == f"{QUESTION} Put your guess in place of the three dots: one of 'yes', 'no'."
    )


@pytest.mark.parametrize(
    ("guess", "unit", "problem"),
    [
        ("fast", "µs", "'fast' isn't a number; give a number in µs."),
        ("12 m", "µs", "'12 m' isn't a number; give a number in µs."),
        ("2 ms", "times", "'2 ms' isn't a number; give a number (times)."),
        ([1, 2], "µs", "[1, 2] isn't a number; give a number in µs."),
        (True, "µs", "True isn't a number; give a number in µs."),
        (-3, "µs", "-3 is negative: a time is above zero."),
        (float("nan"), "calls", "nan isn't a number; give a number (calls)."),
        (3, "hours", f"unit='hours' is not known; {KNOWN}"),
        (..., "sec", f"unit='sec' is not known; {KNOWN}"),
    ],
)
def test_a_guess_that_cannot_be_used_says_why(guess: object, unit: str, problem: str) -> None:
    """An unusable guess raises nothing; it counts as open, and the text says what to type."""
    prediction = predict(QUESTION, guess, unit)
    assert prediction.guess is None
    assert str(prediction) == f"{QUESTION} {problem}"


def test_a_choice_is_compared_with_the_outcome() -> None:
    """Case and spaces do not matter, and the outcome may be an object with the same text."""
    prediction = predict("Does it grow?", " Yes", choices=("yes", "no"))
    assert str(prediction) == "Does it grow? You say yes. Now see what comes out."
    assert str(prediction.compare("yes")) == "Right. You said yes, and so it is."
    different = prediction.compare("no")
    assert str(different) == "Different. You said yes; it was no. What did you expect, and why?"
    assert different.is_right is False
    assert (
        predict("From which n?", "512", choices=("64", "512")).compare(512).tone.word == "Right."
    )
    assert str(predict("Does it?", ..., choices=("yes",)).compare("yes")) == (
        "No guess. The outcome: yes. Put your guess in place of the three dots: one of 'yes'."
    )


@pytest.mark.parametrize(
    ("unit", "actual", "message"),
    [
        ("µs", ..., "There is nothing to compare with yet: measure first."),
        ("µs", "soon", "compare needs a Measurement or seconds and got a str."),
        ("calls", [1], "compare needs a number (calls) and got a list."),
    ],
)
def test_an_unusable_outcome_is_not_an_error(unit: str, actual: object, message: str) -> None:
    """A missing or unusable outcome, as of a cell that was not run, leads to a message."""
    assert str(predict(QUESTION, 40, unit).compare(actual)) == f"No guess. {message}"


def test_boxes_have_words_and_escape_what_was_typed() -> None:
    """The sign is hidden from screen readers, which read the word; typed text is escaped."""
    page = predict("Is 1 < 2?", ..., choices=("<yes>", "no"))._repr_html_()
    assert page.startswith('<div role="status"')
    assert '<span aria-hidden="true">?</span> Predict.' in page
    assert "Is 1 &lt; 2?" in page
    assert "&lt;yes&gt;" in page
    compared = predict(QUESTION, 40).compare(554e-6)._repr_html_()
    assert '<span aria-hidden="true">✗</span> Far off.' in compared


def test_guesses_of_all_lessons_can_be_read() -> None:
    """Each number that a lesson asks for has a unit that is known."""
    asked = [
        question
        for package in ("cases", *(f"lesson_{number:02}" for number in range(N_LESSONS)))
        for question in import_module(f"gpulab.exercises.{package}._guesses").GUESSES
        if not question.choices
    ]
    assert len(asked) > 30
    problems = {each.name: predict(each.question, 3, each.unit).problem for each in asked}
    assert {name: problem for name, problem in problems.items() if problem} == {}
