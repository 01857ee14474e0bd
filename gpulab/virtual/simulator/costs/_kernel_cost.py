"""Compute the duration of a kernel from its work, its cache traffic and the GPU's data sheet.

The constants were fitted to one NVIDIA H200, and so were the corrections by size; other GPUs take
the same efficiencies on top of their data sheets, which is an extrapolation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2

from gpulab.gpus import GpuSpec
from gpulab.virtual.simulator._l2_cache import CacheAccess, Traffic
from gpulab.virtual.simulator.costs._efficiency_surfaces import SurfacePoint, correction
from gpulab.virtual.simulator.costs._kernel_families import KERNEL_FAMILIES, KernelFamily
from gpulab.virtual.simulator.costs._matmul_tiles import MatmulShape, TileSchedule, schedule

_NS = 1e9

# Share of the data sheet's bandwidth that large kernels reach: 4.4 of 4.8 TB/s.
_BANDWIDTH_SHARE = 0.917
_L2_BYTES_PER_CLOCK_AND_SM = 31.0
_ELEMENTS_PER_BLOCK = 2_048
_FEW, _MANY = 10, 20  # between 2**10 and 2**20 elements a reduction takes more and more steps
_N_COSTS_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class KernelWork:
    """What a kernel must do, whatever the GPU.

    Attributes
    ----------
    family
        A key of ``KERNEL_FAMILIES``.
    arithmetic
        Type in which it computes: ``"float16"``, ``"tf32"``, ...
    flops
        Floating-point operations, a multiply-add counted as two.
    n_elements
        Elements that its threads handle.
    n_rows
        Rows that its blocks of threads handle one by one, where it has such.
    n_steps
        Steps that must come one after another.
    matmul
        Sizes of the matmul that it computes, or None.
    reads, writes
        Whether it makes the accesses of the call that read, and those that write.
    scratch_bytes
        Bytes to and from memory that no tensor of the program owns.
    most_bytes
        Bytes that it touches of one tensor at most, as of a table of which it takes a few rows;
        0 for no limit.
    host_ns
        Host time of its launch, if it is not that of its family.
    name
        What it is called in records, if not like the operator.
    before
        Kernels of the same call that run first.
    surface_point
        Where the call lies on the surface of measured efficiencies, or None.
    """

    family: str
    arithmetic: str = "float32"
    flops: int = 0
    n_elements: int = 1
    n_rows: int = 0
    n_steps: int = 0
    matmul: MatmulShape | None = None
    reads: bool = True
    writes: bool = True
    scratch_bytes: int = 0
    most_bytes: int = 0
    host_ns: int | None = None
    name: str = ""
    before: tuple["KernelWork", ...] = ()
    surface_point: SurfacePoint | None = None

    @property
    def launch_ns(self) -> int:
        """Host time of this kernel's launch, in nanoseconds."""
        return KERNEL_FAMILIES[self.family].launch_ns if self.host_ns is None else self.host_ns

    def accesses_of(self, accesses: Sequence[CacheAccess]) -> tuple[CacheAccess, ...]:
        """Return those accesses of the call that this kernel makes."""
        if self.reads and self.writes and not self.most_bytes:
            return tuple(accesses)
        most_bytes = self.most_bytes or float("inf")
        return tuple(
            CacheAccess(item.address, int(min(item.size_bytes, most_bytes)), item.is_write)
            for item in accesses
            if (self.writes if item.is_write else self.reads)
        )


@dataclass(frozen=True, slots=True)
class _CostTerms:
    """What a duration is made of, for one piece of work on one GPU, in nanoseconds."""

    n_sms: int
    fixed_ns: float
    first_miss_ns: int
    arithmetic_ns: float
    waves_ns: float
    hit_byte_ns: float
    miss_byte_ns: float
    scratch_bytes: int
    hot: float
    cold: float


# Cost terms by identity of work and GPU, as a hash of the records takes longer than the sum; the
# objects are kept with them.
_known_costs: dict[tuple[int, int], tuple[KernelWork, GpuSpec, _CostTerms]] = {}


def n_sms(work: KernelWork, spec: GpuSpec) -> int:
    """Return how many multiprocessors the work can use."""
    return _cost_terms_of(work, spec).n_sms


