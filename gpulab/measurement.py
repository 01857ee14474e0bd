"""What a timing run leaves behind: frozen records with their samples, conditions and doubts."""

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from statistics import median
from typing import TYPE_CHECKING, ClassVar, Protocol

from gpulab._distribution import Distribution
from gpulab._measurement_html import to_html
from gpulab._schema import Saved
from gpulab._sources import SOURCES, check_source, place
from gpulab._spans import SPAN_KINDS, Span, Timeline
from gpulab.errors import EmptyMeasurementError, InvalidOptionError
from gpulab.stats import median_interval, robust_spread
from gpulab.units import format_estimate, format_interval, format_time

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SOURCES", "SPAN_KINDS", "Conditions", "Finding", "Measurement", "Span", "Timeline"]

_CONFIDENCE = 0.95
_MIN_FOR_INTERVAL = 6  # below it no two samples enclose the median with 95 % confidence


class _Printer(Protocol):
    """What is used of IPython's printer, which has no types of its own."""

    def text(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Finding:
    """A doubt about a measurement, kept with it.

    Attributes
    ----------
    code
        Stable name of the situation, e.g. ``"too-few-samples"``.
    message
        What was seen, with its values.
    advice
        What to do about it.
    """

    code: str
    message: str
    advice: str

    def __str__(self) -> str:
        return f"{self.message}; {self.advice}"


@dataclass(frozen=True, slots=True)
class Conditions:
    """Where and when samples were taken.

    They are what could be read, not all that matters: other programs on the machine, heat
    and power are not among them.

    Attributes
    ----------
    device_name
        As the driver reports it, e.g. ``"NVIDIA H200"``.
    torch_version, python_version, gpulab_version
        Versions that ran.
    cuda_version, driver_version
        Of the toolkit and the driver; None where there is none.
    cache
        State of the device's cache before each sample: ``"hot"`` or ``"cold"``.
    taken_at
        Time at the end, ISO 8601, UTC.
    clock_before_mhz, clock_after_mhz
        Clock of the multiprocessors; None where it could not be read.
    """

    device_name: str
    _: KW_ONLY
    torch_version: str
    python_version: str
    gpulab_version: str
    cuda_version: str | None
    driver_version: str | None
    cache: str
    taken_at: str
    clock_before_mhz: int | None = None
    clock_after_mhz: int | None = None


@dataclass(frozen=True, slots=True)
class Measurement(Saved):
    """Samples of one piece of work, how they were taken, and what is doubtful about them.

    Attributes
    ----------
    samples_s
        One entry per sample, in seconds per call, in the order taken; never empty. A sample
        is the mean over ``inner_loops`` calls, so the spread of single calls is larger.
    method
        Name of the timing method, e.g. ``"events"``.
    source
        ``"measured"`` on a device here, ``"recorded"`` on one elsewhere, or ``"virtual"``:
        computed by a model and measured nowhere.
    conditions
        Where and when.
    findings
        Doubts; empty means that none of the known ones was seen, not that there are none.
    inner_loops
        Calls in each timed interval.
    n_warmup
        Calls before the first interval.
    label
        Name of the work, free text.
    stopped_by
        Why sampling ended, e.g. ``"n_samples"``, ``"precision"``, ``"interrupt"``.

    Raises
    ------
    EmptyMeasurementError
        If there are no samples.
    InvalidOptionError
        If a sample is not finite, or a count is too small.
    UnknownNameError
        If the source is not one of the three.
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

    def __post_init__(self) -> None:
        check_source(self.source)
        if not self.samples_s:
            raise EmptyMeasurementError(
                "samples_s is empty; a Measurement needs at least one sample"
            )
        # One nan would silently turn the median, and every comparison with it, into nonsense.
        for index, sample_s in enumerate(self.samples_s):
            if not math.isfinite(sample_s):
                raise InvalidOptionError(
                    f"samples_s[{index}]={sample_s}; it must be a finite number of seconds"
                )
        for name, value, least in (
            ("inner_loops", self.inner_loops, 1),
            ("n_warmup", self.n_warmup, 0),
        ):
            if value < least:
                raise InvalidOptionError(f"{name}={value}; it must be at least {least}")

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.samples_s)

    @property
    def median_s(self) -> float:
        """Median sample, in seconds per call; half of the samples took longer."""
        return median(self.samples_s)

    @property
    def interval_s(self) -> tuple[float, float]:
        """95 % interval of the median, in seconds; see :func:`gpulab.stats.median_interval`.

        With fewer than 6 samples it is (smallest, largest) and reaches less than 95 %. It is
        not the range of the samples, and other conditions may give a median outside it.
        """
        return median_interval(self.samples_s, _CONFIDENCE)

    @property
    def spread_s(self) -> float:
        """Robust spread of single samples, in seconds; not the error of the median."""
        return robust_spread(self.samples_s)

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row a sample.

        Columns are ``sample`` (its index), ``duration_s``, ``method``, ``source``,
        ``device_name`` and ``label``.
        """
        import pandas as pd

        table = pd.DataFrame({"sample": range(self.n_samples), "duration_s": self.samples_s})
        return table.assign(
            method=self.method,
            source=self.source,
            device_name=self.conditions.device_name,
            label=self.label,
        )

    def __str__(self) -> str:
        return f"{self._estimate()} ({self._remark()})"

    def _repr_pretty_(self, printer: _Printer, _cycle: object) -> None:
        printer.text("\n".join([str(self), *map(str, self.findings)]))

    def _repr_html_(self) -> str:
        shown = Distribution(
            self.samples_s,
            self.median_s,
            self.interval_s,
            self._interval_name(),
            place(self.conditions.device_name, self.source),
        )
        # The parts are handed over as plain values, so that the page knows nothing of records.
        findings = [(finding.code, str(finding)) for finding in self.findings]
        return to_html(
            self._estimate(), self._remark(), shown, facts=self._facts(), findings=findings
        )

    def _estimate(self) -> str:
        name = f"{' '.join(self.label.split())}: " if self.label.strip() else ""
        return f"{name}{format_estimate(self.median_s, *self.interval_s)} per call"

    def _remark(self) -> str:
        warm = "warm" if self.n_warmup > 0 else "no warm-up"
        return (
            f"median, {self._interval_name()} of {self.n_samples}; {self.method}, {warm}; "
            f"{place(self.conditions.device_name, self.source)}"
        )

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
        yield "GPU, source", f"{at.device_name}, {self.source}"
        yield "clock before", _mhz(at.clock_before_mhz)
        yield "clock after", _mhz(at.clock_after_mhz)
        yield (
            "torch, CUDA, driver",
            ", ".join(
                version or "none"
                for version in (at.torch_version, at.cuda_version, at.driver_version)
            ),
        )
        yield "Python, gpulab", f"{at.python_version}, {at.gpulab_version}"
        yield "taken at", at.taken_at


def _mhz(clock_mhz: int | None) -> str:
    return "not read" if clock_mhz is None else f"{clock_mhz} MHz"
