"""The widget that shows a picture drawn in the kernel, with hints at its points."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulab.widgets._script import script

if TYPE_CHECKING:
    from anywidget import AnyWidget


_SCRIPT = Path(__file__).with_name("picture.js")


@cache  # not at import: half of the package would wait for the widgets to load
def picture_class() -> "type[AnyWidget]":
    """Return the class of the widget.

    Its traits are ``png`` with ``number``, ``alt``, ``width`` (CSS pixels), ``spots`` (x and y as
    shares, and the hint), ``markers`` (x, and y from and to), ``legend``, ``words`` (lines
    above it), ``empty`` (what to say in place of a picture), ``progress`` (``text``, ``done`` and
    ``total`` of a measurement), ``code`` (the line that shows the same again), ``table`` (HTML)
    and ``file`` (what to call downloads). The page sets ``shown`` to the number of the picture
    that it has painted, ``ratio`` to the device pixels that it needs for each pixel of ``width``,
    ``dark`` to whether its theme is dark, and ``is_open`` while the table is to be seen. It asks
    for a file by the message ``{"file": suffix}``, and gets it back with the same message.
    """
    import anywidget
    import traitlets

    class Picture(anywidget.AnyWidget):
        """A picture in the browser."""

        _esm = script(_SCRIPT)
        png = traitlets.Bytes(b"").tag(sync=True)
        number = traitlets.Int(0).tag(sync=True)
        alt = traitlets.Unicode("").tag(sync=True)
        width = traitlets.Int(0).tag(sync=True)
        spots: Any = traitlets.List().tag(sync=True)
        empty = traitlets.Unicode("").tag(sync=True)
        markers: Any = traitlets.List().tag(sync=True)
        legend: Any = traitlets.List().tag(sync=True)
        words: Any = traitlets.List().tag(sync=True)
        progress: Any = traitlets.Dict().tag(sync=True)
        code = traitlets.Unicode("").tag(sync=True)
        table = traitlets.Unicode("").tag(sync=True)
        is_open = traitlets.Bool(default_value=False).tag(sync=True, echo_update=False)
        file = traitlets.Unicode("explorer").tag(sync=True)
        # What the page sets is not sent back to it, as that would cost it time at each picture.
        shown = traitlets.Int(0).tag(sync=True, echo_update=False)
        ratio = traitlets.Float(1.0).tag(sync=True, echo_update=False)
        dark = traitlets.Bool(default_value=False).tag(sync=True, echo_update=False)

    return Picture
