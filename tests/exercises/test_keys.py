"""No key appears by accident: not in print, not by completion, not in an object's attributes."""

from collections.abc import Iterator
from typing import Any

import pytest

from gpulab import exercises
from gpulab.exercises._api import exercise, exercise_ids
from gpulab.exercises._exercise import Question
from gpulab.exercises.answers._forms import agrees

IDS = exercise_ids()
OFFERED = {"exercise_id", "question", "how", "choices", "readings"}


def keys_of(exercise_id: str) -> Iterator[str]:
    """Yield the explanation of the right answer and all hints."""
    judge: Any = exercise(exercise_id).judge
    if hasattr(judge, "why"):
        yield judge.why
    yield from exercise(exercise_id).hints


@pytest.mark.parametrize("exercise_id", IDS)
def test_a_question_shows_and_contains_no_key(exercise_id: str) -> None:
    """A question's public attributes are texts, and no way of printing has key or hint."""
    question = exercises.ask(exercise_id)
    assert type(question) is Question
    names = {name for name in dir(question) if not name.startswith("_")}
    assert names == OFFERED
    assert not any(callable(getattr(question, name)) for name in names)
    printed = [str(question), repr(question), question._repr_html_(), repr(question.choices)]
    for key in keys_of(exercise_id):
        assert not any(key in page for page in printed)
    assert "judge" not in repr(exercise(exercise_id))


@pytest.mark.slow
def test_completion_offers_no_key() -> None:
    """IPython completes only public names, for a question and for ``exercises``."""
    from IPython.core.completer import provisionalcompleter
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    question = exercises.ask("00.read-the-line")
    shell.user_ns.update(question=question, exercises=exercises)

    def offered(text: str) -> set[str]:
        with provisionalcompleter():
            found = shell.Completer.completions(text, len(text))
            return {each.text.removeprefix(".").partition("(")[0] for each in found}

    assert offered("question.") == OFFERED
    door = offered("exercises.")
    assert {"ask", "check", "hint"} <= door
    assert not door & {"exercise", "EXERCISES", "answers", "lesson_00"}


class Unreadable:
    """An answer that raises when it is shown or iterated."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("two lines,\nof text")


@pytest.mark.parametrize(
    ("given", "value", "right"),
    [
        (41e-6, 41.2e-6, True),
        (41.2e-6, 41.2e-6, True),
        (42e-6, 41.2e-6, False),
        (41.3e-6, 41.2e-6, False),
        (40e-6, 41.2e-6, False),
        (0.33, 1 / 3, True),
        (0.3, 1 / 3, False),
        (4100, 4120, True),
        (-41, -41.2, True),
        (float("nan"), 41.2, False),
        (0.0, 41.2, False),
    ],
)
def test_two_digits_are_right_if_the_value_rounds_to_them(
    given: float,
    value: float,
    right: bool,  # noqa: FBT001  # parametrised
) -> None:
    """Two digits are enough if they round correctly; a third digit must be right too."""
    assert agrees(given, value) is right


def test_an_answer_that_cannot_be_read_says_so() -> None:
    """The message for an answer that raises names the error and says how to answer."""
    verdict = exercises.check("01.hidden-sync", Unreadable())
    assert verdict.message.startswith("This answer cannot be read (RuntimeError: two lines,")
    assert verdict.message.endswith(exercises.ask("01.hidden-sync").how)
