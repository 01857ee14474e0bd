"""The form of a prediction in a notebook."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpulab.core.foreign_text import visible
from gpulab.exercises._page_form import PageForm

if TYPE_CHECKING:
    from gpulab.exercises._predictions import Prediction


class GuessForm(PageForm):
    """A prediction's form on the page."""

    kind = "guess"

    def __init__(self, prediction: "Prediction") -> None:
        super().__init__(prediction.name)
        self._prediction = prediction

    def receive(self, content: Mapping[str, Any]) -> None:
        """Take what the page sends, at once: the next cell may compare it."""
        texts = {name: text for name, text in content.items() if isinstance(text, str)}
        self._prediction.give(texts.get("text", ...), texts.get("confidence"))
        self.show()

    def follow(self, asked: "Prediction") -> None:
        """Show a guess that was given elsewhere to the same question."""
        mine = self._prediction
        if mine is asked or (mine.unit, mine.choices) != (asked.unit, asked.choices):
            return
        mine.guess, mine.confidence = asked.guess, asked.confidence
        mine.problem, mine.note = asked.problem, asked.note
        self.show()

    def view(self) -> dict[str, Any]:
        """Return the question, and what was said."""
        asked = self._prediction
        return {
            "question": visible(asked.question),
            "unit": asked.unit,
            "choices": list(asked.choices),
            "guess": asked.guess if isinstance(asked.guess, str) else None,
            "typed": asked.typed,
            "confidence": asked.confidence,
            "said": visible(asked.said),
            "still": self.still_class,
        }

    def words(self) -> dict[str, str]:
        """Return the prediction as text."""
        page = f'<div class="{self.still_class}">{self._prediction._repr_html_()}</div>'
        return {"text/html": page, "text/plain": str(self._prediction)}


def follow(asked: "Prediction") -> None:
    """Let every form of a guess show what was said last: in another form, or in code."""
    for form in GuessForm.named(asked.name):
        form.follow(asked)
