"""What the browser runs for a widget: its own script after what all widgets share."""

import json
from functools import cache
from pathlib import Path

from gpulab.palette import named, style_sheet

_SHARED = Path(__file__).with_name("presentation.js")


@cache
def script(path: Path) -> str:
    """Return the module of a widget as text.

    A widget's script reaches the browser as one module, which cannot import the files beside it.
    So what all share is put before it: ``themeOf``, ``Presentation``, and the style sheet as the
    constant ``LOOK``, with its colours as ``COLOURS``. ``LOOK`` belongs into the widget's own
    element, where it holds from the first frame; a sheet that anywidget adds comes after that.

    Parameters
    ----------
    path
        The widget's own script, a module that exports ``render``.
    """
    parts = (path.read_text("utf-8") for path in (_SHARED, path))
    look, colours = json.dumps(style_sheet()), json.dumps(named())
    return "\n".join([f"const LOOK = {look};", f"const COLOURS = {colours};", *parts])
