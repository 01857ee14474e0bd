"""A guess is kept and compared; whatever is typed in its place, a notebook runs on."""

import numpy as np
import pytest

from gpulab.exercises._predictions import predict
from gpulab.measurement import Measurement
from tests.support.conditions import HERE

VIRTUAL = Measurement((553e-6,) * 3 + (554e-6,) * 3 + (555e-6,) * 3, "events", "virtual", HERE)
QUESTION = "How long does it take?"
WELL = "Within a factor of 2: well guessed."
FAIR = "Within a factor of 10: about the right size. What makes the difference?"
OFF = "Off by more than a factor of 10: something works in another way than you thought."
KNOWN = "use one of s, ms, µs, ns, launches, calls, times, TFLOP/s, GB/s, %."


def test_a_guess_is_held_against_a_measurement() -> None:
    """Guess and outcome have units, the outcome its interval and source, and both a ratio."""
    comparison = predict(QUESTION, 40, "µs").compare(VIRTUAL)
    assert str(comparison) == (
        "Far off. You said 40 µs, it was 554 µs [553, 555] (virtual NVIDIA H200): "
        "13.9 times more. Off by more than a factor of 10: something works in another way than "
        "you thought."
    )
    assert comparison.ratio == pytest.approx(13.85)


@pytest.mark.parametrize(
    ("guess", "words"),
    [
        (554, "Close. You said 554 µs, it was 554 µs: exactly."),
        (540, "Close. You said 540 µs, it was 554 µs: the same within 5 %."),
        (277, f"Close. You said 277 µs, it was 554 µs: 2 times more. {WELL}"),
        (5000, f"Not far. You said 5,000 µs, it was 554 µs: 9.03 times less. {FAIR}"),
        (55_400, f"Far off. You said 55,400 µs, it was 554 µs: 100 times less. {OFF}"),
        (5.54e6, f"Far off. You said 5,540,000 µs, it was 554 µs: 10,000 times less. {OFF}"),
        (0, "Different. You said 0 µs, it was 554 µs. What did you leave out?"),
    ],
)
def test_the_comment_fits_the_distance(guess: float, words: str) -> None:
    """Equal, within 2 times, within 10 times and beyond are four different findings."""
    assert str(predict(QUESTION, guess).compare(554e-6)) == words


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
        ("fast", "µs", "'fast' is no number; give a number in µs."),
        ("12", "µs", "'12' is no number; give a number in µs."),
        ("2 ms", "times", "'2 ms' is no number; give a number (times)."),
        ([1, 2], "µs", "[1, 2] is no number; give a number in µs."),
        (True, "µs", "True is no number; give a number in µs."),
        (-3, "µs", "-3 cannot come out; give a number in µs of at least 0."),
        (float("nan"), "calls", "nan cannot come out; give a number (calls) of at least 0."),
        (3, "hours", f"unit='hours' is not known; {KNOWN}"),
        (..., "sec", f"unit='sec' is not known; {KNOWN}"),
    ],
)
def test_a_guess_that_cannot_be_used_says_why(guess: object, unit: str, problem: str) -> None:
    """Nothing is raised; the prediction counts as open and tells what to type."""
    prediction = predict(QUESTION, guess, unit)
    assert prediction.guess is None
    assert str(prediction) == f"{QUESTION} {problem}"


def test_choices_are_compared_with_the_one_that_came_true() -> None:
    """Capitals and spaces do not matter; the outcome may be any object that reads the same."""
    prediction = predict("Does it grow?", " Yes", choices=("yes", "no"))
    assert str(prediction) == "Does it grow? You say yes. Now see what comes out."
    assert str(prediction.compare("yes")) == "Right. You said yes, and so it came."
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
    assert prediction.problem == "'perhaps' is none of the choices; give one of 'yes', 'no'."


def test_counts_are_compared_in_their_unit() -> None:
    """A count has no seconds; zero is a possible outcome and has no ratio."""
    prediction = predict("How many fit?", 100, "launches")
    assert str(prediction) == "How many fit? You say 100 launches. Now see what comes out."
    words = "You said 100 launches, it was 1,021 launches: 10.2 times more."
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
