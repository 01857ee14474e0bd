"""The widget on whose empty axes a curve is drawn, by mouse or by keys alone.

The widgets of ``wigglystuff`` (0.5: CurveEditor, SplineDraw, ChartPuck) were tried and do not
serve here: they draw with the pointer only, without a single key or a name for a screen reader,
their axes are linear and without ticks, and with ``drawdata`` they bring 3.5 MB for one curve.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulab.widgets._script import script

if TYPE_CHECKING:
    from anywidget import AnyWidget


_SCRIPT = Path(__file__).with_name("sketch.js")


@cache  # not at import: half of the package would wait for the widgets to load
def sketch_class() -> "type[AnyWidget]":
    """Return the class of the widget.

    Its traits are ``question``, ``axes`` (places and ticks of both axes, with their labels), and
    ``curves``: for each curve its ``name``, ``colour``, ``dashes`` and ``values``, a number or
    None for each place. The page sends what is drawn by the message ``{"drawn": [[name, values],
    ...]}``. While it shows the widget it hides elements of the class ``still``, which are the same
    picture for a page without a kernel.
    """
    import anywidget
    import traitlets

    class Sketch(anywidget.AnyWidget):
        """Axes to draw on in the browser."""

        _esm = script(_SCRIPT)
        question = traitlets.Unicode("").tag(sync=True)
        axes: Any = traitlets.Dict().tag(sync=True)
        curves: Any = traitlets.List().tag(sync=True)
        still = traitlets.Unicode("").tag(sync=True)

    return Sketch
