"""What the browser runs for a widget: its own script after what all widgets share."""

from functools import cache
from pathlib import Path

_SHARED = Path(__file__).with_name("presentation.js")


@cache
def script(path: Path) -> str:
    """Return the module of a widget as text.

    A widget's script reaches the browser as one module, which cannot import the files beside it.
    So the shared class ``Presentation`` is put before it.

    Parameters
    ----------
    path
        The widget's own script, a module that exports ``render``.
    """
    return f"{_SHARED.read_text('utf-8')}\n{path.read_text('utf-8')}"
