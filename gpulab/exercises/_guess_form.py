"""The form of a prediction in a notebook: where it is shown, and what it says."""

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpulab.core.foreign_text import visible
from gpulab.figures import widgets

if TYPE_CHECKING:
    from gpulab.exercises._predictions import Prediction


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

        self._widget = widgets.form_class("guess")(view=self._view())
        self._widget.on_msg(lambda _, content, __: self._receive(content))
        display(widgets.widget_data(self._widget), raw=True)  # type: ignore[no-untyped-call]  # IPython's gap
        self._still = display(self._words(), raw=True, display_id=True)  # type: ignore[no-untyped-call]  # as above

    def _receive(self, content: Mapping[str, Any]) -> None:
        """Take what the page sends, at once: the next cell may compare it."""
        self._prediction.give(content.get("text", ...), content.get("confidence"))
        widgets.answer_form(self._widget, self._view())
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
