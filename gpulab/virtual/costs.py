"""What a piece of GPU work costs: its kernels' duration, and the host time to launch them.

The constants were fitted to one NVIDIA H200 (driver 580.159, torch 2.11, 16 Xeon cores): the
driver's own kernel records of 31 workloads. Other GPUs take the same efficiencies on top of their
data sheets, which is an extrapolation.
"""

from dataclasses import dataclass
from math import ceil

from gpulab.gpus import GpuSpec
from gpulab.virtual.cache import Traffic

_NS = 1e9

# Shares of the data sheet that large kernels reach: 4.4 of 4.8 TB/s, 780 of 989 TFLOP/s, ...
_BANDWIDTH_SHARE = 0.917
_PEAK_SHARE = {"float16": 0.79, "bfloat16": 0.79, "tf32": 0.745, "float32": 0.76, "float64": 0.88}
_L2_BYTES_PER_CLOCK_AND_SM = 32.5
_FIRST_MISS_NS = 300  # the first bytes from memory, not hidden behind others


@dataclass(frozen=True, slots=True)
class Family:
    """How one kind of kernel behaves on top of its FLOPs and bytes.

    Attributes
    ----------
    floor_ns
        Duration of the kernel when it has next to nothing to do.
    launch_ns
        Host time of the call in PyTorch's eager mode.
    bandwidth_share, compute_share
        Part of the reachable bandwidth and arithmetic that such kernels use.
    """

    floor_ns: int
    launch_ns: int
    bandwidth_share: float = 1.0
    compute_share: float = 1.0


FAMILIES = {
    "elementwise": Family(880, 7_000),
    "reduction": Family(3_100, 9_000, 0.95),
    "softmax": Family(3_800, 8_500, 0.30),
    "norm": Family(3_500, 13_000, 0.66),
    "gemm": Family(2_000, 12_000),
    "linear": Family(2_000, 21_000),
    "conv": Family(8_000, 29_000, 0.8, 0.25),
    "attention": Family(4_000, 20_000, 1.0, 0.3),
    "gather": Family(1_500, 8_500, 0.7),
    "sort": Family(12_000, 40_000, 0.08),
    "other": Family(2_000, 9_000, 0.8, 0.5),
}


@dataclass(frozen=True, slots=True)
class Work:
    """What a kernel must do, whatever the GPU.

    Attributes
    ----------
    family
        A key of ``FAMILIES``.
    arithmetic
        Type in which it computes: ``"float16"``, ``"tf32"``, ...
    flops
        Floating-point operations, a multiply-add counted as two.
    n_outputs
        Elements of the result.
    """

    family: str
    arithmetic: str
    flops: int
    n_outputs: int

    @property
    def launch_ns(self) -> int:
        """Host time of the call, in nanoseconds."""
        return FAMILIES[self.family].launch_ns


def n_sms(work: Work, spec: GpuSpec) -> int:
    """Return how many multiprocessors the work can use."""
    if work.family in {"gemm", "linear", "conv", "attention"}:
        return min(spec.n_sms, max(1, _tiles(work)))
    return min(spec.n_sms, max(1, ceil(work.n_outputs / 2_048)))


def duration_ns(work: Work, traffic: Traffic, spec: GpuSpec) -> int:
    """Return the duration of the kernel in nanoseconds, alone on the GPU at its boost clock.

    A roofline with measured ceilings: the slower of arithmetic and memory, on top of a floor.
    It is a model's figure and says nothing about a particular kernel's code.
    """
    family = FAMILIES[work.family]
    busy_s = max(
        _compute_s(work, spec) / family.compute_share,
        _memory_s(traffic, spec) / family.bandwidth_share,
    )
    return family.floor_ns + _first_miss_ns(traffic) + round(busy_s * _NS)


def sleep_ns(cycles: int, spec: GpuSpec) -> int:
    """Return how long a kernel that spins for ``cycles`` clock cycles takes, in nanoseconds."""
    return round(cycles * 1_000 / spec.boost_clock_mhz)


def _first_miss_ns(traffic: Traffic) -> int:
    return _FIRST_MISS_NS if traffic.miss_bytes else 0


def _memory_s(traffic: Traffic, spec: GpuSpec) -> float:
    l2_bytes_per_s = _L2_BYTES_PER_CLOCK_AND_SM * spec.n_sms * spec.boost_clock_mhz * 1e6
    memory_bytes_per_s = spec.bandwidth_bytes_per_s * _BANDWIDTH_SHARE
    return traffic.hit_bytes / l2_bytes_per_s + traffic.miss_bytes / memory_bytes_per_s


def _compute_s(work: Work, spec: GpuSpec) -> float:
    if not work.flops:
        return 0.0
    peak = spec.peak_flops_per_s[work.arithmetic] * _PEAK_SHARE[work.arithmetic]
    return work.flops / (peak * _wave_share(_tiles(work), spec.n_sms))


def _tiles(work: Work) -> int:
    """Blocks of the result: the largest tile that still gives every multiprocessor work."""
    for tile in (256 * 128, 128 * 64):
        if work.n_outputs >= tile * 120:
            return ceil(work.n_outputs / tile)
    return ceil(work.n_outputs / (64 * 64))


def _wave_share(n_tiles: int, n_units: int) -> float:
    """Share of the multiprocessors that work, on average over all waves of tiles."""
    return n_tiles / (ceil(n_tiles / n_units) * n_units)
