"""The form of an exercise in a notebook: its fields, the verdict below them, and the hints."""

import secrets
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakSet

from gpulab.core.errors import GpulabError
from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean
from gpulab.exercises._exercise import Hint, Question, Verdict
from gpulab.exercises._fields import Fields
from gpulab.exercises.journal import FilledForm, filled_form_of, journal, now
from gpulab.figures import widgets

# The forms on the page by exercise: a cell that runs twice has shown two.
_SHOWN: defaultdict[str, WeakSet["AnswerForm"]] = defaultdict(WeakSet)


class AnswerForm:
    """An exercise's form on the page, and its words for a page without a kernel.

    ``check`` judges an answer, and counts it; ``hint`` returns the next hint.
    """

    def __init__(
        self,
        question: Question,
        fields: Fields,
        check: Callable[[object], Verdict],
        hint: Callable[[], Hint],
    ) -> None:
        self._question, self._fields = question, fields
        self._check, self._hint = check, hint
        # By this class the form finds the words that it replaces.
        self._still_class = f"gpulab-still-{secrets.token_hex(4)}"
        self._verdict: Verdict | None = None
        self._told: Hint | None = None
        # On the cells' thread: a judge may use the virtual GPU, and an output of a cell changes.
        self._receive = widgets.JupyterLoop().in_turn(self._answer)

    def display(self) -> None:
        """Show the question, the form, and below it an output with the words."""
        from IPython.display import display

        self._widget = widgets.view_class("answer")(view=self._view())
        widgets.listen(self._widget, self._receive)
        _SHOWN[self._question.exercise_id].add(self)
        asked = {
            "text/html": self._question._repr_html_(self._still_class),
            "text/plain": str(self._question),
        }
        display(asked, raw=True)  # type: ignore[no-untyped-call]  # IPython's gap
        display(widgets.widget_data(self._widget), raw=True)  # type: ignore[no-untyped-call]  # as above
        self._still = display(self._words(), raw=True, display_id=True)  # type: ignore[no-untyped-call]  # as above

    def _answer(self, content: Mapping[str, Any]) -> None:
        if content.get("hint") is True:
            self._told = self._hint()
        elif (filled := self._fields.read(content.get("check"))) is not None:
            fields = tuple((key, *texts) for key, texts in filled.items())
            if filled != self._given():
                journal().add(FilledForm(self._question.exercise_id, now(), fields))
            self._verdict = self._judged(filled)
            for other in _SHOWN[self._question.exercise_id] - {self}:
                other.follow(self._verdict)
        self._show()

    def follow(self, verdict: Verdict) -> None:
        """Show the answer that was given in another form of this exercise, and its verdict."""
        self._verdict = verdict
        self._show()

    def _show(self) -> None:
        widgets.show_view(self._widget, self._view())
        self._still.update(self._words(), raw=True)

    def _judged(self, filled: Mapping[str, list[str]]) -> Verdict:
        # What is not complete is no try.
        if problem := self._fields.problem(filled):
            return Verdict(ok=None, message=problem)
        try:
            return self._check(self._fields.answer(filled))
        except GpulabError as error:  # the readings do not fit
            return Verdict(ok=None, message=f"{error}.")

    def _view(self) -> dict[str, Any]:
        asked, fields = self._question, self._fields
        filled = self._given()
        return {
            "label": f"Exercise {asked.exercise_id}",
            "kind": fields.kind if fields.kind in {"one", "some"} else "table",
            "rows": [[key, visible(asked.choices.get(key, ""))] for key in fields.keys],
            "parts": fields.parts,
            "headings": fields.headings,
            "unit": fields.unit,
            "given": {key: list(map(visible, texts)) for key, texts in filled.items()},
            "verdict": "" if self._verdict is None else self._verdict._repr_html_(),
            "hint": "" if self._told is None else self._told._repr_html_(),
            "still": self._still_class,
        }

    def _given(self) -> dict[str, list[str]]:
        """Return what was checked last, if the exercise still has these fields."""
        filled = filled_form_of(journal().entries, self._question.exercise_id)
        return filled if self._fields.read(filled) is not None else {}

    def _words(self) -> dict[str, str]:
        said = [each for each in (self._told, self._verdict) if each is not None]
        page = "".join(each._repr_html_() for each in said)
        filled = self._given()
        answer = "; ".join(f"{key}: {', '.join(texts)}" for key, texts in filled.items())
        if self._fields.kind in {"one", "some"}:
            answer = ", ".join(filled)
        told = f"Your answer is {answer}. Run this cell to change it." if filled else ""
        return {
            "text/html": f'<div class="{self._still_class}"><p>{clean(told)}</p>{page}</div>',
            "text/plain": visible("\n".join([told, *map(str, said)]).strip()),
        }
