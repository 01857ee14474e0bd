"""Build the JavaScript module of a widget from its own script and the shared one."""

import json
from functools import cache
from pathlib import Path

from gpulab.core.palette import named, style_sheet

_SHARED = Path(__file__).with_name("shared.js")


@cache
def script(path: Path) -> str:
    """Return the module of a widget as text.

    anywidget sends a widget's script to the browser as one module, which cannot import files
    beside it. So the shared code is put before it: ``tag``, ``drawn``, ``themeOf``,
    ``time``, ``Presentation``, the style sheet as the constant ``LOOK``, and its colours as
    ``COLOURS``. Put ``LOOK`` into the widget's own element, where it applies from the first frame;
    a style sheet that anywidget adds comes later.

    Parameters
    ----------
    path
        The widget's own script, a module that exports ``render``.

    Examples
    --------
    >>> script(_SHARED.with_name("chips.js")).startswith("const LOOK")
    True
    """
    parts = (path.read_text("utf-8") for path in (_SHARED, path))
    look, colours = json.dumps(style_sheet()), json.dumps(named())
    return "\n".join([f"const LOOK = {look};", f"const COLOURS = {colours};", *parts])
