"""Warm up, take samples until the answer is precise enough, and say what to doubt.

The rungs in :mod:`gpulab.timing` take the samples. This module puts the parts of a measurement
together and hands the process back as it found it.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from statistics import median
from typing import Never

import torch

from gpulab import clocks, device
from gpulab.errors import ProfilerBusyError, ProfilerUnavailableError
from gpulab.measurement import Measurement
from gpulab.timing import calibration
from gpulab.timing._assemble import RunObservations, least_time
from gpulab.timing._isolation import left_as_found, watched
from gpulab.timing._methods import METHODS, Method, Sampler
from gpulab.timing._options import MeasurementOptions, make_options, refuse_unknown
from gpulab.timing._sampling import Run, kept, sample
from gpulab.timing._saturated import Saturated
from gpulab.timing._warmup import WarmUp, warm_up
from gpulab.timing.calibration import Floor
from gpulab.work import Work

__all__ = ["measure"]


_RESOLUTION_S = 0.1e-6
_N_COLD = 5  # samples that show whether a hot reading was the cache's
_N_BEHIND = 12  # samples behind the records
_OWN_BELOW_S = 1e-3  # of longer work an error of the floor is no twentieth of a percent


def measure(  # noqa: PLR0913  # every option is keyword-only and has a default
    work: Callable[..., object],
    *,
    method: str = "calibrated",
    cache: str | None = None,
    flush: str = "read",
    floor: str = "work",
    setup: Work | None = None,
    inputs: Sequence[Sequence[object]] | None = None,
    n_samples: int | None = None,
    n_warmup: int | None = None,
    inner_loops: int = 1,
    precision: float = 0.01,
    max_time_s: float = 1.0,
    flops: float | None = None,
    size_bytes: float | None = None,
    label: str = "",
    progress: bool = True,
    **unknown: Never,
) -> Measurement:
    """Time GPU work by a named method, until the answer is precise enough.

    The number is what the method reads, which is not always the time on the GPU: see
    :data:`gpulab.timing.METHODS`, and read the findings. Its interval tells how far
    repeating the run here and now would move it, not how far it is from the truth.

    The default, ``"calibrated"``, reads from the start of the first kernel to the end of the
    last, so that the pauses between kernels count; launches by Python do not, as the host is
    ahead of the GPU.

    Parameters
    ----------
    work
        A function that enqueues the work; of no arguments, unless ``inputs`` are given. It is
        called ``n_warmup + n_samples * inner_loops`` times, again where the host was too slow
        for a sample to count, and a dozen times more for its floor if ``n_samples`` is not
        given; ``"graph"`` calls it while it captures, and then replays.
    method
        A name of :data:`gpulab.timing.METHODS`.
    cache
        ``"cold"``: before each sample the L2 is filled with other data. ``"hot"``: it holds
        what the call before left. None: as the method has it, cold for ``"calibrated"``.
    flush
        How a cold cache is made; a name of :data:`gpulab.timing.FLUSHES`.
    floor
        What ``"calibrated"`` takes off: ``"work"``, the floor of this work, from the driver's
        records of a dozen more calls, or ``"device"``, that of a usual kernel on this GPU,
        without any profiler. The device's is taken instead where there are no records, of
        work of more than a millisecond, and where the number of samples was given.
    setup
        Called ahead of each sample and not timed, e.g. to restore an input that the work
        changes in place. What it enqueues goes to the current stream.
    inputs
        Arguments for the work, one tuple for each call, in rotation: the way to keep inputs out
        of the cache, or to vary data from call to call.
    n_samples
        How many samples to take. None: until the 95 % interval of the median lies within
        ``precision``, one tick of the clock or, where a floor is taken off, 0.1 µs (at least 10
        samples), or ``max_time_s`` has passed.
    n_warmup
        Calls before the first sample. None: until they are steady, at most 100 calls or
        ``max_time_s``, and one more. With 2 or more, the last one is made behind a sleep
        of the GPU, which shows whether the work waits inside its call.
    inner_loops
        Calls inside each timed interval; with more than one the cache is hot.
    precision
        Half the width of the interval that is good enough, as a share of the median.
    max_time_s
        When to stop sampling, in seconds, if ``n_samples`` is not given.
    flops, size_bytes
        Floating-point operations of one call, and the bytes that it must move at least. With
        them a reading that no GPU of this kind can reach is told as such.
    label
        A name for the result.
    progress
        Whether to show a bar (in text) after one second.

    Returns
    -------
    Measurement
        At least one sample, in seconds per call, with conditions and findings.

    Raises
    ------
    NotCallableError
        If ``work`` or ``setup`` is not a plain function.
    UnknownNameError
        If the method, the flush or an option does not exist.
    InvalidOptionError
        If an option has a value that cannot be used.
    NotCapturableError
        If the method is ``"graph"`` and the work cannot be captured.
    StreamLeftOpenError
        If ``work`` returns with another current stream or device than it was given.

    What the work itself raises is raised on, with a note that says when it came. If samples
    were taken before, they are in the error's attribute ``partial``, a Measurement that was
    stopped by ``"error"``.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(1024, 1024, device="cuda")
    ...     record = gpulab.measure(lambda: a + a, label="addition")
    >>> record.method, record.conditions.cache, record.stopped_by
    ('calibrated', 'cold', 'precision')
    """
    refuse_unknown(measure, unknown)
    plan = make_options(
        work,
        method=method,
        cache=cache,
        flush=flush,
        floor=floor,
        setup=setup,
        inputs=inputs,
        n_samples=n_samples,
        n_warmup=n_warmup,
        inner_loops=inner_loops,
        precision=precision,
        max_time_s=max_time_s,
    )
    least_s = least_time(flops, size_bytes)
    with device.active():
        with left_as_found():
            outcome = _take(plan, label=label, progress=progress)
        # The record comes last: reading the driver takes time, and clocks sink while it does.
        return outcome.measurement(label=label, least_s=least_s)


def _take(plan: MeasurementOptions, *, label: str, progress: bool) -> RunObservations:
    # What needs memory of its own comes first: made later, it would take the block that the work
    # frees after each call, and the allocator would have to ask the driver for another.
    before_each = plan.before()
    found = floor_for(plan, plan.method, before_each)
    warm = warm_up(plan.work, n_calls=plan.n_warmup, max_time_s=plan.max_time_s)
    method = method_for(plan, warm)
    if method.floor_of is None:  # another one stands in, whose readings have no known floor
        found = None
    take = plan.sampler(method, before_each)
    before = clocks.try_read()
    seen = RunObservations(
        plan=plan, method=method, warm=warm, run=Run(), before=before, floor=found
    )
    n_allocations = count_allocations()
    try:
        sample(
            seen.run,
            plan,
            take,
            call_s=warm.call_s,
            # Far below the floor's own error a narrower interval says nothing.
            resolution_s=0.0 if found is None else _RESOLUTION_S,
            progress=progress,
            reads_clocks=before is not None,
        )
        n_allocations = count_allocations() - n_allocations
        found = later_floor(plan, found, seen.run, before_each, take)
    except Exception as error:
        _keep(seen, label, error)
        raise
    return replace(
        seen,
        after=None if before is None else clocks.try_read(),
        n_starved=getattr(take, "n_starved", 0),
        n_dropped=getattr(take, "n_dropped", 0),
        n_allocations=n_allocations,
        cold_s=_cold_s(plan, found, method, seen.run),
        floor=found,
    )


def _keep(seen: RunObservations, label: str, error: Exception) -> None:
    """Hang what was measured before the work failed on its error, as ``error.partial``."""
    seen.run.stopped_by = "error"
    # After a CUDA error the device cannot be asked for anything, and some errors take no name.
    with suppress(Exception):
        if seen.run.samples_s:
            error.partial = seen.measurement(label=label, least_s=None)  # type: ignore[attr-defined]  # a new one


def floor_for(plan: MeasurementOptions, method: Method, before: Work) -> Floor | None:
    """Return the floor that a method's samples hold just now, or None if it takes none off."""
    if method.floor_of is None:
        return None
    if _is_own(plan):  # another is read behind the samples; this one stands in if that fails
        return calibration.floor(of=method.floor_of)
    return calibration.device_floor(before, of=method.floor_of)


