"""Throughput: FLOPs or bytes per second, beside what the GPU's data sheet allows."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpulab import gpus
from gpulab.core.requirements import NOT_NEGATIVE, check_fields
from gpulab.core.units import format_rate
from gpulab.gpus import DATA_SHEET, Roof


@dataclass(frozen=True, slots=True)
class Counts:
    """The floating-point operations and bytes of one call.

    Attributes
    ----------
    flops, size_bytes
        Operations, and bytes to and from memory; None if not known.
    arithmetic
        Type of the operations as data sheets name it, such as ``"tf32"``; empty if not known.
    is_counted
        Whether PyTorch counted the operations.

    Raises
    ------
    InvalidOptionError
        If a count is negative or not finite.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     result = gpulab.measure(lambda: a @ a, flops=2 * 64**3, n_samples=6)
    >>> result.counts.flops
    524288
    """

    flops: float | None = None
    size_bytes: float | None = None
    arithmetic: str = ""
    is_counted: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        NOT_NEGATIVE.or_none.check(flops=self.flops, size_bytes=self.size_bytes)


NO_COUNTS = Counts()
_SAME = 0.01  # clocks this near are one clock


@dataclass(frozen=True, slots=True)
class Rate:
    """A throughput with its interval, and a limit of the GPU.

    Attributes
    ----------
    unit
        ``"FLOP"`` or ``"B"``, for bytes.
    per_s, low_per_s, high_per_s
        Units per second at the median, and at the ends of its 95 % interval.
    limit_per_s, limit_name
        The most that the GPU does, and its name, such as ``"float32 peak"``; None if not known.
    origin
        Where the number of units comes from, such as ``"counted by PyTorch"``.
    clock_mhz, at_clock_per_s
        The clock after the samples, and the limit at this clock, to which a peak of FLOPs is
        proportional; None for bytes, or if the clock is not known.
    basis
        Where the limit comes from: ``"data sheet"``, ``"live clocks"`` or ``"measured"``.

    Examples
    --------
    >>> print(Rate("B", 2.4e12, 2.3e12, 2.5e12, 4.8e12, "memory bandwidth", "as given"))
    2.40 TB/s [2.30 TB/s, 2.50 TB/s], 50 % of the memory bandwidth (data sheet); bytes as given
    """

    unit: str
    per_s: float
    low_per_s: float
    high_per_s: float
    limit_per_s: float | None
    limit_name: str
    origin: str
    clock_mhz: int | None = None
    at_clock_per_s: float | None = None
    basis: str = DATA_SHEET

    @property
    def share(self) -> float | None:
        """Share of the limit; above 1 for bytes that come from the cache. None without a limit."""
        return None if self.limit_per_s is None else self.per_s / self.limit_per_s

    def __str__(self) -> str:
        rates = (self.per_s, self.low_per_s, self.high_per_s)
        middle, low, high = (format_rate(rate, self.unit) for rate in rates)
        interval = "" if low == middle == high else f" [{low}, {high}]"
        share = (
            f"no {self.basis} of this GPU"
            if self.share is None
            else f"{100 * self.share:.3g} % of the {self.limit_name} ({self.basis})"
        )
        noun = "FLOPs" if self.unit == "FLOP" else "bytes"
        return f"{middle}{interval}, {share}{self._at_clock()}; {noun} {self.origin}"

    __repr__ = __str__

    def _at_clock(self) -> str:
        """Return the share of the limit at the clock; empty if it is that of the data sheet."""
        if self.at_clock_per_s is None or self.limit_per_s is None:
            return ""
        if abs(self.at_clock_per_s / self.limit_per_s - 1) < _SAME:
            return ""
        return f", {100 * self.per_s / self.at_clock_per_s:.3g} % at {self.clock_mhz} MHz"


def rates_of(
    times_s: tuple[float, float, float],
    device_name: str,
    counts: Counts,
    clock_mhz: int | None = None,
    roof: Roof | None = None,
) -> Iterator[Rate]:
    """Yield the rates of work that takes ``times_s``: the median and both ends of its interval.

    The limits are those of ``roof``, or of the GPU's data sheet.
    """
    time_s, low_s, high_s = times_s
    if not low_s:
        return
    spec = gpus.by_driver_name(device_name)
    if roof is None and spec is not None:
        roof = gpus.data_sheet(spec)
    basis = DATA_SHEET if roof is None else roof.basis
    if counts.flops:
        flops = counts.flops
        rates = (flops / time_s, flops / high_s, flops / low_s)
        origin = "counted by PyTorch" if counts.is_counted else "as given"
        if roof is None:
            yield Rate("FLOP", *rates, None, "", origin)
        else:
            # If the type of the arithmetic is not known, the highest peak bounds all.
            is_known = counts.arithmetic in roof.peak_flops_per_s
            kind = counts.arithmetic if is_known else roof.fastest
            name = f"{kind} peak" if is_known else f"{kind} peak, the highest"
            at_clock = None
            if clock_mhz and spec is not None and basis == DATA_SHEET:
                at_clock = gpus.at_clocks(spec, clock_mhz, spec.memory_clock_mhz).peak(kind)
            yield Rate("FLOP", *rates, roof.peak(kind), name, origin, clock_mhz, at_clock, basis)
    if counts.size_bytes:
        size, name = counts.size_bytes, "memory bandwidth"
        limit = None if roof is None else roof.bandwidth_bytes_per_s
        rates = (size / time_s, size / high_s, size / low_s)
        yield Rate("B", *rates, limit, name, "as given", basis=basis)
