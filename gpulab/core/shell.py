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
