"""What Jupyter tells of the cell that runs: its kernel, and whether a person watches."""

import sys
from typing import Any


def jupyter_kernel() -> Any:  # noqa: ANN401  # ipykernel's kernel, or None
    """Return Jupyter's kernel, or None outside of Jupyter."""
    return getattr(_shell(), "kernel", None)


def is_watched() -> bool:
    """Tell whether a front end shows the cell: these name it, and runners of notebooks do not."""
    if jupyter_kernel() is None:
        return False
    request: dict[str, Any] = _shell().get_parent() or {}
    return "cellId" in request.get("metadata", {})


def widget_data(widget: Any) -> dict[str, Any]:  # noqa: ANN401  # ipywidgets has no types
    """Return by MIME type what a front end shows a widget by, without its text for others."""
    made = widget._repr_mimebundle_()
    shown = made[0] if isinstance(made, tuple) else made  # by the version of ipywidgets
    return {kind: value for kind, value in (shown or {}).items() if "widget" in kind}


def _shell() -> Any:  # noqa: ANN401  # IPython's shell, or None
    # A script does not load IPython for the question.
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
