"""An event queue in integer nanoseconds: the only notion of time below, and it knows no GPU."""

import heapq
from collections.abc import Callable
from itertools import count

from gpulab.errors import VirtualGpuError

Action = Callable[[], None]


class Engine:
    """Actions at times, run in order of time and then of insertion.

    Attributes
    ----------
    now_ns
        The time that has been reached; it never goes back.
    """

    def __init__(self) -> None:
        self.now_ns = 0
        self._queue: list[tuple[int, int, Action]] = []
        self._ticket = count()

    def at(self, time_ns: int, action: Action) -> None:
        """Run ``action`` at ``time_ns``, or now if that has passed."""
        # The ticket breaks ties, so the order never depends on the identity of the actions.
        heapq.heappush(self._queue, (max(time_ns, self.now_ns), next(self._ticket), action))

    def advance(self, time_ns: int) -> None:
        """Run everything due up to ``time_ns`` and stand there."""
        while self._queue and self._queue[0][0] <= time_ns:
            self._step()
        self.now_ns = max(self.now_ns, time_ns)

    def run_until(self, reached: Callable[[], bool]) -> int:
        """Run until ``reached()`` holds and return the time at which it did.

        Raises
        ------
        VirtualGpuError
            If nothing is left to run, so that the condition can never hold.
        """
        while not reached():
            if not self._queue:
                raise VirtualGpuError(
                    "the virtual GPU waits for work that can never run; "
                    "look for a stream that waits for itself"
                )
            self._step()
        return self.now_ns

    def _step(self) -> None:
        self.now_ns, _, action = heapq.heappop(self._queue)
        action()
