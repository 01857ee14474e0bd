"""A replacement for IPython's display that records what is shown."""

from dataclasses import dataclass, field
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import pytest

from gpulab.core import shell as shells

needs_ipywidgets_8 = pytest.mark.skipif(
    version("ipywidgets").startswith("7."),
    reason="version 7 asks at its import for the comms of the kernel, which a stand-in lacks",
)


@dataclass
class Shown:
    """Everything that was displayed, each with its updates."""

    outputs: list[list[Any]] = field(default_factory=list)

    def display(
        self, item: object, *, display_id: bool = False, raw: bool = False
    ) -> SimpleNamespace | None:
        """Replace ``IPython.display.display``."""
        assert raw == isinstance(item, dict)
        output = [item]
        self.outputs.append(output)
        return SimpleNamespace(update=lambda new, **_: output.append(new)) if display_id else None


def shown_in(patch: pytest.MonkeyPatch, *, watched: bool, kernel: object = True) -> Shown:
    """Make the process look like a kernel, with or without a front end that shows its cells."""
    shell, shown = SimpleNamespace(kernel=kernel), Shown()
    patch.setattr("IPython.get_ipython", lambda: shell)
    patch.setattr("IPython.display.display", shown.display)
    patch.setattr(shells, "is_watched", lambda: watched)
    return shown
