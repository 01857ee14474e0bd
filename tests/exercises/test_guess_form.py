"""The form of a prediction: what it takes, what it keeps, and when it is shown."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpulab import exercises
from gpulab.core.errors import UnknownNameError
from gpulab.exercises._guess_form import GuessForm
from gpulab.exercises._typed import read_typed
from gpulab.figures import widgets
from tests.exercises.test_journal import folder, kept
from tests.support.notebook_display import needs_ipywidgets_8, shown_in

__all__ = ["folder"]  # a fixture: an empty folder with a journal of its own

QUESTION = "How long does it take?"


@pytest.mark.parametrize(
    ("typed", "unit", "number"),
    [
        ("5", "µs", 5.0),
        (" 1,000 ", "µs", 1000.0),
        ("12,345.5", "µs", 12345.5),
        ("1/3", "times", 1 / 3),
        ("8x", "times", 8.0),
        ("8 \u00d7", "times", 8.0),
        ("50 %", "%", 50.0),
        ("3 launches", "launches", 3.0),
        ("1e300", "µs", 1e300),
        ("5 ms", "µs", "5 ms"),
        ("1,000 ns", "µs", "1000 ns"),
        *(
            (typed, "µs", None)
            for typed in ("", "many", "1/0", "0,5", "1.2.3", "-1", "8x", "5 apples")
        ),
    ],
)
def test_what_a_learner_types(typed: str, unit: str, number: object) -> None:
    """Durations, fractions, factors and groups of digits are read, and nothing else."""
    assert read_typed(typed, unit) == number


def test_what_cannot_be_read_keeps_the_guess() -> None:
    """A sentence says what is wrong, and the guess before it counts on."""
    asked = exercises.predict(QUESTION, 300, unit="µs")
    asked.give("many")
    assert asked.said == "'many' isn't a number; give a number in µs."
    assert asked.guess == pytest.approx(300e-6)
    asked.give("2 ms", "sure")
    assert (asked.typed, asked.confidence) == ("2000", "sure")
    assert str(asked.compare(2e-3)).startswith("Close. You said 2,000 µs")


def test_a_form_saves_at_once_and_a_cell_run_again_keeps_the_guess(
    folder: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three dots take the saved guess, with a front end and without one."""
    options: dict[str, Any] = {"unit": "µs", "name": "01.form"}
    exercises.predict(QUESTION, ..., **options).give("5 ms", "likely")
    saved = kept(folder)["01.form"].latest  # type: ignore[arg-type]  # a path
    assert saved is not None
    assert (saved.number, saved.confidence) == (5e-3, "likely")
    for watched in (True, False):
        monkeypatch.setattr(widgets, "is_watched", lambda watched=watched: watched)
        again = exercises.predict(QUESTION, ..., **options)
        assert (again.guess, again.confidence) == (5e-3, "likely")
    # Another question has this name now.
    assert exercises.predict(QUESTION, ..., unit="times", name="01.form").guess is None


def test_a_saved_choice_that_is_no_longer_offered_is_no_guess(
    folder: object,
) -> None:
    """The choice counts only while it is one of the choices."""
    del folder
    exercises.predict(QUESTION, "b", choices=("a", "b"), name="01.form")
    assert exercises.predict(QUESTION, ..., choices=("b", "c"), name="01.form").guess == "b"
    assert exercises.predict(QUESTION, ..., choices=("c", "d"), name="01.form").guess is None


def test_a_question_is_asked_by_its_name_and_compared_in_another_cell(folder: Path) -> None:
    """Question and unit come from the lesson; the last guess counts, also in a new kernel."""
    assert str(exercises.predict("01.naive")) == (
        "What does the stopwatch below read? Give your guess in place of the three dots in "
        'exercises.predict("01.naive", ...): a number in µs.'
    )
    assert str(exercises.compare("01.naive", 2e-3)).startswith("No guess. It was 2.00 ms. Give")
    assert list(folder.iterdir()) == []
    exercises.predict("01.flat", "4x")
    exercises.predict("01.flat", "8x", confidence="likely")
    assert str(exercises.predict("01.flat")).endswith(
        "You say 8 times (likely). Now see what comes out."
    )
    assert str(exercises.compare("01.flat", 8.1)).startswith("Close. You said 8 times")
    exercises.predict("01.done", "no", confidence="sure")
    assert kept(folder)["01.done"].guess is not None
    assert str(exercises.compare("01.done", "no")) == "Right. You said no, and so it is."


def test_a_confidence_alone_keeps_the_guess(folder: Path) -> None:
    """The guess that was given before gets the confidence."""
    exercises.predict("01.naive", 300)
    asked = exercises.predict("01.naive", confidence="sure")
    saved = kept(folder)["01.naive"].guess
    assert saved is not None
    assert (asked.guess, saved.confidence) == (pytest.approx(300e-6), "sure")


@pytest.mark.parametrize(("name", "near"), [("01.naiv", "01.naive"), ("91.naive", "01.naive")])
@pytest.mark.parametrize("call", [exercises.predict, lambda name: exercises.compare(name, 1)])
def test_an_unknown_name_gets_the_nearest(
    call: Callable[[str], object], name: str, near: str
) -> None:
    """A name with a slip is no question of one's own."""
    with pytest.raises(UnknownNameError, match=f"did you mean '{near}'"):
        call(name)


@pytest.mark.slow
@needs_ipywidgets_8
def test_a_front_end_gets_the_form_and_words_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words follow what is typed; without a front end IPython shows text and HTML."""
    asked = exercises.predict(QUESTION, ..., unit="µs")
    with pytest.raises(NotImplementedError):
        asked._ipython_display_()
    shown = shown_in(monkeypatch, watched=True)
    form = GuessForm(asked)
    form.display()
    (widget,), words = shown.outputs
    assert set(widget) == {"application/vnd.jupyter.widget-view+json"}
    form._widget._handle_custom_msg({"text": "5 ms"}, [])
    form._widget._handle_custom_msg({"confidence": "sure"}, [])
    # The same is sent again, and the page gets its answer.
    before = form._widget.view
    form._widget._handle_custom_msg({"confidence": "sure"}, [])
    assert form._widget.view != before
    said = "You say 5,000 µs (sure). Now see what comes out."
    assert form._widget.view["said"] == said
    assert said in words[-1]["text/plain"]
    form._widget.close()