def later_floor(
    plan: MeasurementOptions,
    found: Floor | None,
    run: Run,
    before: Work,
    more: Sampler | None = None,
) -> Floor | None:
    """Return the floor as it is when all samples are there: the work's own, or the mean.

    For the work's own, ``more`` adds some samples to the run, so that there are some ahead of
    the records and some behind them.
    """
    if found is None or plan.method.floor_of is None:
        return None
    try:
        own = _own_floor(plan, run, before, more)
        # The floor drifts, so that it is the mean of before and after.
        return own or found.joined(calibration.device_floor(before, of=plan.method.floor_of))
    except KeyboardInterrupt:
        run.stopped_by = "interrupt"
        return found


def _own_floor(
    plan: MeasurementOptions, run: Run, before: Work, more: Sampler | None
) -> Floor | None:
    if not _is_own(plan) or run.stopped_by == "interrupt":
        return None
    if median(run.samples_s) > _OWN_BELOW_S:
        return None
    try:
        with watched("while the driver recorded calls", kept(len(run.samples_s))):
            calls = calibration.record_calls(plan.work, before=before)
            if more is not None:
                run.add(more(_N_BEHIND), run.readings[-1])
        return calibration.work_floor(calls, run.samples_s)
    except (ProfilerBusyError, ProfilerUnavailableError):
        return None


def _is_own(plan: MeasurementOptions) -> bool:
    """Tell whether the floor is to be read from records of the work, and can be."""
    is_asked = plan.floor == "work" and plan.method.floor_of == "launches"
    # A number of calls that was asked for is kept to.
    return (
        is_asked and plan.n_samples is None and plan.inner_loops == 1 and calibration.can_record()
    )


def method_for(plan: MeasurementOptions, warm: WarmUp) -> Method:
    """Return the method to take samples by: no sleep gets the host ahead of work that waits."""
    if warm.synchronizes and plan.method.prepared is Saturated:
        return METHODS["events"]
    return plan.method


def count_allocations() -> int:
    """Return how often PyTorch has asked the driver for memory."""
    return int(torch.cuda.memory_stats().get("num_device_alloc", 0))


def _cold_s(
    plan: MeasurementOptions, found: Floor | None, method: Method, run: Run
) -> float | None:
    """Return what a cold call takes, where a hot reading could be the cache's."""
    # A number of calls that was asked for is kept to, and an interrupt ends everything.
    if plan.cache == "cold" or plan.n_samples is not None or run.stopped_by == "interrupt":
        return None
    if found is None or plan.inner_loops > 1:
        return None
    cold_plan = replace(plan, cache="cold")
    cold = cold_plan.sampler(method, cold_plan.before())
    return median(cold(_N_COLD)) - found.value_s
