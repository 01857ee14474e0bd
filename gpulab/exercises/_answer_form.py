"""The form of an exercise in a notebook: its fields, the verdict below them, and the hints."""

from collections.abc import Callable, Mapping
from typing import Any

from gpulab.core.errors import GpulabError
from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean
from gpulab.exercises._entries import FilledForm, now
from gpulab.exercises._exercise import Hint, Question, Verdict
from gpulab.exercises._fields import Fields
from gpulab.exercises._history import filled_form_of
from gpulab.exercises._journal import journal
from gpulab.exercises._page_form import PageForm
from gpulab.figures import widgets


class AnswerForm(PageForm):
    """An exercise's form on the page.

    ``check`` judges an answer, and counts it; ``hint`` returns the next hint.
    """

    kind = "answer"

    def __init__(
        self,
        question: Question,
        fields: Fields,
        check: Callable[[object], Verdict],
        hint: Callable[[], Hint],
    ) -> None:
        super().__init__(question.exercise_id)
        self._question, self._fields = question, fields
        self._check, self._hint = check, hint
        self._verdict: Verdict | None = None
        self._last_hint: Hint | None = None
        # On the cells' thread: a judge may use the virtual GPU.
        self._answer_in_turn = widgets.JupyterLoop().in_turn(self._answer)

    def display(self) -> None:
        """Show the question, the form, and below it an output with the words."""
        from IPython.display import display

        asked = {
            "text/html": self._question._repr_html_(self.still_class),
            "text/plain": str(self._question),
        }
        display(asked, raw=True)  # type: ignore[no-untyped-call]  # IPython's gap
        super().display()

    def receive(self, content: Mapping[str, Any]) -> None:
        """Judge what is filled in, or show the next hint."""
        self._answer_in_turn(content)

    def _answer(self, content: Mapping[str, Any]) -> None:
        if content.get("hint") is True:
            self._last_hint = self._hint()
        elif (filled := self._fields.read(content.get("check"))) is not None:
            fields = tuple((key, *texts) for key, texts in filled.items())
            if filled != self._given():
                journal().add(FilledForm(self.name, now(), fields))
            self._verdict = self._judged(filled)
            for form in self.named(self.name):
                form._verdict = self._verdict  # noqa: SLF001  # of the same class
                form.show()
        # Also if what came cannot be read: the page waits for an answer.
        self.show()

    def _judged(self, filled: Mapping[str, list[str]]) -> Verdict:
        # What is not complete is no try.
        if problem := self._fields.problem(filled):
            return Verdict(ok=None, message=problem)
        try:
            return self._check(self._fields.answer(filled))
        except GpulabError as error:  # the readings do not fit
            return Verdict(ok=None, message=f"{error}.")

    def view(self) -> dict[str, Any]:
        """Return the fields with what was given last, the verdict and the hint."""
        asked, fields = self._question, self._fields
        filled = self._given()
        return {
            "label": f"Exercise {self.name}",
            "kind": fields.kind if fields.kind in {"one", "some"} else "table",
            "rows": [[key, visible(asked.choices.get(key, ""))] for key in fields.keys],
            "parts": fields.parts,
            "headings": fields.headings,
            "unit": fields.unit,
            "given": {key: list(map(visible, texts)) for key, texts in filled.items()},
            "verdict": "" if self._verdict is None else self._verdict._repr_html_(),
            "hint": "" if self._last_hint is None else self._last_hint._repr_html_(),
            "still": self.still_class,
        }

    def _given(self) -> dict[str, list[str]]:
        """Return what was checked last, if the exercise still has these fields."""
        filled = filled_form_of(journal().entries, self.name)
        return filled if self._fields.read(filled) is not None else {}

    def words(self) -> dict[str, str]:
        """Return the answer that was given, the hint and the verdict as text."""
        shown = [each for each in (self._last_hint, self._verdict) if each is not None]
        filled = self._given()
        answer = "; ".join(f"{key}: {', '.join(texts)}" for key, texts in filled.items())
        if self._fields.kind in {"one", "some"}:
            answer = ", ".join(filled)
        answer_text = f"Your answer is {answer}. Run this cell to change it." if filled else ""
        html = f"<p>{clean(answer_text)}</p>" + "".join(each._repr_html_() for each in shown)
        return {
            "text/html": f'<div class="{self.still_class}">{html}</div>',
            "text/plain": visible("\n".join([answer_text, *map(str, shown)]).strip()),
        }
