"""Run actions at simulated times: the event queue of the simulation, in integer nanoseconds.

An error in the program's work is stored here, and the next call that waits raises it. An error in
the middle of an action, such as a MemoryError, may leave any part of the simulation half changed.
Then the queue is *torn*, and each later use asks for a restart of the kernel.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import TypeVar

from gpulab.core.errors import VirtualGpuError
from gpulab.core.interrupts import opening

_TORN = (
    "an error, such as a shortage of memory, stopped the virtual GPU in the middle of its work, "
    "and its state is unknown; restart the kernel"
)
# Programs cannot get there: a stream waits only for what was launched before. Those that the
# machine of the explorers runs can.
_STANDSTILL = (
    "this waits for work that can never run: it was not launched, or streams wait for one another"
)
Action = Callable[[], None]
Value = TypeVar("Value")


class EventQueue:
    """Runs actions in the order of their times; equal times in the order of insertion.

    Attributes
    ----------
    now_ns
        The present simulated time; it never goes back.
    is_in_action
        Whether an action is running now.
    is_torn
        Whether an error has left something half done.
    """

    def __init__(self) -> None:
        self.now_ns = 0
        self.is_torn = False
        self.is_in_action = False
        self._failure: Exception | None = None
        self._do_more: Callable[[], bool] = lambda: False
        self._queue: list[tuple[int, int, Action]] = []
        self._ticket = count()

    def at(self, time_ns: int, action: Action) -> None:
        """Run ``action`` at ``time_ns``, or now if that has passed."""
        # The ticket breaks ties. Without it the heap would compare functions, which have no order.
        due_ns = time_ns if time_ns > self.now_ns else self.now_ns  # noqa: FURB136 # twice a kernel, where a call of max is slow
        heappush(self._queue, (due_ns, next(self._ticket), action))

    def before_going_on(self, do_more: Callable[[], bool]) -> None:
        """Call ``do_more`` until it returns False, each time before the program goes on."""
        self._do_more = do_more

    def undisturbed(self, work: Callable[[], Value]) -> Value:
        """Call ``work`` as inside an action, and return its result."""
        before, self.is_in_action = self.is_in_action, True
        try:
            return work()
        finally:
            self.is_in_action = before

    def keep_failure(self, error: Exception) -> None:
        """Store an error of the program's work for :meth:`raise_failure`, if it is the first."""
        # Only the first: later errors mostly follow from it, and a wait can raise only one.
        self._failure = self._failure or error

    def raise_failure(self) -> None:
        """Raise the error that :meth:`keep_failure` has stored, if any, and drop it."""
        # Dropped before it is raised: a program that catches the error can go on.
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def advance(self, time_ns: int) -> None:
        """Run everything due up to ``time_ns``, and set the time to that.

        Inside an action it does nothing. Python's garbage collector may run there and free a
        tensor, and the allocator then asks how far the GPU is.
        """
        if self.is_in_action:
            return
        if self.is_torn:
            raise VirtualGpuError(_TORN)
        # Looked up anew in each round, because an action may add others that are due as well.
        while self._queue and self._queue[0][0] <= time_ns:
            self._step()
        self.now_ns = max(self.now_ns, time_ns)
        while self.undisturbed(self._do_more):
            pass

    @opening  # Ctrl-C may stop the wait between two actions, or between two values
    def run_until(self, reached: Callable[[], bool]) -> int:
        """Run actions until ``reached()`` is true; return the time.

        Raises
        ------
        VirtualGpuError
            If nothing is left to run, so that the wait would never end, or if an error has stopped
            an action before.
        """
        if self.is_torn:
            raise VirtualGpuError(_TORN)
        while not reached():
            # Nothing left to run: no later action can make the condition true.
            if not self._queue:
                raise VirtualGpuError(_STANDSTILL)
            self._step()
        while self.undisturbed(self._do_more):
            pass
        return self.now_ns

    def _step(self) -> None:
        self.is_in_action = True
        try:
            # The time is set before the action runs, because most actions plan from it.
            self.now_ns, _, action = heappop(self._queue)
            action()
        except BaseException:
            # The action may have done half of its changes.
            self.is_torn = True
            raise
        finally:
            self.is_in_action = False
