"""Warm up, take samples until the answer is precise enough, and say what to doubt.

:mod:`gpulab.timing._methods` has what takes the samples, and :mod:`gpulab.timing._run` the life
of one run. This module drives one from its beginning to its end.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Never

from gpulab import device
from gpulab.measurement import Measurement
from gpulab.requirements import FLAG, NOT_NEGATIVE, TEXT
from gpulab.timing._assemble import least_time
from gpulab.timing._event_pairs import EVENT_RESOLUTION_S
from gpulab.timing._isolation import left_as_found
from gpulab.timing._options import DEFAULTS, MeasurementOptions, as_work, refuse_unknown
from gpulab.timing._run import MeasurementRun
from gpulab.timing._stopping import StoppingRule, take_in_turns
from gpulab.work import Work

__all__ = ["measure"]


_N_LEAST = 10  # no precision is claimed before so many samples
_BATCH_S = 0.1  # what an interrupt may lose
# Far below the floor's own error a narrower interval says nothing.
_RESOLUTION_S = 0.1e-6
_N_AFTER_RECORDS = 12  # samples taken once the driver has recorded calls of the work


def measure(  # noqa: PLR0913  # every option is keyword-only and has a default
    work: Callable[..., object],
    *,
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
        them a finding says so if no GPU of this kind can reach the reading.
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
    )
    work = as_work(work, inputs)
    NOT_NEGATIVE.or_none.check(flops=flops, size_bytes=size_bytes)
    TEXT.check(label=label)
    FLAG.check(progress=progress)
    least_s = least_time(flops, size_bytes)
    with device.active():
        with left_as_found():
            run = MeasurementRun.prepare(work, options, keeps_partial=True)
            _sample(run, label=label, progress=progress)
        # The record comes last: reading the driver takes time, and clocks sink while it does.
        return run.measurement(label=label, least_s=least_s)


def _sample(run: MeasurementRun, *, label: str, progress: bool) -> None:
    """Take a run's samples, and what is learnt after them."""
    run.read_clocks_before()
    with _partial_kept(run, label):
        with run.counting_allocations():
            _, run.stopped_by = take_in_turns(
                [run.take],
                _rule(run),
                judged=lambda: run.samples.values_s,
                n_next=lambda n_taken, elapsed_s: _n_next(run, n_taken, elapsed_s),
                progress=progress,
            )
        run.update_floor(n_more=_N_AFTER_RECORDS)
    run.read_clocks_after()
    run.take_cold_samples()


def _rule(run: MeasurementRun) -> StoppingRule:
    return StoppingRule.of_options(
        run.options,
        n_least=_N_LEAST,
        resolution=0.0 if run.floor is None else _RESOLUTION_S,
        coarsest_tick=EVENT_RESOLUTION_S,
    )


def _n_next(run: MeasurementRun, n_taken: int, elapsed_s: float) -> int:
    """Return how many samples to take before looking again."""
    options, call_s = run.options, run.warm_up.call_s
    # Batches grow with the samples, so that sorting them all again stays cheap beside them.
    if options.n_samples is None:
        n_wanted = max(_N_LEAST, n_taken // 4) if n_taken >= _N_LEAST else _N_LEAST - n_taken
    else:
        n_wanted = options.n_samples - n_taken
    if n_taken:
        sample_s: float | None = elapsed_s / n_taken
    else:
        sample_s = None if call_s is None else call_s * options.inner_loops
    n_in_time = int(_BATCH_S / sample_s) if sample_s else 1
    return max(1, min(n_wanted, n_in_time))


@contextmanager
def _partial_kept(run: MeasurementRun, label: str) -> Iterator[None]:
    """Attach what was measured before the work failed to its error, as ``error.partial``."""
    try:
        yield
    except Exception as error:
        run.stopped_by = "error"
        # After a CUDA error the device cannot be asked for anything, and some errors take no name.
        with suppress(Exception):
            if run.samples.values_s:
                error.partial = run.measurement(label=label)  # type: ignore[attr-defined]  # a new one
        raise
