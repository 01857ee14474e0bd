"""Guesses are saved and compared; a notebook runs on with anything typed in their place."""

import numpy as np
import pytest

from gpulab.errors import InvalidOptionError, UnknownNameError
from gpulab.exercises._predictions import predict
from gpulab.measurement import Measurement
from tests.support.conditions import HERE

VIRTUAL = Measurement((553e-6,) * 3 + (554e-6,) * 3 + (555e-6,) * 3, "events", "virtual", HERE)
QUESTION = "How long does it take?"
KNOWN = "use one of s, ms, µs, ns, launches, calls, times, TFLOP/s, GB/s, %."


def test_a_guess_is_held_against_a_measurement() -> None:
    """Guess and outcome have units, the outcome its interval and source, and both a ratio."""
    comparison = predict(QUESTION, 40, "µs").compare(VIRTUAL)
    assert str(comparison) == (
        "Far off. You said 40 µs, it was 554 µs [553, 555] (virtual NVIDIA H200): "
        "13.9 times more. It works in another way than you thought."
    )
    assert comparison.ratio == pytest.approx(13.85)


@pytest.mark.parametrize(
    ("guess", "words"),
    [
        (554, "Close. You said 554 µs, it was 554 µs: exactly."),
        (540, "Close. You said 540 µs, it was 554 µs: the same within 5 %."),
        (400, "Close. You said 400 µs, it was 554 µs: 1.39 times more. Well guessed."),
        (
            277,
            (
                "Near. You said 277 µs, it was 554 µs: 2 times more. "
                "Within a factor of 3: about the right size."
            ),
        ),
        (
            5000,
            "Off. You said 5,000 µs, it was 554 µs: 9.03 times less. What makes the difference?",
        ),
        (
            5.54e6,
            (
                "Far off. You said 5,540,000 µs, it was 554 µs: 10,000 times less. "
                "It works in another way than you thought."
            ),
        ),
        (0, "Far off. You said 0 µs, it was 554 µs. What did you leave out?"),
    ],
)
def test_times_go_by_their_factor(guess: float, words: str) -> None:
    """Within 1.5 times, within 3, within 10 and beyond are four different findings."""
    assert str(predict(QUESTION, guess).compare(554e-6)) == words


@pytest.mark.parametrize(
    ("guess", "actual", "words"),
    [
        (
            1,
            1.145,
            "Wrong direction. You said 1 times, it was 1.145 times: more than 1, not the same.",
        ),
        (
            0.97,
            1.06,
            "Wrong direction. You said 0.97 times, it was 1.06 times: more than 1, not less.",
        ),
        (
            1.3,
            1.145,
            (
                "Near. You said 1.3 times, it was 1.145 times. The direction is right: "
                "more than 1. The difference from 1 is 2.07 times smaller."
            ),
        ),
        (
            4,
            2.9,
            (
                "Near. You said 4 times, it was 2.9 times. The direction is right: more than 1. "
                "The difference from 1 is 1.58 times smaller."
            ),
        ),
        (
            0.4,
            0.5,
            "Close. You said 0.4 times, it was 0.5 times. The direction is right: less than 1.",
        ),
        (1.01, 0.99, "Close. You said 1.01 times, it was 0.99 times: both are about 1."),
        (1.5, 1.5, "Close. You said 1.5 times, it was 1.5 times: exactly."),
        (
            1.1,
            40,
            (
                "Far off. You said 1.1 times, it was 40 times. The direction is right: "
                "more than 1. The difference from 1 is 390 times larger."
            ),
        ),
    ],
)
def test_a_ratio_goes_by_its_direction_first(guess: float, actual: float, words: str) -> None:
    """A guess on the wrong side of 1 is wrong however near; then the difference counts."""
    prediction = predict("How many times as long?", guess, "times", counts="direction")
    assert str(prediction.compare(actual)) == words


def test_a_direction_has_a_base_in_the_unit_of_the_guess() -> None:
    """More or less than the clock that was asked for, not than one."""
    prediction = predict("What now?", 12, "µs", counts="direction", base=10)
    assert prediction.base == pytest.approx(10e-6)
    assert str(prediction.compare(9e-6)).startswith("Wrong direction. ")
    assert str(prediction.compare(12.1e-6)).startswith("Close. ")


@pytest.mark.parametrize(
    ("guess", "actual", "words"),
    [
        (50, 95, "Far off. You said 50 %, it was 95 %: 45 percentage points more."),
        (70, 95, "Off. You said 70 %, it was 95 %: 25 percentage points more."),
        (96, 95, "Close. You said 96 %, it was 95 %: 1 percentage point less."),
        (85, 95, "Near. You said 85 %, it was 95 %: 10 percentage points more."),
    ],
)
def test_a_share_goes_by_percentage_points(guess: float, actual: float, words: str) -> None:
    """Half where it is nearly all is far off, although it is within a factor of two."""
    assert str(predict("What share?", guess, "%").compare(actual)) == words


@pytest.mark.parametrize(
    ("guess", "actual", "words"),
    [
        (2, 3, "Near. You said 2 calls, it was 3 calls: one more."),
        (4, 3, "Near. You said 4 calls, it was 3 calls: one fewer."),
        (1000, 1021, "Near. You said 1,000 calls, it was 1,021 calls: 21 more."),
        (5, 3, "Off. You said 5 calls, it was 3 calls: 2 fewer."),
        (40, 3, "Far off. You said 40 calls, it was 3 calls: 37 fewer."),
        (3, 3, "Close. You said 3 calls, it was 3 calls: exactly."),
        (1, 1, "Close. You said 1 call, it was 1 call: exactly."),
        (0, 1, "Near. You said 0 calls, it was 1 call: one more."),
    ],
)
def test_a_count_is_exact(guess: float, actual: float, words: str) -> None:
    """One off is said; a count of zero has no factor."""
    assert str(predict("How many?", guess, "calls").compare(actual)) == words


