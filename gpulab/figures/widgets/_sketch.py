"""The widget with empty axes on which you draw a curve, by mouse or by keyboard.

The widgets of ``wigglystuff`` (0.5: CurveEditor, SplineDraw, ChartPuck) were tried and are not
enough. They work with a pointer only, have no names for a screen reader, their axes are linear and
have no ticks, and with ``drawdata`` they add 3.5 MB for one curve.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulab.figures.widgets._messages import ignore_state
from gpulab.figures.widgets._script import script

if TYPE_CHECKING:
    from anywidget import AnyWidget


_SCRIPT = Path(__file__).with_name("sketch.js")


@cache  # not at import: half of the package would wait for the widgets to load
def sketch_class() -> "type[AnyWidget]":
    """Return the class of the widget.

    Its traits are ``question``, ``axes`` (places and ticks of both axes, with their labels), and
    ``curves``: for each curve its ``name``, ``colour`` and ``values``, a number or
    None for each place. The browser sends what you draw as ``{"drawn": [[name, values], ...]}``.
    While it shows the widget it hides elements of the class ``still``, which have the same picture
    for a page without a kernel.

    Examples
    --------
    >>> sketch_class()(question="How does the time grow?").question
    'How does the time grow?'
    """
    import anywidget
    import traitlets

    class Sketch(anywidget.AnyWidget):
        """Axes to draw on in the browser."""

        set_state = ignore_state
        _esm = script(_SCRIPT)
        question = traitlets.Unicode("").tag(sync=True)
        axes: Any = traitlets.Dict().tag(sync=True)
        curves: Any = traitlets.List().tag(sync=True)
        still = traitlets.Unicode("").tag(sync=True)

    return Sketch
