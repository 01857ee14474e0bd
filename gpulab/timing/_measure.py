"""``measure``: warm up, take samples until the median is precise enough, and report doubts.

The samplers are listed in :mod:`gpulab.timing._methods`; :mod:`gpulab.timing._run` holds the state
of one run. This module drives a run from its start to its end.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Never

from gpulab import device
from gpulab.core.progress import Bar
from gpulab.core.requirements import COUNT, FLAG, FUNCTION, TEXT
from gpulab.core.tracebacks import UsersTraceback
from gpulab.device.measurement import Measurement
from gpulab.device.work import Work, check_callable
from gpulab.timing._event_pairs import EVENT_RESOLUTION_S
from gpulab.timing._isolation import left_as_found
from gpulab.timing._options import (
    DEFAULTS,
    MeasurementOptions,
    amount_for,
    as_work,
    refuse_arguments,
    refuse_unknown,
)
from gpulab.timing._real_time import RealTime
from gpulab.timing._run import MeasurementRun
from gpulab.timing._stopping import StoppingRule, take_in_turns

__all__ = ["measure", "take_samples"]


_N_LEAST = 10  # the precision is not checked before this many samples
_BATCH_S = 0.1  # longest batch; an interrupt loses the samples of the batch that it stops
# The floor itself is uncertain by more than this, so a narrower interval would add nothing.
_RESOLUTION_S = 0.1e-6
# Two batches. Events read up to 0.2 µs more or less from batch to batch, so the floor is compared
# with samples from both sides of the records.
_N_AFTER_RECORDS = 12  # samples taken once the driver has recorded calls of the work


def measure(  # noqa: PLR0913  # every option is keyword-only and has a default
    work: Callable[..., object],
    *arguments: Never,
    method: str = DEFAULTS.method,
    cache: str | None = DEFAULTS.cache,
    flush: str = DEFAULTS.flush,
    floor: str = DEFAULTS.floor,
    setup: Work | None = DEFAULTS.setup,
    inputs: Sequence[Sequence[object]] | None = None,
    n_samples: int | None = DEFAULTS.n_samples,
    n_warmup: int | None = DEFAULTS.n_warmup,
    inner_loops: int = DEFAULTS.inner_loops,
    precision: float = DEFAULTS.precision,
    max_time_s: float = DEFAULTS.max_time_s,
    flops: Callable[..., float] | float | str | None = DEFAULTS.flops,
    size_bytes: Callable[..., float] | float | None = DEFAULTS.size_bytes,
    label: str = "",
    progress: bool = True,
    **unknown: Never,
) -> Measurement:
    """Return how long GPU work takes, timed by a named method until the median is precise enough.

    Methods time different things, and not every method times the GPU alone: see
    :data:`gpulab.timing.METHODS`, and read the findings. The interval says how much the median
    would change if you repeated the run here and now. It does not say how far the median is from
    the true time.

    The default method, ``"calibrated"``, times from the start of the first kernel to the end of
    the last. It includes the pauses between kernels. It does not include the launches by Python,
    because the host enqueues all of them before the GPU starts.

    Parameters
    ----------
    work
        A function that enqueues the work. It takes no arguments unless you pass ``inputs``. It is
        called ``n_warmup + n_samples * inner_loops`` times. Samples for which the host was too
        slow are repeated, and without ``n_samples`` the work is called 12 more times to find its
        floor. The method ``"graph"`` calls it only while it captures the graph.
    method
        A name from :data:`gpulab.timing.METHODS`.
    cache
        ``"cold"``: the L2 cache is filled with other data before each sample. ``"hot"``: it
        contains what the previous call left. None: the default of the method, which is cold for
        ``"calibrated"``.
    flush
        How to make the cache cold. ``"read"`` reads a buffer larger than the L2, which leaves the
        cache cold and clean. ``"write"`` fills it with zeros, as other tools do: half of it must
        then be written back.
    floor
        Which floor ``"calibrated"`` subtracts. ``"work"``: the floor of this work, found from the
        driver's records of 12 more calls. ``"device"``: the floor of a typical kernel on this GPU,
        found without a profiler. The device's floor is also used if the driver gives no
        records, if a call takes more than a millisecond, and if you pass ``n_samples``.
    setup
        Called before each sample and not timed, e.g. to restore an input that the work
        changes in place. What it enqueues goes to the current stream.
    inputs
        Arguments for the work, one tuple per call, used in rotation. Use several to keep inputs
        out of the cache, or to vary the data from call to call.
    n_samples
        How many samples to take. None: at least 10, and more until the 95 % interval of the
        median is within ``precision``, within one tick of the clock or, if a floor is subtracted,
        within 0.1 µs; or until ``max_time_s`` has passed. Ctrl-C ends the sampling, and you get
        the samples before it, with or without a number.
    n_warmup
        Calls before the first sample. None: until their times are steady, at most 100 calls or
        ``max_time_s``, and one more. If there are 2 or more, the GPU sleeps during the last one,
        which shows whether the work waits for the GPU inside its call, and how much memory it
        needs; PyTorch's peak of memory begins anew there.
    inner_loops
        Calls in each timed interval; with more than one the cache is hot.
    precision
        Stop when half the width of the interval is at most this share of the median.
    max_time_s
        When to stop sampling, in seconds, if ``n_samples`` is not given. On a virtual GPU this is
        virtual time, and also the most real time for warm-up and samples together, but at least
        two seconds. If that ends them, a finding says so, and what a call takes in real time.
    flops, size_bytes
        Floating-point operations of one call, and the least number of bytes that it must move: a
        number, or a function of the ``inputs``, such as ``size_bytes=lambda x: 2 * x.nbytes``. The
        result then has FLOP/s and bytes per second beside the limits of the data sheet, and a
        finding says when it is faster than this GPU can be. With ``flops="auto"`` PyTorch counts
        those of matmuls, convolutions and attention in one more call.
    label
        A name for the result.
    progress
        Whether to show a bar (in text) after one second of real time, from the warm-up on.

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

    An exception of the work itself reaches you unchanged, with a note that says when it was
    raised. If samples were taken before it, the error has them in its attribute ``partial``, a
    Measurement whose ``stopped_by`` is ``"error"``.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(1024, 1024, device="cuda")
    ...     record = gpulab.measure(lambda: a + a, label="addition")
    >>> record.method, record.conditions.cache, record.stopped_by
    ('calibrated', 'cold', 'precision')
    """
    with UsersTraceback():
        refuse_unknown(measure, unknown)
        refuse_arguments(work, arguments)
        # Every argument is checked before the GPU is touched.
        timed = as_work(work, inputs)
        options = MeasurementOptions(
            method=method,
            cache=cache,
            flush=flush,
            floor=floor,
            setup=setup,
            n_samples=n_samples,
            n_warmup=n_warmup,
            inner_loops=inner_loops,
            precision=precision,
            max_time_s=max_time_s,
            flops=amount_for("flops", flops, inputs),
            size_bytes=amount_for("size_bytes", size_bytes, inputs),
        )
        TEXT.check(label=label)
        FLAG.check(progress=progress)
        with device.active():
            bar = Bar(desc="warming up", unit=" calls", disable=not progress)
            with left_as_found(), bar:
                real_time = RealTime(options.max_time_s)
                run = MeasurementRun.prepare(
                    timed, options, real_time=real_time, bar=bar, keeps_partial=True
                )
                bar.count("measuring", " samples", total=options.n_samples)
                _sample(run, label=label)
            # The record comes last: reading the driver takes time, and clocks sink while it does.
            return run.measurement(label=label)


def _sample(run: MeasurementRun, *, label: str) -> None:
    """Take the samples of a run, then its floor, the clocks and a few samples on a cold cache."""
    run.read_clocks_before()
    with _partial_kept(run, label):
        with run.counting_allocations():
            _, run.stopped_by = take_in_turns(
                [run.take],
                _rule(run),
                count=lambda: len(run.samples.values_s),
                judged=lambda: run.samples.values_s,
                n_next=lambda n_taken, elapsed_s: _n_next(run, n_taken, elapsed_s),
            )
        run.update_floor(n_more=_N_AFTER_RECORDS)
    # Before the cold samples, which the record does not contain and whose flushes change the
    # power.
    run.read_clocks_after()
    run.take_cold_samples()


def _rule(run: MeasurementRun) -> StoppingRule:
    return StoppingRule(
        options=run.options,
        n_least=_N_LEAST,
        resolution=0.0 if run.floor is None else _RESOLUTION_S,
        coarsest_tick=EVENT_RESOLUTION_S,
        real_time=run.real_time,
    )


def _n_next(run: MeasurementRun, n_taken: int, elapsed_s: float) -> int:
    """Return how many samples to take before the stopping rule is checked again."""
    options, call_s = run.options, run.warm_up.call_s
    # Each check sorts all samples. Batches grow with the samples, so that the checks stay cheap.
    if options.n_samples is None:
        n_wanted = max(_N_LEAST, n_taken // 4) if n_taken >= _N_LEAST else _N_LEAST - n_taken
    else:
        n_wanted = options.n_samples - n_taken
    if n_taken:
        sample_s: float | None = elapsed_s / n_taken
    else:
        sample_s = None if call_s is None else call_s * options.inner_loops
    # Without a warm-up the time of a sample is unknown, so the first batch has one sample.
    n_in_time = int(_BATCH_S / sample_s) if sample_s else 1
    n_batch = max(1, min(n_wanted, n_in_time))
    if options.n_samples is not None:
        return n_batch
    return run.real_time.fitting(n_batch, run.sample_real_s)


@contextmanager
def _partial_kept(run: MeasurementRun, label: str) -> Iterator[None]:
    """Attach the samples taken before the work failed to its error, as ``error.partial``."""
    try:
        yield
    except Exception as error:
        run.stopped_by = "error"
        # After a CUDA error every call to the device fails, and some error classes (such as frozen
        # dataclasses) refuse a new attribute. Neither may hide the error of the work.
        with suppress(Exception):
            if run.samples.values_s:
                error.partial = run.measurement(label=label)  # type: ignore[attr-defined]  # a new one
        raise


def take_samples(
    method: str,
    work: Work,
    *,
    n_samples: int,
    inner_loops: int = 1,
    before: Work | None = None,
) -> list[float]:
    """Return samples by one method as they are read: without warm-up, floor or findings.

    They are in seconds per call of ``work``. ``before`` is called before each sample and not
    timed: a cache flush, a setup. Raises `UnknownNameError` if there is no such method,
    `NotCapturableError` if ``"graph"`` cannot capture the work, and `ProfilerBusyError` or
    `ProfilerUnavailableError` if the method reads the driver's records and there are none.
    """
    COUNT.check(n_samples=n_samples)
    options = MeasurementOptions(method=method, n_samples=n_samples, inner_loops=inner_loops)
    cure = "pass a function: take_samples('events', lambda: a @ b, n_samples=9)"
    check_callable("work", work, cure)
    FUNCTION.or_none.check(before=before)
    sampler = options.timing_method.sampler(work, inner_loops=inner_loops, before=before)
    return sampler(n_samples)
