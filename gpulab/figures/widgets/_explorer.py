"""The explorers in the browser: a page that runs by itself, and a widget that adds the kernel."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulab.figures.widgets._messages import ignore_state
from gpulab.figures.widgets._script import script

if TYPE_CHECKING:
    from anywidget import AnyWidget

_FOLDER = Path(__file__).parent


def explorer_page(name: str) -> str:
    """Return the script that shows an explorer in the HTML of an output.

    Examples
    --------
    >>> "class CrossoverExplorer" in explorer_page("crossover")
    True
    """
    return script(_FOLDER / name / "page.js")


@cache  # not at import: half of the package would wait for the widgets to load
def explorer_class(name: str) -> "type[AnyWidget]":
    """Return the class of the widget that connects an explorer with the kernel.

    Its trait ``mark`` is that of the explorer's HTML; empty if the widget shows the explorer
    itself. Everything else travels as messages; ``chart/explorer.js`` sends and receives them.

    Examples
    --------
    >>> explorer_class("crossover")(mark="a").mark
    'a'
    """
    import anywidget
    import traitlets

    class ExplorerWidget(anywidget.AnyWidget):
        """An explorer's connection with the kernel."""

        set_state = ignore_state
        _esm: Any = script(_FOLDER / name / "widget.js")
        mark = traitlets.Unicode("").tag(sync=True)

    return ExplorerWidget
