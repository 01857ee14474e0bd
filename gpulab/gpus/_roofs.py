"""The roofline of a GPU: its peak and bandwidth, and the least time that work can take."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpulab.core.requirements import (
    NOT_NEGATIVE,
    NUMBER,
    POSITIVE,
    TEXT,
    NameOf,
    instance_of,
    mapping_to,
)
from gpulab.gpus._datasheets import GpuSpec

__all__ = ["BASES", "DATA_SHEET", "LIVE", "MEASURED", "Roof", "at_clocks", "data_sheet"]


# The kinds of evidence, from what the vendor states to what was timed on the GPU.
DATA_SHEET, LIVE, MEASURED = "data sheet", "live clocks", "measured"
BASES = (DATA_SHEET, LIVE, MEASURED)
_PEAKS = mapping_to(
    POSITIVE, "a dict from the names of types to FLOP/s, such as {'float32': 67e12}"
)
_SPEC = instance_of(GpuSpec, "the data sheet of a GPU, such as gpus.gpu('H200')")


@dataclass(frozen=True, slots=True)
class Roof:
    """How fast a GPU can compute and move data, according to one kind of evidence.

    Attributes
    ----------
    basis
        The evidence: ``"data sheet"``, ``"live clocks"`` or ``"measured"``.
    peak_flops_per_s
        Peak by the type of the arithmetic: ``"float16"``, ``"bfloat16"``, ``"tf32"``,
        ``"float32"``, ``"float64"``. Types without a known peak are left out.
    bandwidth_bytes_per_s
        Bandwidth of the device memory.
    l2_bytes_per_s
        Bandwidth of the L2 cache; None if unknown.
    floor_s
        Seconds of a kernel with next to nothing to do; None if unknown.
    detail
        The document, clocks or sizes behind the figures.

    Examples
    --------
    The A100 of a well-known exercise: 312 TFLOP/s in half precision and 2 TB/s.

    >>> a100 = Roof("data sheet", {"float16": 312e12}, 2e12)
    >>> a100.ridge("float16")
    156.0
    >>> d = 4096
    >>> round(a100.compute_s(2 * d**3, "float16") * 1e3, 2)
    0.44
    >>> round(a100.memory_s(3 * d**2 * 2) * 1e3, 2)
    0.05
    """

    basis: str
    peak_flops_per_s: Mapping[str, float]
    bandwidth_bytes_per_s: float
    l2_bytes_per_s: float | None = None
    floor_s: float | None = None
    detail: str = ""

    def __post_init__(self) -> None:
        NameOf("basis of a roof", BASES).check(basis=self.basis)
        _PEAKS.check(peak_flops_per_s=self.peak_flops_per_s)
        POSITIVE.check(bandwidth_bytes_per_s=self.bandwidth_bytes_per_s)
        POSITIVE.or_none.check(l2_bytes_per_s=self.l2_bytes_per_s)
        NUMBER.or_none.check(floor_s=self.floor_s)
        TEXT.check(detail=self.detail)

    def peak(self, arithmetic: str) -> float:
        """Return the peak of a type, in FLOP/s.

        Raises
        ------
        UnknownNameError
            If no peak of that type is known; the message lists the known types.
        """
        NameOf("arithmetic", self.peak_flops_per_s).check(arithmetic=arithmetic)
        return self.peak_flops_per_s[arithmetic]

    def ridge(self, arithmetic: str) -> float:
        """Return the ridge point in FLOP/byte; below this intensity, memory is the limit."""
        return self.peak(arithmetic) / self.bandwidth_bytes_per_s

    def attainable(self, intensity: float, arithmetic: str) -> float:
        """Return the most FLOP/s that work of this intensity, in FLOP/byte, can reach."""
        NOT_NEGATIVE.check(intensity=intensity)
        return min(self.peak(arithmetic), intensity * self.bandwidth_bytes_per_s)

    def compute_s(self, flops: float, arithmetic: str) -> float:
        """Return the least seconds for so many FLOPs, as if memory were infinitely fast."""
        NOT_NEGATIVE.check(flops=flops)
        return flops / self.peak(arithmetic)

    def memory_s(self, size_bytes: float) -> float:
        """Return the least seconds to move so many bytes, as if arithmetic took no time."""
        NOT_NEGATIVE.check(size_bytes=size_bytes)
        return size_bytes / self.bandwidth_bytes_per_s

    @property
    def fastest(self) -> str:
        """The type with the highest peak: a bound if the type of the arithmetic is unknown."""
        return max(self.peak_flops_per_s, key=lambda name: self.peak_flops_per_s[name])


def data_sheet(spec: GpuSpec) -> Roof:
    """Return the roof that the vendor states; each peak is for its own clock.

    Examples
    --------
    >>> from gpulab.gpus import gpu
    >>> data_sheet(gpu("A100")).bandwidth_bytes_per_s
    2039000000000.0
    """
    _SPEC.check(spec=spec)
    return Roof(
        DATA_SHEET, spec.peak_flops_per_s, spec.bandwidth_bytes_per_s, detail=spec.reference
    )


def at_clocks(spec: GpuSpec, sm_mhz: float, memory_mhz: float) -> Roof:
    """Return the data sheet's roof at other clocks; peaks and bandwidth are proportional to them.

    The clocks are those of the multiprocessors and of the device memory, as the driver reports
    them. The result can be above the data sheet, which states some peaks at less than the boost
    clock: an H200's 989 TFLOP/s in half precision are stated at 1,830 MHz, and it runs at 1,980.

    >>> from gpulab.gpus import gpu
    >>> f"{at_clocks(gpu('H200'), 1980, 3201).peak('float16') / 1e12:,.0f} TFLOP/s"
    '1,070 TFLOP/s'
    """
    _SPEC.check(spec=spec)
    POSITIVE.check(sm_mhz=sm_mhz, memory_mhz=memory_mhz)
    stated_mhz = spec.peak_clock_mhz
    return Roof(
        LIVE,
        # Each peak by its own clock: Hopper's are not stated at the boost clock.
        {name: peak * sm_mhz / stated_mhz[name] for name, peak in spec.peak_flops_per_s.items()},
        spec.bandwidth_bytes_per_s * memory_mhz / spec.memory_clock_mhz,
        detail=f"{sm_mhz:.0f} of {spec.boost_clock_mhz} MHz, "
        f"memory {memory_mhz:.0f} of {spec.memory_clock_mhz} MHz",
    )
