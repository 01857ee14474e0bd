"""The thread on which a notebook's cells run, and how messages of widgets get onto it.

JupyterLab sends the messages of widgets to a thread of their own (a subshell of the kernel), so
that they arrive while a cell runs. Widgets, matplotlib and a virtual GPU are made for one thread.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import ParamSpec

P = ParamSpec("P")


class JupyterLoop:
    """The thread that runs the cells, as it was when this was made.

    Messages of widgets may come on a thread of their own, beside the cell that runs. A virtual
    GPU stands behind ``torch.cuda`` for the whole process though, and belongs to the thread that
    entered it. So what a message asks for is done between two cells.

    Attributes
    ----------
    asyncio_loop
        The event loop of that thread; None outside of Jupyter, where all is done at once.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        try:
            self.asyncio_loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self.asyncio_loop = None

    def in_turn(self, action: Callable[P, object]) -> Callable[P, None]:
        """Return the action as one that is done on this thread, in its turn."""

        def do(*args: P.args, **options: P.kwargs) -> None:
            if self.asyncio_loop is None or threading.get_ident() == self._thread:
                action(*args, **options)
            else:
                self.asyncio_loop.call_soon_threadsafe(lambda: action(*args, **options))

        return do

    def later(self, delay_s: float, action: Callable[[], object]) -> bool:
        """Do something after a while; without a loop nothing is done, and False returned."""
        if self.asyncio_loop is None or self.asyncio_loop.is_closed():
            return False
        self.asyncio_loop.call_later(delay_s, action)
        return True