@pytest.mark.parametrize(
    ("guess", "actual", "words"),
    [
        (700, 690, "Close. You said 700 TFLOP/s, it was 690 TFLOP/s: 1.43 % less."),
        (500, 600, "Near. You said 500 TFLOP/s, it was 600 TFLOP/s: 20 % more."),
        (300, 600, "Off. You said 300 TFLOP/s, it was 600 TFLOP/s: 100 % more."),
        (100, 600, "Far off. You said 100 TFLOP/s, it was 600 TFLOP/s: 500 % more."),
        (0, 600, "Far off. You said 0 TFLOP/s, it was 600 TFLOP/s. What did you leave out?"),
    ],
)
def test_percent_asks_for_a_tenth(guess: float, actual: float, words: str) -> None:
    """Where it can be worked out, a factor of two is off."""
    prediction = predict("What rate?", guess, "TFLOP/s", counts="percent")
    assert str(prediction.compare(actual)) == words


def test_what_counts_has_a_name() -> None:
    """An unknown rule is an error of the notebook."""
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
def test_guesses_are_kept_in_seconds_or_as_counts(
    guess: object, unit: str, guess_s: float
) -> None:
    """A unit of time is converted, text brings its own, and a count stays what it is."""
    prediction = predict(QUESTION, guess, unit)
    assert prediction.guess == pytest.approx(guess_s, rel=1e-12)
    assert prediction.problem == ""


@pytest.mark.parametrize("blank", [..., None])
def test_no_guess_says_how_to_give_one(blank: object) -> None:
    """The placeholder is no error: the question and the form of the guess are shown."""
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
        ("12", "µs", "'12' isn't a number; give a number in µs."),
        ("2 ms", "times", "'2 ms' isn't a number; give a number (times)."),
        ([1, 2], "µs", "[1, 2] isn't a number; give a number in µs."),
        (True, "µs", "True isn't a number; give a number in µs."),
        (-3, "µs", "-3 isn't possible; give a number in µs of at least 0."),
        (float("nan"), "calls", "nan isn't a number; give a number (calls)."),
        (3, "hours", f"unit='hours' is not known; {KNOWN}"),
        (..., "sec", f"unit='sec' is not known; {KNOWN}"),
    ],
)
def test_a_guess_that_cannot_be_used_says_why(guess: object, unit: str, problem: str) -> None:
    """Nothing is raised; the prediction counts as open and says what to type."""
    prediction = predict(QUESTION, guess, unit)
    assert prediction.guess is None
    assert str(prediction) == f"{QUESTION} {problem}"


def test_choices_are_compared_with_the_one_that_came_true() -> None:
    """Capitals and spaces do not matter; the outcome may be any object that reads the same."""
    prediction = predict("Does it grow?", " Yes", choices=("yes", "no"))
    assert str(prediction) == "Does it grow? You say yes. Now see what comes out."
    assert str(prediction.compare("yes")) == "Right. You said yes, and so it is."
    assert str(prediction.compare("no")) == (
        "Different. You said yes; it was no. What did you expect, and why?"
    )
    assert (
        predict("From which n?", "512", choices=("64", "512")).compare(512).tone.word == "Right."
    )
    assert str(predict("Does it?", ..., choices=("yes",)).compare("yes")) == (
        "No guess. It was yes. Put your guess in place of the three dots: one of 'yes'."
    )


def test_a_choice_that_is_none_is_named() -> None:
    """The message lists what can be chosen."""
    prediction = predict("Does it grow?", "perhaps", choices=("yes", "no"))
    assert prediction.guess is None
    assert prediction.problem == "'perhaps' isn't one of the choices; give one of 'yes', 'no'."


def test_counts_are_compared_in_their_unit() -> None:
    """A count has no seconds; zero is a possible outcome and has no ratio."""
    prediction = predict("How many fit?", 100, "launches")
    assert str(prediction) == "How many fit? You say 100 launches. Now see what comes out."
    words = "You said 100 launches, it was 1,021 launches: 921 more."
    assert words in str(prediction.compare(1021))
    assert prediction.compare(np.int64(0)).ratio is None


@pytest.mark.parametrize(
    ("unit", "actual", "message"),
    [
        ("µs", ..., "There is nothing to compare with yet: measure first."),
        ("µs", "soon", "compare needs a Measurement or seconds and got a str."),
        ("calls", [1], "compare needs a number (calls) and got a list."),
    ],
)
def test_an_outcome_that_is_none_is_no_error(unit: str, actual: object, message: str) -> None:
    """A cell above that has not been run does not break the one below."""
    assert str(predict(QUESTION, 40, unit).compare(actual)) == f"No guess. {message}"


def test_a_count_is_not_compared_with_a_duration() -> None:
    """A Measurement is in seconds, and a count is not."""
    comparison = predict(QUESTION, 40, "calls").compare(VIRTUAL)
    assert str(comparison) == "No guess. compare needs a number (calls) and got a Measurement."


def test_boxes_carry_words_and_no_markup_of_the_learner() -> None:
    """The sign is for eyes, the word for all; what was typed is text."""
    page = predict("Is 1 < 2?", ..., choices=("<yes>", "no"))._repr_html_()
    assert page.startswith('<div role="status"')
    assert '<span aria-hidden="true">?</span> Predict.' in page
    assert "Is 1 &lt; 2?" in page
    assert "&lt;yes&gt;" in page
    compared = predict(QUESTION, 40).compare(554e-6)._repr_html_()
    assert '<span aria-hidden="true">✗</span> Far off.' in compared
