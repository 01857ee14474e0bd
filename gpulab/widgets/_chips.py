"""The widget that chooses several of many names, which stand in families."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulab.widgets._script import script

if TYPE_CHECKING:
    from anywidget import AnyWidget


_SCRIPT = Path(__file__).with_name("chips.js")


@cache  # not at import: half of the package would wait for the widgets to load
def chips_class() -> "type[AnyWidget]":
    """Return the class of the widget.

    Its traits are those of ``ipywidgets.SelectMultiple``: ``description``, ``options`` (names) and
    ``index`` (the places of those chosen), and ``families``: the name of each with its names.
    """
    import anywidget
    import traitlets

    class Chips(anywidget.AnyWidget):
        """Names to press in the browser."""

        _esm = script(_SCRIPT)
        description = traitlets.Unicode("").tag(sync=True)
        options: Any = traitlets.List().tag(sync=True)
        index: Any = traitlets.List().tag(sync=True)
        families: Any = traitlets.List().tag(sync=True)
        disabled = traitlets.Bool(default_value=False).tag(sync=True)

    return Chips
