"""The widget that shows a picture drawn in the kernel, with tooltips at its points."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulab.figures.widgets._script import script

if TYPE_CHECKING:
    from anywidget import AnyWidget


_SCRIPT = Path(__file__).with_name("picture.js")


@cache  # not at import: half of the package would wait for the widgets to load
def picture_class() -> "type[AnyWidget]":
    """Return the class of the widget.

    Its traits are ``png`` with ``number``, ``alt``, ``width`` (CSS pixels), ``spots`` (x and y as
    shares, and the tooltip), ``markers`` (x, and y from and to), ``legend``, ``words`` (lines
    above the picture), ``empty`` (text in place of a picture), ``progress`` (``text``, ``done``
    and ``total`` of a measurement), ``code`` (the line of Python that makes the same picture),
    ``table`` (HTML) and ``file`` (the name of downloads). The browser sets none of them. It sends
    messages: ``{"shown": number}`` when it has painted this picture; ``{"ratio": ..., "dark":
    ...}`` with the device pixels that it needs for each pixel of ``width``, and whether its theme
    is dark; ``{"is_open": ...}`` when the table is opened or closed; and ``{"file": suffix}`` to
    request a file, which comes back in a message of the same form.

    Examples
    --------
    >>> picture_class()(alt="A roofline").alt
    'A roofline'
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
        file = traitlets.Unicode("explorer").tag(sync=True)

    return Picture
