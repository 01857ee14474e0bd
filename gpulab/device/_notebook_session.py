"""The GPU that a notebook has chosen: entered at the start of each cell and left at its end."""

import ctypes
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gpulab.core.errors import VirtualGpuError
from gpulab.core.foreign_text import one_line
from gpulab.core.interrupts import hold, let_go, step
from gpulab.core.shell import ipython
from gpulab.device._device import Device, find
from gpulab.virtual import entered

if TYPE_CHECKING:
    from gpulab.virtual import VirtualGpu


class NotebookSession:
    """The GPU chosen in this process, and the hooks that enter it for each cell of a notebook.

    ``device`` is None before the first choice or measurement; ``shell`` is IPython's while hooks
    are registered with it. More than one cell runs if a cell runs another.
    """

    def __init__(self) -> None:
        self.device: Device | None = None
        self.shell: Any = None
        self.n_cells_running = 0

    @property
    def virtual(self) -> "VirtualGpu | None":
        """The chosen virtual GPU; None if the choice is a real one, or not made yet."""
        return None if self.device is None else self.device.virtual

    def choose(self) -> Device:
        """Return the chosen GPU; the first call chooses ``"auto"``."""
        if self.device is None:
            self.device = find("auto")
        return self.device

    def switch(self, gpu: str, max_value_bytes: int) -> Device:
        """Choose the GPU of this name, and enter it in a notebook."""
        thread = threading.current_thread()
        if ipython() is not None and thread is not threading.main_thread():
            raise VirtualGpuError(
                f"gpulab.use() was called on the thread {one_line(thread.name)}, and it chooses "
                "for the cells, which run on the main thread; call it in a cell, outside your "
                "threads"
            )
        # First, because it may raise, and then nothing must have changed.
        device = find(gpu, max_value_bytes=max_value_bytes)
        self._replace(device)
        return device

    @step
    def _replace(self, device: Device) -> None:
        """Replace the old GPU in one step, so that Ctrl-C cannot leave the cells without any."""
        replacing = object()
        # Leaving the old GPU would restore Python's signal handlers; keep them wrapped until the
        # new one is in place.
        hold(replacing)
        try:
            self.release()
            if self.virtual is not None:
                # IPython's Out still refers to what use() returned, and so to the old GPU.
                self.virtual.abandon()
            self.device = device
            self.keep()
        finally:
            let_go(replacing)

    def keep(self) -> None:
        """Register hooks that enter a virtual GPU for each cell, and enter it for this cell."""
        shell = ipython()
        if self.virtual is None or shell is None:
            return
        self.shell = shell
        shell.events.register("pre_run_cell", self.enter)
        # This event comes also after errors and Ctrl-C.
        shell.events.register("post_run_cell", self.leave)
        self.enter()

    def release(self) -> None:
        """Unregister the hooks and leave the virtual GPU."""
        if self.shell is None:
            return
        self.shell.events.unregister("pre_run_cell", self.enter)
        self.shell.events.unregister("post_run_cell", self.leave)
        self.shell = None
        self.n_cells_running = 0
        self.leave()

    @step
    def enter(self, _info: object = None) -> None:
        """Enter the virtual GPU at the start of a cell."""
        entering = object()
        hold(entering)
        try:
            self._enter()
        finally:
            let_go(entering)

    def _enter(self) -> None:
        # A cell may run another one, as some magics do: only the outermost enters and leaves.
        # Ctrl-C inside IPython may have skipped the last leave(), so the count starts again.
        if not _is_nested():
            self.n_cells_running = 0
        self.n_cells_running += 1
        if self.virtual is not None and entered() is None:  # the user may have entered one
            self.virtual.__enter__()

    @step
    def leave(self, _result: object = None) -> None:
        """Leave the virtual GPU at the end of the outermost cell."""
        self.n_cells_running = max(0, self.n_cells_running - 1)
        # The user may have left it in the cell, which is no error.
        if self.virtual is not None and self.virtual.entered and not self.n_cells_running:
            self.virtual.__exit__(None, None, None)
        if not self.n_cells_running:
            _return_freed_memory()


def _return_freed_memory() -> None:
    """Give the system back what the cell has freed: glibc keeps about 0.2 MiB of each figure."""
    if sys.platform == "linux":
        with suppress(AttributeError):  # other C libraries have no such function
            ctypes.CDLL(None).malloc_trim(0)


def _is_nested() -> bool:
    """Return whether another cell runs the cell that begins now."""
    n_running, frame = 0, sys._getframe()  # noqa: SLF001 # Python's only way to its own frames
    while (frame := frame.f_back) is not None:  # type: ignore[assignment] # the last is None
        # IPython has no public count of running cells. Each one has this frame of IPython's on the
        # stack.
        n_running += frame.f_code.co_name == "run_cell_async"
    return n_running > 1


# One choice for the whole process, like torch's current device.
session = NotebookSession()
