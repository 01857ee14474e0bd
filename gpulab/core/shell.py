"""The IPython in which this process runs a notebook's cells, if there is one."""

import sys
from typing import Any


def ipython() -> Any:  # noqa: ANN401  # IPython's shell is not typed, and need not be installed
    """Return IPython's shell, or None in a plain script."""
    # Not imported: a script without IPython must not pay for it, and a notebook has it already.
    module = sys.modules.get("IPython")
    return None if module is None else module.get_ipython()


def jupyter_kernel() -> Any:  # noqa: ANN401  # ipykernel's kernel, or None
    """Return Jupyter's kernel, or None outside of Jupyter."""
    return getattr(ipython(), "kernel", None)


def is_watched() -> bool:
    """Return whether a front end shows the cell that runs.

    Front ends such as JupyterLab send the id of the cell. Programs that execute notebooks, such as
    nbconvert, send none.
    """
    return jupyter_kernel() is not None and "cellId" in _request("metadata")


def cell_code() -> str:
    """Return the code of the cell that runs in Jupyter."""
    return str(_request("content").get("code", ""))


def replace_cell(code: str) -> None:
    """Put code into the cell that runs in Jupyter, in place of what is there."""
    ipython().set_next_input(code, replace=True)


def _request(part: str) -> dict[str, Any]:
    """Return a part of the message that asked Jupyter to run this cell."""
    message: dict[str, Any] = ipython().get_parent() or {}
    request: dict[str, Any] = message.get(part, {})
    return request
