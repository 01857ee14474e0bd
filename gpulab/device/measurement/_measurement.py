"""The record of a timing run: its samples, how they were taken, and its findings."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, ClassVar

from gpulab.core.errors import EmptyMeasurementError, InvalidOptionError
from gpulab.core.foreign_text import visible
from gpulab.core.markup import PrettyPrinter
from gpulab.core.requirements import (
    COUNT,
    COUNT_OR_ZERO,
    DIGITS,
    NOT_NEGATIVE,
    check_fields,
    check_not_negative,
    instance_of,
    items_of,
)
from gpulab.core.serialization import Saved
from gpulab.core.units import format_bytes, format_estimate, format_interval, format_time
from gpulab.device.measurement._conditions import Conditions, Finding
from gpulab.device.measurement._html import Distribution, to_html
from gpulab.device.measurement._rates import NO_COUNTS, Counts, Rate, rates_of
from gpulab.gpus import Roof
from gpulab.gpus.provenance import check_source, device_label
from gpulab.stats import median_interval, robust_spread

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Measurement"]


_CONFIDENCE = 0.95
_SAMPLES = instance_of(tuple, "a tuple of samples, each a finite number of seconds")
_ROOF = instance_of(Roof, "a roof, such as roofline.measure_ceilings().measured")
# How the floor was found, by the name of its method; the text follows "known within 0.1 µs".
_FLOORS = {
    "work": " from the driver's records of this work",
    "timer": " from a kernel that reads the device's clock",
    "profiler": " from the driver's records of a small kernel",
    "assumed": " from a small kernel and what it takes on an H200",
    "records": " from the model",
}
# With fewer samples, even the range of all of them contains the median with less than 95 %
# confidence: 1 - 2 * 0.5**5 is 93.75 %.
_MIN_FOR_INTERVAL = 6
_DIGITS = 3  # significant digits of a printed time
_BINDS = 0.5  # a smaller share of a limit is said to have another cause


@dataclass(frozen=True, slots=True)
class Measurement(Saved):
    """The samples of one piece of work, how they were taken, and reasons to doubt them.

    Attributes
    ----------
    samples_s
        One entry per sample, in seconds per call, in the order taken; never empty. A sample
        is the mean over ``inner_loops`` calls, so the spread of single calls is larger.
    method
        Name of the timing method, e.g. ``"events"``.
    source
        ``"measured"`` on a device here, ``"recorded"`` on a device elsewhere, or ``"virtual"``:
        computed by a model and not measured.
    conditions
        Where and when the samples were taken.
    findings
        Reasons to doubt the result. If empty, none of the checks found one; others may exist.
    inner_loops
        Calls in each timed interval.
    n_warmup
        Calls before the first interval.
    label
        Name of the work, free text.
    stopped_by
        Why sampling ended, e.g. ``"n_samples"``, ``"precision"``, ``"interrupt"``.
    floor_s, floor_error_s
        What was subtracted from each timed interval because events read it even without work,
        and how far that may be off; both are 0 if nothing was subtracted.
    floor_method
        How the floor was found: ``"work"``, from the driver's records of this work; ``"timer"``,
        ``"profiler"`` or ``"assumed"``, from another kernel; ``"records"``, on a virtual GPU;
        empty if nothing was subtracted.
    flagged
        Indices of samples that were taken in another clock regime than most.
    launch_s
        Seconds that Python needs per call, if a loop of this work runs at the pace of the host
        because the GPU is done before the next launch; otherwise 0.
    counts
        Floating-point operations and bytes of one call, if they are known.
    peak_bytes
        The most memory that PyTorch's allocator had in use during a call, in bytes beyond what was
        in use before it; None without at least two warm-up calls.

    Raises
    ------
    EmptyMeasurementError
        If there are no samples.
    InvalidOptionError
        If a time is negative or not finite, a count is too small, or ``flagged`` has an index
        without a sample.
    UnknownNameError
        If the source is not one of the three.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     result = gpulab.measure(lambda: a @ a, n_samples=5, label="matmul")
    >>> result.n_samples, result.method, result.conditions.cache
    (5, 'calibrated', 'cold')
    >>> low_s, high_s = result.interval_s
    >>> low_s <= result.median_s <= high_s
    True
    """

    schema: ClassVar[str] = "gpulab.measurement/1"

    samples_s: tuple[float, ...]
    method: str
    source: str
    conditions: Conditions
    findings: tuple[Finding, ...] = ()
    inner_loops: int = 1
    n_warmup: int = 0
    label: str = ""
    stopped_by: str = "n_samples"
    floor_s: float = 0.0
    floor_error_s: float = 0.0
    floor_method: str = ""
    flagged: tuple[int, ...] = ()
    launch_s: float = 0.0
    counts: Counts = NO_COUNTS
    peak_bytes: int | None = None

    def __post_init__(self) -> None:
        check_source(self.source)
        _SAMPLES.check(samples_s=self.samples_s)
        if not self.samples_s:
            raise EmptyMeasurementError(
                "samples_s is empty; a Measurement needs at least one sample"
            )
        # A single nan would make the median, and each comparison with it, silently wrong.
        items_of("samples_s", self.samples_s, NOT_NEGATIVE)
        check_fields(self)
        COUNT.check(inner_loops=self.inner_loops)
        COUNT_OR_ZERO.check(n_warmup=self.n_warmup)
        NOT_NEGATIVE.check(floor_s=self.floor_s, floor_error_s=self.floor_error_s)
        NOT_NEGATIVE.check(launch_s=self.launch_s)
        check_not_negative(self, "peak_bytes")
        items_of("flagged", self.flagged, COUNT_OR_ZERO)
        for index in self.flagged:
            if index >= len(self.samples_s):
                raise InvalidOptionError(
                    f"flagged has {index}; it must be the index of a sample, from 0 to "
                    f"{len(self.samples_s) - 1}"
                )

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.samples_s)

    @property
    def median_s(self) -> float:
        """Median of the samples, in seconds per call; half of the samples took longer."""
        return median(self.samples_s)

    @property
    def interval_s(self) -> tuple[float, float]:
        """95 % interval of the median, in seconds; see :func:`gpulab.stats.median_interval`.

        It includes the uncertainty of the floor, as an independent error. With fewer than 6
        samples it is (smallest, largest), and its confidence is below 95 %. Single samples may lie
        outside it, and so may the median under other conditions.
        """
        low_s, high_s = median_interval(self.samples_s, _CONFIDENCE)
        # Without it the ends stay exactly two of the samples, without any rounding.
        if not self.floor_error_s:
            return low_s, high_s
        # Independent errors add as squares. The floor was subtracted once per timed interval, so
        # a call has its share of the error.
        centre_s, floor_error_s = self.median_s, self.floor_error_s / self.inner_loops
        return (
            max(0.0, centre_s - math.hypot(centre_s - low_s, floor_error_s)),
            centre_s + math.hypot(high_s - centre_s, floor_error_s),
        )

    @property
    def spread_s(self) -> float:
        """Robust spread of the single samples, in seconds; it is not the error of the median."""
        return robust_spread(self.samples_s)

    @property
    def rates(self) -> tuple[Rate, ...]:
        """FLOP/s and bytes per second beside the data sheet's limits, if the counts are known.

        Examples
        --------
        >>> import torch, gpulab
        >>> with gpulab.virtual_gpu("H200"):
        ...     a = torch.ones(4096, 4096, device="cuda")
        ...     result = gpulab.measure(lambda: a @ a, flops="auto")
        >>> result.counts.flops == 2 * 4096**3, result.rates[0].limit_name
        (True, 'float32 peak')
        """
        return self._rates_under(None)

    def rates_under(self, roof: Roof) -> tuple[Rate, ...]:
        """Return FLOP/s and bytes per second beside the limits of a roof, such as a measured one.

        Examples
        --------
        The share of what good kernels reach on this GPU::

            roof = gpulab.roofline.measure_ceilings().measured
            result.rates_under(roof)

        >>> import torch, gpulab
        >>> with gpulab.virtual_gpu("H200"):
        ...     a = torch.ones(1 << 24, device="cuda")
        ...     result = gpulab.measure(lambda: a + a, size_bytes=3 * 4 * 2**24)
        >>> recorded = gpulab.recordings.load("h200-sxm-2026-11")
        >>> roof = gpulab.roofline.ceilings_of(recorded).measured
        >>> result.rates_under(roof)[0].basis
        'measured'
        """
        _ROOF.check(roof=roof)
        return self._rates_under(roof)

    def _rates_under(self, roof: Roof | None) -> tuple[Rate, ...]:
        times_s = (self.median_s, *self.interval_s)
        at = self.conditions
        return tuple(rates_of(times_s, at.device_name, self.counts, at.clock_after_mhz, roof))

    @property
    def binding(self) -> Rate | None:
        """The rate that is nearest to its limit, or None without a limit.

        The limit bounds the work only if its share is large; a small share has another cause.

        Examples
        --------
        >>> import torch, gpulab
        >>> with gpulab.virtual_gpu("H200"):
        ...     a = torch.ones(1 << 24, device="cuda")
        ...     result = gpulab.measure(lambda: a + a, flops=2**24, size_bytes=2 * 4 * 2**24)
        >>> result.binding.limit_name
        'memory bandwidth'
        """
        limited = [rate for rate in self.rates if rate.share is not None]
        return max(limited, key=lambda rate: rate.share or 0.0, default=None)

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row per sample.

        Columns are ``sample`` (its index), ``duration_s``, ``method``, ``source``,
        ``device_name`` and ``label``.
        """
        import pandas as pd

        table = pd.DataFrame({"sample": range(self.n_samples), "duration_s": self.samples_s})
        return table.assign(
            method=visible(self.method),
            source=self.source,
            device_name=visible(self.conditions.device_name),
            label=visible(self.label),
        )

    def line(self, digits: int = _DIGITS) -> str:
        """Return the result in one line, with ``digits`` significant digits."""
        DIGITS.check(digits=digits)
        return visible(f"{self._estimate(digits)} ({self._remark(digits)})")

    def __str__(self) -> str:
        notes = (f"  note: {finding.brief()}" for finding in self.findings)
        return "\n".join([self.line(), *self.rate_lines(), *notes])

    __repr__ = __str__

    def _repr_pretty_(self, printer: PrettyPrinter, _cycle: object) -> None:
        printer.text("\n".join([self.line(), *self.rate_lines(), *map(str, self.findings)]))

    def rate_lines(self) -> Iterator[str]:
        """Yield the throughput in lines: rates, the nearest limit, and the memory of a call."""
        rates = self.rates
        yield from (visible(f"  {rate}") for rate in rates)
        nearest = self.binding
        if nearest is not None and len(rates) > 1 and (nearest.share or 0) >= _BINDS:
            yield f"  the {nearest.limit_name} binds: no other limit is so near"
        elif nearest is not None and len(rates) > 1:
            yield f"  no limit is near: the {nearest.limit_name} alone does not explain the time"
        # Beside a throughput, because both say what a call needs; elsewhere it is in the table.
        if rates and self.peak_bytes is not None:
            yield f"  {format_bytes(self.peak_bytes)} of memory at most"

    def _repr_html_(self) -> str:
        shown = Distribution(
            self.samples_s,
            self.median_s,
            self.interval_s,
            self._interval_name(),
            device_label(self.conditions.device_name, self.source),
        )
        # Plain values, so that the module that writes HTML needs no record.
        findings = [(finding.code, str(finding)) for finding in self.findings]
        return to_html(
            self._estimate(_DIGITS),
            self._remark(_DIGITS),
            shown,
            facts=self._facts(),
            findings=findings,
        )

    def _estimate(self, digits: int) -> str:
        name = f"{' '.join(self.label.split())}: " if self.label.strip() else ""
        return f"{name}{format_estimate(self.median_s, *self.interval_s, digits)} per call"

    def _remark(self, digits: int) -> str:
        return "; ".join([self._statistic(digits), ", ".join(self._how()), *self._pace()])

    def _statistic(self, digits: int) -> str:
        """Return what the printed numbers are, e.g. ``"median, 95 % interval of 40"``."""
        # If both ends round to the median, format_estimate prints no interval.
        if format_estimate(self.median_s, *self.interval_s, digits).endswith("]"):
            return f"median, {self._interval_name()} of {self.n_samples}"
        return f"median of {self.n_samples}, {self._interval_name()} within the last digit"

    def _pace(self) -> Iterator[str]:
        if self.launch_s:
            yield f"launch-bound: {format_time(self.launch_s)} of Python per call"
        yield self._where()

    def _how(self) -> Iterator[str]:
        yield self.method
        yield f"{self.conditions.cache} cache"
        if self.n_warmup == 0:
            yield "no warm-up"
        if self.floor_s:
            yield f"floor {format_time(self.floor_s)} subtracted"

    def _where(self) -> str:
        clock_mhz = self.conditions.clock_after_mhz
        clock = "" if clock_mhz is None else f" at {clock_mhz} MHz"
        return f"{device_label(self.conditions.device_name, self.source)}{clock}"

    def _interval_name(self) -> str:
        return "range" if self.n_samples < _MIN_FOR_INTERVAL else "95 % interval"

    def _facts(self) -> Iterator[tuple[str, str]]:
        at = self.conditions
        yield "median", format_time(self.median_s)
        yield self._interval_name(), format_interval(*self.interval_s)
        yield "smallest, largest", format_interval(min(self.samples_s), max(self.samples_s))
        yield "robust spread", format_time(self.spread_s)
        yield "samples", f"{self.n_samples}, stopped by {self.stopped_by}"
        yield "calls in each sample", str(self.inner_loops)
        yield "warm-up calls", str(self.n_warmup)
        yield "method, cache", f"{self.method}, {at.cache}"
        if self.launch_s:
            yield "Python per call", f"{format_time(self.launch_s)}: launch-bound in a loop"
        if self.floor_s:
            error_s = self.floor_error_s
            accuracy = f"known within {format_time(error_s)}" if error_s else "known exactly"
            source = _FLOORS.get(self.floor_method, "")
            yield "floor subtracted", f"{format_time(self.floor_s)}, {accuracy}{source}"
        for rate in self.rates:
            yield "throughput", str(rate)
        if self.peak_bytes is not None:
            yield "memory of a call", f"{format_bytes(self.peak_bytes)} at most"
        yield "GPU, source", f"{at.device_name}, {self.source}"
        yield "clock before, after", _both(at.clock_before_mhz, at.clock_after_mhz, "MHz")
        yield "power before, after", _both(at.power_before_w, at.power_after_w, "W")
        yield (
            "temperature before, after",
            _both(at.temperature_before_c, at.temperature_after_c, "°C"),
        )
        yield "regime", ", ".join([at.regime, *at.throttle_reasons])
        yield (
            "torch, CUDA, driver",
            ", ".join(
                version or "none"
                for version in (at.torch_version, at.cuda_version, at.driver_version)
            ),
        )
        yield "Python, gpulab", f"{at.python_version}, {at.gpulab_version}"
        yield "taken at", at.taken_at


def _both(before: float | None, after: float | None, unit: str) -> str:
    if before is None and after is None:
        return "not read"
    return ", ".join(
        "not read" if value is None else f"{value:.0f} {unit}" for value in (before, after)
    )
