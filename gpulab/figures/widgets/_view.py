"""Widgets whose page shows a view: what the kernel says is shown, and the page sends messages."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulab.figures.widgets._messages import ignore_state
from gpulab.figures.widgets._script import script

if TYPE_CHECKING:
    from anywidget import AnyWidget

_FOLDER = Path(__file__).parent
_SCRIPTS = {
    "machine": _FOLDER / "machine.js",
    "guess": _FOLDER / "forms" / "guess.js",
    "answer": _FOLDER / "forms" / "answer.js",
    "sketch": _FOLDER / "sketch" / "widget.js",
    "live": _FOLDER / "live" / "widget.js",
    "crossover": _FOLDER / "crossover" / "widget.js",
    "roofline": _FOLDER / "roofline" / "widget.js",
}


@cache  # not at import: half of the package would wait for the widgets to load
def view_class(kind: str) -> "type[AnyWidget]":
    """Return the class of a widget.

    Its trait ``view`` contains everything that is shown; the widget's script says what that is,
    and which messages the page sends. Forms and sketches hide elements of the class
    ``view["still"]``, which say the same on a page without a kernel. An explorer's view is the
    ``mark`` of its page, or empty if the widget shows the explorer itself.
    """
    import anywidget
    import traitlets

    class View(anywidget.AnyWidget):
        """A view in the browser."""

        set_state = ignore_state
        _esm = script(_SCRIPTS[kind])
        view: Any = traitlets.Dict().tag(sync=True)

    return View


def show_view(widget: Any, view: dict[str, Any]) -> None:  # noqa: ANN401  # ipywidgets has no types
    """Let a widget show a view, and let its page know that what it sent has arrived."""
    # A view that does not change would not be sent, and the page would wait for it.
    widget.view = {**view, "n_answers": widget.view.get("n_answers", 0) + 1}


def widget_data(widget: Any) -> dict[str, Any]:  # noqa: ANN401  # as above
    """Return the data by which a front end shows a widget, by MIME type, not its plain text."""
    bundle = widget._repr_mimebundle_()
    # Versions of ipywidgets differ: some return a pair of data and metadata.
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    return {kind: value for kind, value in (data or {}).items() if "widget" in kind}
