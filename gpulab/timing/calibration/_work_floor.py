"""The floor: how much events read too much, and how it is found from records of the work itself.

The floors of kernels differ, so the work's own is the most accurate.
"""

import math
from dataclasses import dataclass, replace
from statistics import median

import torch

from gpulab import device
from gpulab.errors import ProfilerUnavailableError
from gpulab.profiling import Records, leaves_no_trace
from gpulab.stats import median_interval
from gpulab.timing._profiler import read_calls
from gpulab.work import Work


@dataclass(frozen=True, slots=True)
class Floor:
    """How much a pair of events reads too much.

    Attributes
    ----------
    value_s
        Seconds to subtract from the reading of a pair round kernels.
    low_s, high_s
        Its 95 % interval. The floors of single kernels differ, and lie within it.
    method
        How it was found: ``"work"``, by records of the very work; ``"profiler"``, ``"timer"``
        or ``"assumed"``, by other kernels on the device; ``"records"``, on a virtual GPU.
    device_name
        As the driver reports it.
    n_samples
        Readings that it is the median of.

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
        """Return the mean of this floor and one that was read later, and the wider interval."""
        value_s = (self.value_s + later.value_s) / 2
        aside_s = max(self.high_s - self.low_s, later.high_s - later.low_s) / 2
        return replace(
            self,
            value_s=value_s,
            low_s=value_s - aside_s,
            high_s=value_s + aside_s,
            n_samples=self.n_samples + later.n_samples,
        )


_N_CALLS = 12
_N_LEAST = 6
_NS = 1e-9
# Where the profiler slows the kernel itself, its record says nothing of how long it takes without:
# on an H200 one of 38, a softmax, was 5 µs longer in session, and no other by more than this.
_SLOWED_S = 1.5e-6
# What a pair of events reads more in session than out of it, on an H200: see docs/floor.md.
SESSION_S = 0.12e-6
# Where the floor of work on one stream may lie; outside of it something else was seen.
_LEAST_S, _MOST_S = 0.5e-6, 9e-6
# How far the floor of one kernel, and of several with their pauses, moves from one batch of calls
# to the next, and by which share of the work two batches a tenth of a second apart differ:
# nine of ten on an H200.
_ERROR_S, _ERROR_OF_SEVERAL_S = 0.15e-6, 0.5e-6
_DRIFT = 0.005

# Calls with all of their records, and what events read of each.
RecordedCalls = list[tuple[Records, float]]

# Devices whose driver gave no records: it would give none the next time.
_refused: set[int] = set()


def can_record() -> bool:
    """Tell whether the floor of some work may be read on the GPU in use.

    Not on a virtual one, whose floor is known; nor where CUPTI cannot be taken out again.
    """
    if device.current().virtual is not None or torch.cuda.current_device() in _refused:
        return False
    return leaves_no_trace()


def forget_refusals() -> None:
    """Ask for records again, of devices that gave none."""
    _refused.clear()


def record_calls(work: Work, *, before: Work | None = None) -> RecordedCalls:
    """Call some work a dozen times more, and return what :func:`work_floor` needs.

    Parameters
    ----------
    work
        Enqueues the work.
    before
        What goes ahead of each sample, as it does without the profiler; None where nothing does.

    Raises
    ------
    ProfilerBusyError, ProfilerUnavailableError
        If the driver gives no records, or too few.
    """
    try:
        calls = read_calls(work, n_samples=_N_CALLS, before=before)
    except ProfilerUnavailableError:
        _refused.add(torch.cuda.current_device())
        raise
    whole = [(call, reading_s) for call, reading_s in calls if _is_whole(call)]
    if len(whole) < _N_LEAST:
        raise ProfilerUnavailableError(
            f"the profiler kept the records of {len(whole)} of {len(calls)} calls, which is too "
            'few; measure without them: floor="device"'
        )
    return whole


def work_floor(calls: RecordedCalls, readings_s: list[float]) -> Floor:
    """Return the floor of some work, from records of it.

    What events read beyond the kernel differs from kernel to kernel, by up to 0.5 µs on an H200.
    One kernel's floor is what the readings are more than its record. Of several kernels the
    profiler stretches the pauses, so theirs is what events read in the profiler's session more
    than the span of the records there. It makes the readings agree with the driver's records on
    the whole; it does not tell how far those are from the truth.

    Parameters
    ----------
    calls
        From :func:`record_calls`.
    readings_s
        What events read of other calls of the work, without the profiler.

    Raises
    ------
    ProfilerUnavailableError
        If records and readings are not of the same: of work on another stream, for one.
    """
    spans_s = [call.span_s for call, _ in calls]
    inside_s = [reading_s - call.span_s - SESSION_S for call, reading_s in calls]
    outside_s = median(readings_s) - median(spans_s)
    is_one = all(call.n_records == 1 for call, _ in calls)
    if is_one and abs(outside_s - median(inside_s)) <= _SLOWED_S:
        value_s, varying_s, error_s = outside_s, spans_s, _ERROR_S
    else:
        value_s, varying_s, error_s = median(inside_s), inside_s, _ERROR_OF_SEVERAL_S
    if not _LEAST_S <= value_s <= _MOST_S:
        raise ProfilerUnavailableError(
            f"the records leave {value_s / _NS:.0f} ns for the floor, so they are of something "
            'else than what the events read; measure without them: floor="device"'
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
