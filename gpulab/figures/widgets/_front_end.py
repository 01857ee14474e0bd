"""Ask Jupyter about the running cell: its kernel, and whether a front end shows it."""

import sys
from typing import Any


def jupyter_kernel() -> Any:  # noqa: ANN401  # ipykernel's kernel, or None
    """Return Jupyter's kernel, or None outside of Jupyter.

    Examples
    --------
    >>> jupyter_kernel() is None
    True
    """
    return getattr(_shell(), "kernel", None)


def is_watched() -> bool:
    """Return whether a front end shows the cell that runs.

    Front ends such as JupyterLab send the id of the cell. Programs that execute notebooks, such as
    nbconvert, send none.

    Examples
    --------
    >>> is_watched()
    False
    """
    if jupyter_kernel() is None:
        return False
    request: dict[str, Any] = _shell().get_parent() or {}
    return "cellId" in request.get("metadata", {})


def cell_code() -> str:
    """Return the code of the cell that runs; empty outside of Jupyter.

    Examples
    --------
    >>> cell_code()
    ''
    """
    if jupyter_kernel() is None:
        return ""
    request: dict[str, Any] = _shell().get_parent() or {}
    return str(request.get("content", {}).get("code", ""))


def replace_cell(code: str) -> None:
    """Put code into the cell that runs, in place of what is there.

    Examples
    --------
    >>> replace_cell("x = 1")  # outside of Jupyter there is no cell
    """
    if jupyter_kernel() is not None:
        _shell().set_next_input(code, replace=True)


def widget_data(widget: Any) -> dict[str, Any]:  # noqa: ANN401  # ipywidgets has no types
    """Return the data by which a front end shows a widget, by MIME type, without its plain text.

    Examples
    --------
    >>> from gpulab.figures.widgets import view_class
    >>> sorted(widget_data(view_class("machine")()))
    ['application/vnd.jupyter.widget-view+json']
    """
    made = widget._repr_mimebundle_()
    # Versions of ipywidgets differ: some return a pair of data and metadata.
    shown = made[0] if isinstance(made, tuple) else made
    return {kind: value for kind, value in (shown or {}).items() if "widget" in kind}


def _shell() -> Any:  # noqa: ANN401  # IPython's shell, or None
    # Look in sys.modules: a plain script should not import IPython for this.
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
