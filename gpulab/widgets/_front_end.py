"""Whether a person watches the cell that runs, so that a widget makes sense."""

import sys
from typing import Any


def is_watched() -> bool:
    """Tell whether a front end shows the cell: these name it, and runners of notebooks do not."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return False
    request: dict[str, Any] = shell.get_parent() or {}
    return "cellId" in request.get("metadata", {})
