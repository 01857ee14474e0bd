"""The floor of some work: how much too long events read it, by the driver's records of that work.

Kernels differ in their floor, so the floor of the work itself is the most accurate.
"""

import math
from dataclasses import dataclass, replace
from statistics import median

import torch

from gpulab import device
from gpulab.core.errors import ProfilerUnavailableError
from gpulab.device.work import Work
from gpulab.stats import median_interval
from gpulab.timing._profiler import read_calls
from gpulab.tracing.profiling import Records, leaves_no_trace


@dataclass(frozen=True, slots=True)
class Floor:
    """How many seconds too long a pair of events reads.

    Attributes
    ----------
    value_s
        Seconds to subtract from the time between two events around kernels.
    low_s, high_s
        Its 95 % interval. Kernels differ in their floor; nearly all floors are within it.
    method
        How it was found: ``"work"``, from records of this work; ``"profiler"``, ``"timer"``
        or ``"assumed"``, from another kernel on the device; ``"records"``, on a virtual GPU.
    device_name
        As the driver reports it.
    n_samples
        Number of readings whose median it is.

    Examples
    --------
    >>> import gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     floor = gpulab.timing.floor()
    >>> 0 < floor.low_s <= floor.value_s <= floor.high_s
    True
    """

    value_s: float
    low_s: float
    high_s: float
    method: str
    device_name: str
    n_samples: int

    def joined(self, later: "Floor") -> "Floor":
        """Return the mean of this floor and a later one, with the wider of the two intervals."""
        value_s = (self.value_s + later.value_s) / 2
        # Not narrower for being two: most of each interval is how much kernels differ, which both
        # share.
        aside_s = max(self.high_s - self.low_s, later.high_s - later.low_s) / 2
        return replace(
            self,
            value_s=value_s,
            low_s=value_s - aside_s,
            high_s=value_s + aside_s,
            n_samples=self.n_samples + later.n_samples,
        )


# Two batches of the sampler. 12 calls and the session take 23 ms on an H200 (docs/floor.md).
_N_CALLS = 12
_N_LEAST = 6
_NS = 1e-9
# If the profiler slows the kernel down by more than this, its record does not show how long the
# kernel takes without the profiler. On an H200 one kernel of 38, a softmax, took 5 µs longer in a
# session; no other was slowed by more than this.
_SLOWED_S = 1.5e-6
# How much more a pair of events reads in a session of the profiler than outside, on an H200: see
# docs/floor.md.
SESSION_S = 0.12e-6
# Limits for the floor of work on one stream. A value outside them is not a floor: the records and
# the events saw different work.
# The floors seen on an H200 were between 1.3 µs (a fill of 4 kB) and 7.9 µs (pinned copies):
# docs/floor.md.
_LEAST_S, _MOST_S = 0.5e-6, 9e-6
# How much the floor of one kernel, and of several kernels with their pauses, differs between two
# batches of calls; and by which share of the work two batches a tenth of a second apart differ.
# On an H200, nine of ten differ by less.
_ERROR_S, _ERROR_OF_SEVERAL_S = 0.15e-6, 0.5e-6
_DRIFT = 0.005

# Calls whose records are complete, and what a pair of events read for each.
RecordedCalls = list[tuple[Records, float]]

# Devices whose driver gave no records. They would give none the next time either.
_refused: set[int] = set()


def can_record() -> bool:
    """Return whether the floor of some work can be found from records on the GPU in use.

    False on a virtual GPU, whose floor is known, and if CUPTI could not be detached afterwards.
    """
    if device.current().virtual is not None or torch.cuda.current_device() in _refused:
        return False
    return leaves_no_trace()


def record_calls(work: Work, *, before: Work | None = None) -> RecordedCalls:
    """Return the records of 12 more calls of some work, which :func:`work_floor` needs.

    ``before`` is called before each sample, with and without the profiler. `ProfilerBusyError` or
    `ProfilerUnavailableError` if the driver gives no records, or too few.
    """
    try:
        calls = read_calls(work, n_samples=_N_CALLS, before=before)
    except ProfilerUnavailableError:
        _refused.add(torch.cuda.current_device())
        raise
    whole = [(call, reading_s) for call, reading_s in calls if _is_whole(call)]
    if len(whole) < _N_LEAST:
        raise ProfilerUnavailableError(
            f"the profiler gave complete records of {len(whole)} of {len(calls)} calls, which is "
            'too few; measure without them: floor="device"'
        )
    return whole


def work_floor(calls: RecordedCalls, readings_s: list[float]) -> Floor:
    """Return the floor of some work, from the driver's records of it.

    The floors of kernels differ by up to 0.5 µs on an H200. For a single kernel, the floor is the
    difference between what events read, without the profiler, and its record. For several kernels
    the profiler makes the pauses longer, so the floor is the difference between what events read
    in the profiler's session and the span of the records in the same session. With this floor,
    times by events agree with the driver's records on average. How far the records are from the
    truth is not known. `ProfilerUnavailableError` if records and events did not see the same work,
    for example work on another stream.
    """
    spans_s = [call.span_s for call, _ in calls]
    inside_s = [reading_s - call.span_s - SESSION_S for call, reading_s in calls]
    outside_s = median(readings_s) - median(spans_s)
    # A single kernel has no pauses that the session could stretch, so the readings without the
    # profiler can be used, which do not contain the session's own 0.12 µs.
    is_one = all(call.n_records == 1 for call, _ in calls)
    if is_one and abs(outside_s - median(inside_s)) <= _SLOWED_S:
        value_s, varying_s, error_s = outside_s, spans_s, _ERROR_S
    else:
        value_s, varying_s, error_s = median(inside_s), inside_s, _ERROR_OF_SEVERAL_S
    if not _LEAST_S <= value_s <= _MOST_S:
        raise ProfilerUnavailableError(
            f"the records leave {value_s / _NS:.0f} ns for the floor, so they do not show the "
            'work that the events timed; measure without them: floor="device"'
        )
    low_s, high_s = median_interval(varying_s)
    aside_s = math.hypot((high_s - low_s) / 2, error_s, _DRIFT * median(readings_s))
    return Floor(
        value_s=value_s,
        low_s=value_s - aside_s,
        high_s=value_s + aside_s,
        method="work",
        device_name=device.current().name,
        n_samples=len(calls),
    )


def _is_whole(call: Records) -> bool:
    return call.n_records > 0 and not call.dropped