def duration_ns(work: KernelWork, traffic: Traffic, spec: GpuSpec, stretch: float = 1.0) -> int:
    """Return the duration of the kernel in nanoseconds, alone on the GPU.

    ``stretch`` is how much longer its arithmetic takes than at the boost clock.

    A roofline with measured ceilings: the slower of arithmetic and memory, on top of a floor.
    Where calls of the kind were measured, it is multiplied by how far off it was near these sizes.
    It is a model's figure and says nothing about a particular kernel's code.
    """
    cost = _cost_terms_of(work, spec)
    miss_bytes = traffic.miss_bytes + traffic.late_bytes + cost.scratch_bytes
    memory_ns = traffic.hit_bytes * cost.hit_byte_ns + miss_bytes * cost.miss_byte_ns
    busy_ns = max(cost.arithmetic_ns * stretch + cost.waves_ns, memory_ns)
    latency_ns = cost.first_miss_ns if miss_bytes else 0
    touched_bytes = traffic.hit_bytes + traffic.miss_bytes
    cold_share = traffic.miss_bytes / touched_bytes if touched_bytes else 0.0
    factor = cost.hot + (cost.cold - cost.hot) * cold_share
    return round((cost.fixed_ns + latency_ns + busy_ns) * factor)


def sleep_ns(cycles: int, spec: GpuSpec) -> int:
    """Return how long a kernel spins for ``cycles`` cycles of the boost clock, in nanoseconds."""
    return round(cycles * 1_000 / spec.boost_clock_mhz)


def _cost_terms_of(work: KernelWork, spec: GpuSpec) -> _CostTerms:
    key = (id(work), id(spec))
    found = _known_costs.get(key)
    if found is None:
        if len(_known_costs) >= _N_COSTS_KEPT:
            _known_costs.clear()
        found = _known_costs[key] = (work, spec, _cost_terms(work, spec))
    return found[2]


def _cost_terms(work: KernelWork, spec: GpuSpec) -> _CostTerms:
    family = KERNEL_FAMILIES[work.family]
    clocks_per_ns = spec.boost_clock_mhz / 1e3
    all_clocks_per_ns = clocks_per_ns * spec.n_sms
    l2_bytes_per_ns = _L2_BYTES_PER_CLOCK_AND_SM * all_clocks_per_ns * family.l2_share
    memory_bytes_per_ns = spec.bandwidth_bytes_per_s * _BANDWIDTH_SHARE / _NS * family.memory_share
    if family.block_bytes:
        by_blocks = max(1, work.n_rows) * family.block_bytes * clocks_per_ns
        l2_bytes_per_ns = min(l2_bytes_per_ns, by_blocks)
        memory_bytes_per_ns = min(memory_bytes_per_ns, by_blocks)
    arithmetic = _arithmetic(work, family, spec)
    issue_ns = 0.0
    if family.rate:
        n_used = min(spec.n_sms, work.n_rows or spec.n_sms)
        issue_ns = work.n_elements / (family.rate * n_used * clocks_per_ns)
    factors = correction(work.surface_point)
    return _CostTerms(
        n_sms=min(spec.n_sms, max(1, arithmetic.n_tiles)),
        fixed_ns=_floor_ns(work, family)
        + work.n_rows * family.row_clocks / all_clocks_per_ns
        + work.n_steps * family.step_clocks / clocks_per_ns
        + arithmetic.after_ns,
        first_miss_ns=family.first_miss_ns,
        arithmetic_ns=max(arithmetic.arithmetic_ns, issue_ns),
        waves_ns=arithmetic.waves_ns,
        hit_byte_ns=1 / l2_bytes_per_ns,
        miss_byte_ns=1 / memory_bytes_per_ns,
        scratch_bytes=work.scratch_bytes,
        hot=factors.hot,
        cold=factors.cold,
    )


def _floor_ns(work: KernelWork, family: KernelFamily) -> float:
    if not family.doubling_ns:
        return family.floor_ns
    n_doublings = min(max(log2(max(work.n_elements, 1)), _FEW), _MANY) - _FEW
    return family.floor_ns + n_doublings * family.doubling_ns


def _arithmetic(work: KernelWork, family: KernelFamily, spec: GpuSpec) -> TileSchedule:
    if work.matmul is not None:
        return schedule(work.matmul, work.arithmetic, spec)
    peak = spec.peak_flops_per_s[work.arithmetic] * family.compute_share
    n_blocks = work.n_rows or ceil(work.n_elements / _ELEMENTS_PER_BLOCK)
    return TileSchedule(n_blocks, work.flops / peak * _NS, 0.0, 0.0)
