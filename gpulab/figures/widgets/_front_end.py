"""Ask Jupyter about the running cell: its kernel, and whether a front end shows it."""

from typing import Any

from gpulab.core.shell import ipython, jupyter_kernel


def is_watched() -> bool:
    """Return whether a front end shows the cell that runs.

    Front ends such as JupyterLab send the id of the cell. Programs that execute notebooks, such as
    nbconvert, send none.
    """
    if jupyter_kernel() is None:
        return False
    request: dict[str, Any] = ipython().get_parent() or {}
    return "cellId" in request.get("metadata", {})


def cell_code() -> str:
    """Return the code of the cell that runs; empty outside of Jupyter."""
    if jupyter_kernel() is None:
        return ""
    request: dict[str, Any] = ipython().get_parent() or {}
    return str(request.get("content", {}).get("code", ""))


def replace_cell(code: str) -> None:
    """Put code into the cell that runs, in place of what is there."""
    if jupyter_kernel() is not None:
        ipython().set_next_input(code, replace=True)


def widget_data(widget: Any) -> dict[str, Any]:  # noqa: ANN401  # ipywidgets has no types
    """Return the data by which a front end shows a widget, by MIME type, not its plain text."""
    made = widget._repr_mimebundle_()
    # Versions of ipywidgets differ: some return a pair of data and metadata.
    shown = made[0] if isinstance(made, tuple) else made
    return {kind: value for kind, value in (shown or {}).items() if "widget" in kind}
