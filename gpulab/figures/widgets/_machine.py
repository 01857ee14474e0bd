"""The widget of the machine explorer: edit a small GPU program by mouse and keyboard."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulab.figures.widgets._messages import ignore_state
from gpulab.figures.widgets._script import script

if TYPE_CHECKING:
    from anywidget import AnyWidget

_SCRIPT = Path(__file__).with_name("machine.js")


@cache  # not at import: half of the package would wait for the widgets to load
def machine_class() -> "type[AnyWidget]":
    """Return the class of the widget.

    Its trait ``view`` contains everything that is drawn. The browser requests a change by a
    message ``{"do": ..., "number": ...}``; the next ``view`` has this number as ``answer``.

    Examples
    --------
    >>> machine_class()().view
    {}
    """
    import anywidget
    import traitlets

    class MachineView(anywidget.AnyWidget):
        """A machine in the browser."""

        set_state = ignore_state
        _esm = script(_SCRIPT)
        view: Any = traitlets.Dict().tag(sync=True)

    return MachineView
