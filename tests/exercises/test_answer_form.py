"""The form of an exercise: its fields, what counts as a try, and when it is shown."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpulab import exercises
from gpulab.exercises import _api
from gpulab.exercises._answer_form import AnswerForm
from gpulab.exercises._api import exercise as keyed
from gpulab.exercises._entries import Answer
from gpulab.exercises._fields import NUMBER, Fields
from gpulab.exercises._journal import LearnerJournal
from tests.exercises.test_journal import folder
from tests.support.journals import forget_all
from tests.support.notebook_display import Shown, needs_ipywidgets_8, shown_in

__all__ = ["folder"]  # a fixture: an empty folder with a journal of its own


@pytest.fixture(autouse=True)
def _nothing_given() -> Iterator[None]:
    """Begin each test with empty forms."""
    yield
    forget_all()


def given_right(exercise_id: str) -> dict[str, list[str]]:
    """Return what a page sends for the right answer of an exercise."""
    judge: Any = keyed(exercise_id).judge
    if not hasattr(judge, "right"):
        return {}
    if isinstance(judge.right, str):
        return {judge.right: [judge.right]}
    if isinstance(judge.right, frozenset):
        return {key: [key] for key in judge.right}
    rows = judge.right.items()
    parts = {key: value if isinstance(value, tuple) else (value,) for key, value in rows}
    return {key: [str(part) for part in value] for key, value in parts.items()}


WITH_FORM = [each for each in _api.exercise_ids() if keyed(each).judge.fields is not None]


@pytest.mark.parametrize("exercise_id", WITH_FORM)
def test_the_right_answer_can_be_given_in_each_form(exercise_id: str) -> None:
    """Fields have all that the right answer needs, and nothing is sent that is not complete."""
    judge = keyed(exercise_id).judge
    fields = judge.fields
    assert fields is not None
    assert fields.problem({})
    given = given_right(exercise_id)
    if given:  # the others have a number that is computed
        assert set(given) <= set(fields.keys)
        for texts in given.values():
            pairs = zip(texts, fields.parts, strict=fields.kind == "table")
            assert all(not words or text in words for text, words in pairs)
        assert fields.problem(given) == ""
        assert judge(fields.answer(given), None).ok
    # Boxes side by side need a heading each; a single box needs none.
    n_parts = len(fields.parts) if fields.kind == "table" else 1
    assert len(fields.headings) == (n_parts if n_parts > 1 else 0)


def test_what_is_typed_is_a_number_or_a_time() -> None:
    """A form takes the same texts as the form of a guess, and names one that is no number."""
    one = Fields("number", ("answer",), (NUMBER,), "s")
    assert one.answer({"answer": ["12.5 µs"]}) == "12.5 µs"
    assert one.answer({"answer": ["1,000"]}) == 1000
    assert one.problem({"answer": ["many"]}) == "'many' isn't a number."
    two = Fields("table", ("a", "b"), (NUMBER, ("x", "y")))
    assert two.problem({"a": ["3", ""], "b": ["", "x"]}) == "There is no answer yet for a, b."
    assert two.answer({"a": ["3", "x"], "b": ["1/4", "y"]}) == {"a": (3, "x"), "b": (0.25, "y")}


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """Return what a front end shows."""
    return shown_in(monkeypatch, watched=True)


def show(exercise_id: str, **options: object) -> AnswerForm:
    """Show the form of an exercise, and return it."""
    made: list[AnswerForm] = []
    asked = exercises.ask(exercise_id, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AnswerForm, "display", lambda form: made.append(form))  # noqa: PLW0108  # a method, so not made.append
        asked._ipython_display_()
    made[0].display()
    return made[0]


def send(form: AnswerForm, **message: object) -> dict[str, Any]:
    """Send what the page would send, and return what the form shows then."""
    form._widget._handle_custom_msg(message, [])
    view: dict[str, Any] = form._widget.view
    return view


@pytest.mark.slow
@needs_ipywidgets_8
def test_an_answer_counts_as_it_does_in_code(page: Shown, folder: Path) -> None:
    """A try is saved with its mistake; an incomplete answer is none, and the words say all."""
    form = show("02.who-blocks")
    question, (widget,), words = page.outputs
    assert set(widget) == {"application/vnd.jupyter.widget-view+json"}
    still = form._widget.view["still"]
    # Without a kernel, the page shows how to answer, and the last verdict.
    assert f'<div class="{still}"><p' in question[0]["text/html"]
    right = given_right("02.who-blocks")
    first = next(iter(right))
    assert "There is no answer yet for" in send(form, check={first: ["host"]})["verdict"]
    assert list(LearnerJournal(folder).entries) == []
    send(form, check=right | {first: ["gpu"]})
    assert "✓" in send(form, check=right)["verdict"]
    tries = [each for each in LearnerJournal(folder).entries if isinstance(each, Answer)]
    assert [(each.ok, each.diagnosis_code) for each in tries] == [
        (False, "synchronize-blocks-host"),
        (True, ""),
    ]
    assert "Hint 1 of 2" in send(form, hint=True)["hint"]
    assert "Right." in words[-1]["text/plain"]
    assert "Hint 1 of 2" in words[-1]["text/plain"]
    # The cell runs again.
    assert show("02.who-blocks")._widget.view["given"] == right


@pytest.mark.slow
@needs_ipywidgets_8
def test_two_forms_of_one_exercise_show_the_later_answer(page: Shown) -> None:
    """A cell has run twice: both forms show what was answered last, and its verdict."""
    del page
    first, second = show("01.what-was-timed"), show("01.what-was-timed")
    for form, letter in ((first, "a"), (second, "b")):
        view = send(form, check={letter: [letter]})
        assert view["given"] == {letter: [letter]}
        views = [{**each._widget.view, "still": "", "n_answers": 0} for each in (first, second)]
        assert views[0] == views[1]


@pytest.mark.slow
@needs_ipywidgets_8
def test_an_answer_is_judged_against_the_learners_readings(page: Shown) -> None:
    """The readings are those that were passed to ask; if they do not fit, a sentence says so."""
    del page
    calls_s = [1e-6] * 700 + [5e-3] + [1e-6] * 100
    form = show("01.queue-length", readings=calls_s)
    assert "✓" in send(form, check={"answer": ["700"]})["verdict"]
    form = show("01.queue-length", readings=["a word"])
    before = send(form, check={"answer": ["700"]})
    assert "a list of numbers" in before["verdict"]
    # The same sentence is sent again, so that the page does not wait for an answer.
    assert send(form, check={"answer": ["700"]}) != before


def test_without_a_front_end_the_words_name_the_call() -> None:
    """IPython shows text and HTML then; a function has no form at all."""
    asked = exercises.ask("01.what-was-timed")
    with pytest.raises(NotImplementedError):
        asked._ipython_display_()
    assert 'exercises.check("01.what-was-timed", ...)' in str(asked)
    assert "exercises.check(" in asked._repr_html_()
    assert exercises.ask("02.benchmark")._show_form is None
