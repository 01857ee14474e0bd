"""The form of a prediction in a notebook: where it is shown, and what it says."""

import secrets
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from gpulab.core.foreign_text import visible
from gpulab.figures import widgets

if TYPE_CHECKING:
    from gpulab.exercises._predictions import Prediction

# The forms on the page by the name of their guess: a cell that runs twice has shown two.
_SHOWN: defaultdict[str, WeakSet["GuessForm"]] = defaultdict(WeakSet)


class GuessForm:
    """A prediction's form on the page, and its words for a page without a kernel."""

    def __init__(self, prediction: "Prediction") -> None:
        self._prediction = prediction
        # By this class the form finds the words that it replaces.
        self._still_class = f"gpulab-still-{secrets.token_hex(4)}"
        self._still: Any = None
        self._update_still = widgets.JupyterLoop().in_turn(self._show_still)

    def display(self) -> None:
        """Show the form, and below it an output with the words."""
        from IPython.display import display

        self._widget = widgets.view_class("guess")(view=self._view())
        widgets.listen(self._widget, self._receive)
        if self._prediction.name:
            _SHOWN[self._prediction.name].add(self)
        display(widgets.widget_data(self._widget), raw=True)  # type: ignore[no-untyped-call]  # IPython's gap
        self._still = display(self._words(), raw=True, display_id=True)  # type: ignore[no-untyped-call]  # as above

    def _receive(self, content: Mapping[str, Any]) -> None:
        """Take what the page sends, at once: the next cell may compare it."""
        said = {name: text for name, text in content.items() if isinstance(text, str)}
        self._prediction.give(said.get("text", ...), said.get("confidence"))
        self._show()

    def follow(self, asked: "Prediction") -> None:
        """Show a guess that was given elsewhere to the same question."""
        mine = self._prediction
        if mine is asked or (mine.unit, mine.choices) != (asked.unit, asked.choices):
            return
        mine.guess, mine.confidence = asked.guess, asked.confidence
        mine.problem, mine.note = asked.problem, asked.note
        self._show()

    def _show(self) -> None:
        widgets.show_view(self._widget, self._view())
        # On the cells' thread: it changes an output of a cell.
        self._update_still()

    def _view(self) -> dict[str, Any]:
        asked = self._prediction
        return {
            "question": visible(asked.question),
            "unit": asked.unit,
            "choices": list(asked.choices),
            "guess": asked.guess if isinstance(asked.guess, str) else None,
            "typed": asked.typed,
            "confidence": asked.confidence,
            "said": visible(asked.said),
            "still": self._still_class,
        }

    def _words(self) -> dict[str, str]:
        page = f'<div class="{self._still_class}">{self._prediction._repr_html_()}</div>'
        return {"text/html": page, "text/plain": str(self._prediction)}

    def _show_still(self) -> None:
        if self._still is not None:
            self._still.update(self._words(), raw=True)


def follow(asked: "Prediction") -> None:
    """Let every form of a guess show what was said last: in another form, or in code."""
    for form in tuple(_SHOWN.get(asked.name, ())):
        form.follow(asked)
