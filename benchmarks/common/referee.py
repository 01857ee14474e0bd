"""The referee: how long a call takes by the driver's records, in a given state of the cache.

The profiler lengthens the gaps between the kernels of a call. The extra time is called the
stretch, and it is subtracted from the spans. To find it, events time the same sequence of calls
with the profiler and without. Their difference, minus what the profiler adds to the reading of a
single kernel, is the stretch.
"""

import statistics
import time
from dataclasses import dataclass, field

import torch

from benchmarks.common.environment import l2_bytes
from gpulab.device.work import Work
from gpulab.timing import flusher
from gpulab.timing._profiler import read_calls
from gpulab.timing._saturated import SaturatedSampler
from gpulab.timing._work_floor import SESSION_S

HOT, READ = "hot", "read"
_MIB = 1 << 20
# The flushes of other tools, from their source code: all of them write zeros. Below 1 MiB, a
# number is a multiple of the L2's size.
WRITES = {"write 256 MiB": 256 * _MIB, "write 2 x L2": 2, "write 1 x L2": 1}
STATES = (HOT, READ, *WRITES)

_US_PER_S = 1e6
_FLUSH_S = 200e-6  # about what a flush and the sleep before each call take
# Seconds for one reading, and its smallest and largest number of calls. Every answer has a reading
# before it and one after it, so this decides how long a whole run takes. With at most 31 calls the
# readings themselves were 0.05 us off in the median, half of what an answer may be.
_BUDGET_S, _N_LEAST, _N_MOST = 0.08, 7, 91


@dataclass(frozen=True, slots=True)
class Reading:
    """The driver's records of some calls, in microseconds for each call.

    Attributes
    ----------
    busy_us
        Durations of all kernels, copies and fills of a call, added up.
    span_us
        From the first start to the last end, so with the gaps between kernels.
    stretch_us
        What the profiler adds to a span; 0 for a single kernel.
    n_records
        Number of kernels, copies and fills of one call.
    n_dropped
        Number of calls with missing records; their times are left out.
    """

    busy_us: tuple[float, ...]
    span_us: tuple[float, ...]
    stretch_us: float
    n_records: int
    n_dropped: int

    @property
    def median_us(self) -> float:
        """Median span."""
        return statistics.median(self.span_us)

    def joined(self, other: "Reading") -> "Reading":
        """Return both readings as one."""
        return Reading(
            self.busy_us + other.busy_us,
            self.span_us + other.span_us,
            (self.stretch_us + other.stretch_us) / 2,
            self.n_records,
            self.n_dropped + other.n_dropped,
        )


@dataclass(slots=True)
class Referee:
    """Times one piece of work in any state of the cache, with the host ahead of the GPU.

    Parameters
    ----------
    work
        The work to time.
    """

    work: Work
    _call_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.work()  # the first call loads libraries
        # The least of three, because a wall time can only be too long.
        self._call_s = min(_wall_s(self.work) for _ in range(3))

    def read(self, state: str) -> Reading:
        """Return a reading in a state of the cache: one of ``STATES``."""
        before = flush_of(state)
        n_samples = int(_BUDGET_S / (self._call_s + _FLUSH_S))
        n_samples = min(max(n_samples, _N_LEAST), _N_MOST)
        calls = read_calls(self.work, n_samples=n_samples, before=before)
        whole = [call for call, _ in calls if not call.dropped and call.n_records]
        if not whole:
            raise RuntimeError(f"none of {len(calls)} calls left all of its records")
        stretch_s = 0.0
        if whole[0].n_records > 1:
            alone_s = SaturatedSampler(self.work, before=before)(n_samples)
            watched_s = [reading_s for _, reading_s in calls]
            # While the profiler is on, events read SESSION_S more even around a single kernel
            # (docs/floor.md). That is no stretch of the pauses.
            stretch_s = statistics.median(watched_s) - statistics.median(alone_s) - SESSION_S
        return Reading(
            tuple(round(call.busy_s * _US_PER_S, 4) for call in whole),
            tuple(round(call.span_s * _US_PER_S, 4) for call in whole),
            round(stretch_s * _US_PER_S, 4),
            whole[0].n_records,
            len(calls) - len(whole),
        )


_buffers: dict[int, torch.Tensor] = {}


def flush_of(state: str) -> Work:
    """Return the function that puts the cache into a state, to call before each timed call."""
    if state == HOT:
        # Hot: the call before has just used the same data.
        return lambda: None
    if state == READ:
        return flusher("read")
    size = WRITES[state]
    if size < _MIB:
        size *= l2_bytes()
    if size not in _buffers:
        _buffers[size] = torch.empty(size // 4, dtype=torch.int32, device="cuda")
    return _buffers[size].zero_


def _wall_s(work: Work) -> float:
    """Return the seconds that one call takes, from an idle device to an idle device."""
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start_s
