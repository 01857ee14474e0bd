"""A text progress bar that appears after one second and disappears at the end."""

import time
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm  # type: ignore[import-untyped]  # tqdm ships no types

from gpulab.core.markup import clean
from gpulab.core.shell import jupyter_kernel


class Bar(tqdm):  # type: ignore[misc]  # as above
    """Show how far a measurement is, unless it ends within a second."""

    # tqdm starts a monitor thread by default. It would wake up inside timed intervals.
    monitor_interval = 0

    def __init__(
        self,
        iterable: Iterable[Any] | None = None,
        *,
        total: int | None = None,
        desc: str,
        unit: str,
        disable: bool,
    ) -> None:
        super().__init__(
            iterable,
            total=total,
            disable=disable,
            desc=desc,
            unit=unit,
            delay=1,
            leave=False,
            file=None if jupyter_kernel() is None else _NotebookLine(),
        )
        if not self.disable:
            # tqdm has the virtual clock if it was imported while a virtual GPU was in use. This
            # clock is always the real one.
            self._time = time.monotonic
            self.start_t = self.last_print_t = self._time()

    def count(self, desc: str, unit: str, total: int | None) -> None:
        """Count something else from now on; the time that is shown goes on."""
        self.desc, self.unit, self.total = desc, unit, total
        self.n = self.last_print_n = 0


class _NotebookLine:
    """A line of text in a notebook's output, for tqdm to write to.

    JupyterLab would leave a red strip where a bar on stderr has been wiped.
    """

    encoding = "utf-8"

    def __init__(self) -> None:
        self._shown: Any = None  # IPython's handle of the output

    def write(self, text: str) -> None:
        from IPython import display  # only where a notebook has it already

        line = text.strip()
        page = {"text/plain": line, "text/html": f"<pre>{clean(line)}</pre>" if line else ""}
        if self._shown is not None:
            self._shown.update(page, raw=True)
        elif line:
            self._shown = display.display(page, raw=True, display_id=True)  # type: ignore[no-untyped-call]  # its gap

    def flush(self) -> None:
        """Do nothing: each line is shown at once."""
