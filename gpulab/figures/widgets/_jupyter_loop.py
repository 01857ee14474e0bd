"""Run the actions of widgets on the thread of the notebook's cells, between two cells.

JupyterLab sends messages of widgets to a thread of their own (a subshell of the kernel), so that
they arrive while a cell runs. Widgets, matplotlib and a virtual GPU work on one thread only.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import ParamSpec

P = ParamSpec("P")


class JupyterLoop:
    """The thread and the event loop of the notebook's cells: those on which this object is made.

    Messages of widgets may arrive on another thread while a cell runs. A virtual GPU replaces
    ``torch.cuda`` for the whole process and belongs to the thread that entered it. So an action
    that a message asks for waits until the cell has finished.

    Attributes
    ----------
    asyncio_loop
        The event loop of that thread; None outside of Jupyter, where actions run at once.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        try:
            self.asyncio_loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self.asyncio_loop = None

    def in_turn(self, action: Callable[P, object]) -> Callable[P, None]:
        """Return a function that runs the action on the cells' thread, after the current cell."""

        def do(*args: P.args, **options: P.kwargs) -> None:
            if self.asyncio_loop is None or threading.get_ident() == self._thread:
                action(*args, **options)
            else:
                self.asyncio_loop.call_soon_threadsafe(lambda: action(*args, **options))

        return do

    def later(self, delay_s: float, action: Callable[[], object]) -> bool:
        """Run an action after a delay; without an event loop do nothing and return False."""
        if self.asyncio_loop is None or self.asyncio_loop.is_closed():
            return False
        self.asyncio_loop.call_later(delay_s, action)
        return True
