"""The widget in which you select several of many names, grouped in families."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulab.figures.widgets._script import script

if TYPE_CHECKING:
    from anywidget import AnyWidget


_SCRIPT = Path(__file__).with_name("chips.js")


@cache  # not at import: half of the package would wait for the widgets to load
def chips_class() -> "type[AnyWidget]":
    """Return the class of the widget.

    It has the traits of ``ipywidgets.SelectMultiple`` ``description``, ``options`` (names) and
    ``index`` (positions of the selected names). ``families`` is a list of pairs: the name of a
    family and its names.

    Examples
    --------
    >>> chips_class()(options=["add", "matmul"], index=[1]).index
    [1]
    """
    import anywidget
    import traitlets

    class Chips(anywidget.AnyWidget):
        """Names as buttons in the browser."""

        _esm = script(_SCRIPT)
        description = traitlets.Unicode("").tag(sync=True)
        options: Any = traitlets.List().tag(sync=True)
        index: Any = traitlets.List().tag(sync=True)
        families: Any = traitlets.List().tag(sync=True)
        disabled = traitlets.Bool(default_value=False).tag(sync=True)

    return Chips
