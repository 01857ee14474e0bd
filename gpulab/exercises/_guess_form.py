"""The form of a prediction in a notebook: what was typed in it, and where it is shown."""

import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import visible
from gpulab.core.units import parse_time
from gpulab.figures import widgets

if TYPE_CHECKING:
    from gpulab.exercises._predictions import Prediction

# A comma between groups of three digits; any other comma may mean something else.
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_NUMBER = re.compile(r"(?P<over>[\d.]+(?:[eE][+-]?\d+)?)(?:\s*/\s*(?P<under>[\d.]+))?")
_FACTOR = {"x", "\u00d7"}  # the letter, and the sign


def read_typed(text: str, unit: str) -> float | str | None:
    """Return what a learner typed as a guess, or None if it is no number.

    It takes ``"5 ms"``, ``"1/3"``, ``"1,000"`` and ``"8x"``. A duration with its unit stays a
    text, because that unit counts and not the one of the question.

    Examples
    --------
    >>> read_typed("1,000", "µs"), read_typed("1/4", "times"), read_typed("8x", "times")
    (1000.0, 0.25, 8.0)
    >>> read_typed("5 ms", "µs"), read_typed("many", "times")
    ('5 ms', None)
    """
    typed = text.strip()
    groups = _THOUSANDS.match(typed)
    if groups:
        typed = groups[0].replace(",", "") + typed[groups.end() :]
    if _is_time(typed):
        return typed
    number = _NUMBER.match(typed)
    ends = {"", unit} | (_FACTOR if unit == "times" else set())
    if number is None or typed[number.end() :].strip() not in ends:
        return None
    try:
        return float(number["over"]) / float(number["under"] or 1)
    except (ValueError, ZeroDivisionError):
        return None


def _is_time(text: str) -> bool:
    try:
        parse_time(text)
    except InvalidOptionError:
        return False
    return True


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

        self._widget = widgets.guess_class()(view=self._view())
        self._widget.on_msg(lambda _, content, __: self._receive(content))
        display(widgets.widget_data(self._widget), raw=True)  # type: ignore[no-untyped-call]  # IPython's gap
        self._still = display(self._words(), raw=True, display_id=True)  # type: ignore[no-untyped-call]  # as above

    def _receive(self, content: Mapping[str, Any]) -> None:
        """Take what the page sends, at once: the next cell may compare it."""
        self._prediction.give(content.get("text", ...), content.get("confidence"))
        self._widget.view = self._view()
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
