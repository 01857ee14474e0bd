"""Run actions at simulated times: the event queue of the simulation, in integer nanoseconds.

An error of the program's work waits here for the call that waits for the work. An error in the
middle of an action, such as a MemoryError, may leave any part of the simulation half changed:
then the queue is torn, and at its next use whoever has actions in it begins them anew.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from gpulab.errors import VirtualGpuError
from gpulab.interrupts import opening

Action = Callable[[], None]


class EventQueue:
    """Actions at times, run in order of time and then of insertion.

    Attributes
    ----------
    now_ns
        The time that has been reached; it never goes back.
    is_torn
        Whether something was left half done since the last use.
    """

    def __init__(self) -> None:
        self.now_ns = 0
        self.is_torn = False
        self._is_in_action = False
        self._failure: Exception | None = None
        self._restarts: list[Action] = []
        self._describers: list[Callable[[], list[str]]] = []
        self._queue: list[tuple[int, int, Action]] = []
        self._ticket = count()

    def at(self, time_ns: int, action: Action) -> None:
        """Run ``action`` at ``time_ns``, or now if that has passed."""
        # The ticket breaks ties, so the order never depends on the identity of the actions.
        due_ns = time_ns if time_ns > self.now_ns else self.now_ns  # noqa: FURB136 # twice a kernel, where a call of max is slow
        heappush(self._queue, (due_ns, next(self._ticket), action))

    def on_restart(self, action: Action) -> None:
        """Have ``action`` called once the queue is emptied, to put in anew what must run."""
        self._restarts.append(action)

    def on_standstill(self, describe: Callable[[], list[str]]) -> None:
        """Have ``describe`` called for the error if what is waited for can never come."""
        self._describers.append(describe)

    def keep_failure(self, error: Exception) -> None:
        """Keep an error of the program's work for :meth:`raise_failure`; the first one counts."""
        self._failure = self._failure or error

    def raise_failure(self) -> None:
        """Raise what :meth:`keep_failure` has kept, if anything, and forget it."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def advance(self, time_ns: int) -> None:
        """Run everything due up to ``time_ns`` and stand there; but nothing inside an action.

        Python's garbage collector may strike there, and what it frees asks how far the GPU is.
        """
        if self._is_in_action:
            return
        if self.is_torn:
            self._restart()
        while self._queue and self._queue[0][0] <= time_ns:
            self._step()
        self.now_ns = max(self.now_ns, time_ns)

    @opening  # Ctrl-C is heard between two actions, however long the wait
    def run_until(self, reached: Callable[[], bool]) -> int:
        """Run until ``reached()`` holds and return the time at which it did.

        Raises
        ------
        VirtualGpuError
            If nothing is left to run, so that the condition can never hold.
        """
        if self.is_torn:
            self._restart()
        while not reached():
            if not self._queue:
                raise VirtualGpuError(self._standstill())
            self._step()
        return self.now_ns

    def _standstill(self) -> str:
        waits = [each for describe in self._describers for each in describe()]
        if not waits:
            return "this waits for work that was never launched; launch it before you wait"
        return (
            "this waits for work that can never run, because streams wait for one another: "
            f"{'; '.join(waits)}; take one of these waits away"
        )

    def _step(self) -> None:
        self._is_in_action = True
        try:
            self.now_ns, _, action = heappop(self._queue)
            action()
        except BaseException:
            self.is_torn = True
            raise
        finally:
            self._is_in_action = False

    def _restart(self) -> None:
        self._queue.clear()
        for action in self._restarts:
            action()
        self.is_torn = False
