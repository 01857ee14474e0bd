"""Run actions at simulated times: the event queue of the simulation, in integer nanoseconds."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from gpulab.errors import VirtualGpuError

Action = Callable[[], None]


class EventQueue:
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
        due_ns = time_ns if time_ns > self.now_ns else self.now_ns  # noqa: FURB136 # twice a kernel, where a call of max is slow
        heappush(self._queue, (due_ns, next(self._ticket), action))

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
        self.now_ns, _, action = heappop(self._queue)
        action()
