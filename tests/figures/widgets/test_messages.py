"""Whatever a page sends, a widget of ours raises nothing, and keeps what it has."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpulab import exercises, explorers
from gpulab.exercises._answer_form import AnswerForm
from gpulab.exercises._drawing_form import DrawingForm
from gpulab.exercises._guess_form import GuessForm
from gpulab.exercises._history import filled_form_of
from gpulab.exercises._journal import journal
from gpulab.views.live import _stop
from tests.exercises.test_answer_form import given_right
from tests.exercises.test_journal import folder
from tests.support.notebook_display import needs_ipywidgets_8, shown_in

__all__ = ["folder"]  # a fixture: an empty folder with a journal of its own

pytestmark = [pytest.mark.slow, needs_ipywidgets_8]


def nest(depth: int) -> list[Any]:
    """Return lists in lists."""
    lists: list[Any] = []
    for _ in range(depth):
        lists = [lists]
    return lists


NUMBERS = [True, 0, -1, 2**63, 10**400, 1e308, 0.5, math.nan, math.inf, -math.inf]
TEXTS = ["", "nosuch", "\ud800", "9" * 6000, "1/0", b"bytes"]
NONSENSE = [
    None,
    *NUMBERS,
    *TEXTS,
    [],
    [None],
    nest(300),
    {},
    {"a": {"b": [None]}},
    {"": math.nan},
]


@dataclass
class Page:
    """A widget, what its page sends, and what must not be lost."""

    widget: Any
    messages: list[dict[str, Any]]
    kept: Callable[[], object] = lambda: None
    owner: object = field(default=None, repr=False)

    def send(self, content: object) -> None:
        """Deliver a message; ipywidgets would write an error into the log and go on."""
        for hear in list(self.widget._msg_callbacks.callbacks):
            hear(self.widget, content, [])


def guess() -> Page:
    """Return the form of a guess with a number."""
    asked = exercises.predict("How long?", 300, unit="µs", name="01.form", confidence="sure")
    form = GuessForm(asked)
    form.display()
    messages = [{"text": "many"}, {"confidence": "never"}]
    return Page(form._widget, messages, lambda: _saved("01.form"), form)


def choice() -> Page:
    """Return the form of a guess with choices."""
    asked = exercises.predict("Which?", "b", choices=("a", "b"), name="01.which")
    form = GuessForm(asked)
    form.display()
    messages = [{"text": "c"}, {"confidence": "never"}]
    return Page(form._widget, messages, lambda: _saved("01.which"), form)


def _saved(name: str) -> object:
    """Return the guess that a cell finds when it runs again."""
    options: dict[str, Any] = {"choices": ("a", "b")} if name == "01.which" else {}
    again = exercises.predict("How long?", ..., name=name, **options)
    return again.guess, again.confidence


def answer(exercise_id: str, given: dict[str, list[str]], **options: object) -> Page:
    """Return the form of an exercise in which something was given."""
    made: list[AnswerForm] = []
    asked = exercises.ask(exercise_id, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AnswerForm, "display", lambda form: made.append(form))  # noqa: PLW0108  # a method, so not made.append
        asked._ipython_display_()
    (form,) = made
    form.display()
    page = Page(form._widget, [{"check": {}}, {"check": given}, {"hint": True}], owner=form)
    page.send({"check": given})
    # A page may send less than there is; what it sends of a number is any text.
    page.kept = lambda: set(filled_form_of(journal().entries, exercise_id)) <= set(given)
    return page


def drawing() -> Page:
    """Return the axes of a drawn guess with a curve."""
    from gpulab.exercises import lesson_04

    made = exercises.draw("Ten calls?", [1e-3] * 10, name="04.first", axes=lesson_04.TEN_CALLS)
    curve = {"drawn": [["step", [1e-3] * 10]]}
    form = DrawingForm(made)
    form.display()
    return Page(form._widget, [curve], lambda: list(made.curves), form)


def explorer(make: Callable[[], Any]) -> Page:
    """Return an explorer, whose state must stay one that it can show."""
    made = make()
    state = made._state_numbers()
    messages = [
        {"do": "chosen", "state": state},
        {"do": "numbers", "state": state},
        {"do": "numbers"},
        {"do": "hello"},
        {"do": "stop"},
    ]
    return Page(made.widget, messages, lambda: None, made)


def machine() -> Page:
    """Return a machine, whose program must stay one that it can run."""
    made = explorers.machine_explorer("stopwatch")
    place = {"place": 1, "stream": 0, "gesture": None, "number": 1}
    messages = [
        {"do": "set", **place, "field": "duration_us", "value": 9.0},
        {"do": "tune", "field": "repetitions", "value": 3, "number": 2},
        {"do": "move", **place, "to": 0},
        {"do": "begin", "name": "three times"},
        {"do": "undo"},
        # Last, because each one that is accepted makes the program longer, and the next run.
        {"do": "add", "kind": "kernel", **place, "is_pinned": True},
    ]
    return Page(made.widget, messages, lambda: None, made)


def live() -> Page:
    """Return the Stop button of a live figure."""
    stop = _stop.Stop()
    button = _stop._button(lambda _: stop.ask("stop"))
    # A text or a list in place of a message is for ipywidgets, whose button this is.
    return Page(button, [{"event": "click"}])


PAGES: dict[str, Callable[[], Page]] = {
    "guess": guess,
    "choice": choice,
    "one": lambda: answer("01.what-was-timed", {"a": ["a"]}),
    "some": lambda: answer("01.hidden-sync", {"a": ["a"], "c": ["c"]}),
    "table": lambda: answer("02.who-blocks", given_right("02.who-blocks")),
    "number": lambda: answer("01.queue-length", {"answer": ["700"]}, readings=[1e-6] * 9),
    "drawing": drawing,
    "crossover": lambda: explorer(explorers.crossover_explorer),
    "roofline": lambda: explorer(explorers.roofline_explorer),
    "machine": machine,
    "live": live,
}


def spoiled(value: Any) -> Iterator[Any]:  # noqa: ANN401  # any part of a message
    """Yield a message with nonsense, or nothing, in place of each of its parts."""
    yield from NONSENSE
    if isinstance(value, dict):
        for key in value:
            yield {other: each for other, each in value.items() if other != key}
            yield from ({**value, key: bad} for bad in spoiled(value[key]))
        yield {**value, "nosuch": None}
    elif isinstance(value, list):
        for place in range(min(2, len(value))):
            for bad in spoiled(value[place]):
                yield [*value[:place], bad, *value[place + 1 :]]


@pytest.fixture
def _page(monkeypatch: pytest.MonkeyPatch, folder: object) -> None:
    del folder
    shown_in(monkeypatch, watched=True)
    monkeypatch.setattr("IPython.get_ipython", lambda: None)  # no cell is asked for its number


@pytest.mark.usefixtures("_page")
@pytest.mark.parametrize("name", PAGES)
def test_nonsense_raises_nothing_and_loses_nothing(name: str) -> None:
    """The widget answers with words that JSON can hold, and keeps guess, answer or state."""
    page = PAGES[name]()
    before = page.kept()
    for message in page.messages:
        for bad in spoiled(message):
            if name == "live" and not isinstance(bad, dict):
                continue
            page.send(bad)
            assert page.kept() == before, bad
    assert str(page.owner)  # an explorer and a machine can show the state that they are in
    state = page.widget.get_state()
    own = {trait: value for trait, value in state.items() if trait in {"view", "curves", "mark"}}
    json.dumps(own, allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.usefixtures("_page")
@pytest.mark.parametrize("name", [each for each in PAGES if each != "live"])
def test_a_page_cannot_replace_what_the_kernel_shows(name: str) -> None:
    """What a page says of a trait is ignored: it asks by messages, and the kernel answers."""
    page = PAGES[name]()
    before = page.widget.get_state()
    for trait in ("view", "curves", "axes", "mark", "still", "drawing", "question"):
        for bad in NONSENSE:
            page.widget.set_state({trait: bad})
    assert page.widget.get_state() == before
    for message in page.messages:
        page.send(message)
