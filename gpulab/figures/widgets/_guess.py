"""The widget of a guess: a small form, for the mouse and for keys."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulab.figures.widgets._script import script

if TYPE_CHECKING:
    from anywidget import AnyWidget

_SCRIPT = Path(__file__).parent / "guess" / "widget.js"


@cache  # not at import: half of the package would wait for the widgets to load
def guess_class() -> "type[AnyWidget]":
    """Return the class of the widget.

    Its trait ``view`` has ``question``, ``unit``, ``choices``, ``guess``, ``typed`` (the guess as
    text), ``confidence``, ``said`` (a sentence), and ``still``: it hides elements of this class,
    which say the same on a page without a kernel. The browser sends ``{"text": ...}`` and
    ``{"confidence": ...}``.

    Examples
    --------
    >>> guess_class()().view
    {}
    """
    import anywidget
    import traitlets

    class GuessView(anywidget.AnyWidget):
        """A form in the browser."""

        _esm = script(_SCRIPT)
        view: Any = traitlets.Dict().tag(sync=True)

    return GuessView
