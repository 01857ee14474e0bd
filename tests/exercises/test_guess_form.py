"""The form of a prediction: what it takes, what it keeps, and when it is shown."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpulab import exercises
from gpulab.core.errors import UnknownNameError
from gpulab.exercises._guess_form import GuessForm
from gpulab.exercises._typed import read_typed
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
        ("2,5", "times", 2.5),
        ("0,125 s", "ms", "0.125 s"),
        ("1/3", "times", 1 / 3),
        ("8x", "times", 8.0),
        ("8 \u00d7", "times", 8.0),
        ("50 %", "%", 50.0),
        ("3 launches", "launches", 3.0),
        ("1e300", "µs", 1e300),
        ("-1", "µs", -1.0),
        ("5 ms", "µs", "5 ms"),
        ("1,000 ns", "µs", "1000 ns"),
        *(
            (typed, "µs", None)
            for typed in ("", "many", "1/0", "1,2,3", "1.2.3", "8x", "5 apples")
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
        monkeypatch.setattr("gpulab.core.shell.is_watched", lambda watched=watched: watched)
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
        "A stopwatch around x @ x, with n = 8192. What does it read? Give your guess in its form, "
        'or in place of the three dots in exercises.predict("01.naive", ...): a number in ms.'
    )
    assert str(exercises.compare("01.naive", 2e-3)).startswith("No guess. It was 2.00 ms. Give")
    assert list(folder.iterdir()) == []
    exercises.predict("01.grows", "4x")
    exercises.predict("01.grows", "8x", confidence="likely")
    assert str(exercises.predict("01.grows")).endswith(
        "You say 8 times (likely). Now see what comes out."
    )
    assert str(exercises.compare("01.grows", 8.1)).startswith("Close. You said 8 times")
    # The outcome is known, and the remark on a change stays when the cell runs again.
    changed = exercises.predict("01.grows", "9x")
    assert str(changed).endswith("so this change is kept, and your first guess counts.")
    assert str(exercises.predict("01.grows")) == str(changed)
    assert str(exercises.compare("01.grows", 8.1)).startswith("Close. You first said 8 times")
    exercises.predict("00.agree", "no", confidence="sure")
    assert kept(folder)["00.agree"].guess is not None
    assert str(exercises.compare("00.agree", "no")) == "Right. You said no, and so it is."
    exercises.predict("00.agree", "yes")
    assert str(exercises.compare("00.agree", "no")) == "Right. You first said no, and so it is."
    exercises.predict("00.agree", "no")  # the first one again
    assert str(exercises.compare("00.agree", "no")) == "Right. You said no, and so it is."


def test_a_confidence_alone_keeps_the_guess(folder: Path) -> None:
    """The guess that was given before gets the confidence."""
    exercises.predict("01.item", 300)
    asked = exercises.predict("01.item", confidence="sure")
    saved = kept(folder)["01.item"].guess
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


@pytest.mark.slow
@needs_ipywidgets_8
def test_two_forms_of_one_guess_show_the_later_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell has run twice: what is said in one form, or in code, counts and is in both."""
    shown_in(monkeypatch, watched=True)
    first, second = (GuessForm(exercises.predict("01.item")) for _ in range(2))
    for form in (first, second):
        form.display()
    other = GuessForm(exercises.predict("01.naive"))
    other.display()
    for form, text in ((first, "300"), (second, "2 ms"), (first, "5 ms")):
        form._widget._handle_custom_msg({"text": text}, [])
        form._widget._handle_custom_msg({"confidence": "sure"}, [])
        views = [{**each._widget.view, "still": "", "n_answers": 0} for each in (first, second)]
        assert views[0] == views[1]
    assert first._widget.view["typed"] == "5000"
    exercises.predict("01.item", "7 ms")
    assert "7,000 µs" in second._widget.view["said"]
    assert other._widget.view["typed"] == ""
    saved = kept(folder)["01.item"].guess
    assert saved is not None
    assert saved.number == 7e-3


def test_a_confidence_that_is_not_known_keeps_the_one_before(folder: Path) -> None:
    """The remark names what is known, and nothing is lost."""
    exercises.predict("01.item", 300, confidence="sure")
    asked = exercises.predict("01.item", confidence="surely")
    assert "confidence='surely' is not known" in str(asked)
    saved = kept(folder)["01.item"].guess
    assert saved is not None
    assert (asked.confidence, saved.confidence) == ("sure", "sure")
