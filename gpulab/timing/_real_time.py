"""The real time that a measurement takes on a virtual GPU, and its limit.

On a virtual GPU ``time.perf_counter`` is the virtual clock. To simulate a call, and to compute its
values, takes much longer on the real clock: a call of 1 ms may take seconds.
"""

import math
import time

from gpulab import device

# A person can wait for two seconds. A shorter limit would end the measurements of small models,
# and on a slow machine earlier than on a fast one.
_LEAST_S = 2.0
_WARM_UP_SHARE = 0.5  # of the limit, for all pieces of work together


def now_s() -> float:
    """Return the real clock in seconds, also while a virtual GPU is in use."""
    return time.monotonic()


class RealTime:
    """How much real time a measurement may still take: without limit on a CUDA GPU.

    There the clock of the program is the real one, and ``max_time_s`` limits it directly. Here it
    is raised to two seconds, for warm-up and samples together, and shared by ``n_works`` pieces of
    work. ``has_cut`` says whether the warm-up or the samples were fewer because of the limit.
    """

    def __init__(self, max_time_s: float, *, n_works: int = 1) -> None:
        self.is_virtual = device.current().virtual is not None
        self.limit_s = max(_LEAST_S, max_time_s) if self.is_virtual else math.inf
        self.has_cut = False
        self._warm_up_s = _WARM_UP_SHARE * self.limit_s / n_works
        self._start_s = now_s()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return now_s() - self._start_s

    def is_over(self) -> bool:
        """Return whether the limit is reached, and note that it ends the samples."""
        is_over = self.elapsed_s >= self.limit_s
        self.has_cut |= is_over
        return is_over

    def ends_warm_up(self, elapsed_s: float) -> bool:
        """Return whether a warm-up of ``elapsed_s`` real seconds must end, and note that."""
        is_over = elapsed_s >= self._warm_up_s
        self.has_cut |= is_over
        return is_over

    def fitting(self, n_calls: int, call_s: float | None) -> int:
        """Return how many of ``n_calls`` fit into the time that is left, but at least 1.

        If the real time of one is not known, one fits on a virtual GPU.
        """
        if not self.is_virtual:
            return n_calls
        if call_s is None:
            return 1
        left_s = self.limit_s - self.elapsed_s
        if call_s * n_calls <= left_s:
            return n_calls
        self.has_cut = True
        return max(1, int(left_s / call_s))
