"""Compute the duration of a kernel from its work, its cache traffic and the GPU's data sheet.

The constants and the corrections by size were fitted to one NVIDIA H200. For other GPUs the same
efficiencies are applied to their data sheets, which is an extrapolation. ``docs/fidelity.md``
compares it with an H100.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from math import ceil, isclose, log2, sqrt

from gpulab.gpus import GpuSpec
from gpulab.virtual.simulator._l2_cache import CacheAccess, Traffic
from gpulab.virtual.simulator.costs._efficiency_surfaces import SurfacePoint, correction
from gpulab.virtual.simulator.costs._kernel_families import KERNEL_FAMILIES, KernelFamily
from gpulab.virtual.simulator.costs._matmul_tiles import MatmulShape, TileSchedule, schedule

_NS = 1e9

# Large kernels reach 4.4 of the data sheet's 4.8 TB/s.
_BANDWIDTH_SHARE = 0.917
# The data sheet's bandwidth of the H200 by its clock and its 132 multiprocessors. What limits a
# kernel below the memory's own rate was fitted on it, and belongs to the multiprocessors.
_MEMORY_BYTES_PER_CLOCK_AND_SM = 4.8e12 / (132 * 1.98e9)
_L2_BYTES_PER_CLOCK_AND_SM = 31.0
_ELEMENTS_PER_BLOCK = 2_048
# The floor of a reduction grows with each doubling between 2**10 and 2**20 elements, because it
# takes more steps.
_FEW, _MANY = 10, 20
# At this number all cached costs are dropped, so that a program with many shapes does not grow.
_N_COSTS_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class KernelWork:
    """What a kernel must do, on any GPU.

    Attributes
    ----------
    family
        A key of ``KERNEL_FAMILIES``.
    arithmetic
        Type in which it computes: ``"float16"``, ``"tf32"``, ...
    flops
        Floating-point operations; a multiply-add counts as two.
    n_elements
        Elements that its threads process.
    n_rows
        Rows, if each block of threads processes one row at a time; otherwise 0.
    n_steps
        Steps that must run one after another.
    matmul
        Sizes of the matmul that it computes, or None.
    reads, writes
        Whether it makes the read accesses of the call, and whether it makes the write accesses.
    scratch_bytes
        Bytes to and from memory that no tensor of the program owns.
    most_bytes
        The most bytes that it touches of one tensor, e.g. of a table from which it takes a few
        rows; 0 for no limit.
    host_ns
        Host time of its launch, if it differs from that of its family.
    name
        Its name in records, if it differs from the operator's.
    before
        Kernels of the same call that run before it.
    surface_point
        The place of the call on the surface of measured efficiencies, or None.
    whole
        The works whose times add up to that of the whole call, if the model of its time has other
        kernels than the call. They share the time then.
    share
        The share of that time that this kernel takes if the cache serves all accesses. The kernel
        that makes the accesses also takes what memory adds.
    cached_bytes
        Bytes that it reads and writes, for the time with a warm cache.
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
    whole: tuple["KernelWork", ...] = ()
    share: float = 1.0
    cached_bytes: int = 0

    @property
    def launch_ns(self) -> int:
        """Host time of this kernel's launch, in nanoseconds."""
        return KERNEL_FAMILIES[self.family].launch_ns if self.host_ns is None else self.host_ns

    def accesses_of(self, accesses: Sequence[CacheAccess]) -> tuple[CacheAccess, ...]:
        """Return the accesses of the call that this kernel makes."""
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
    """The terms of a duration that do not depend on the cache, for one work on one GPU."""

    n_sms: int
    fixed_ns: float
    first_miss_ns: int
    arithmetic_ns: float
    waves_ns: float
    hit_byte_ns: float
    miss_byte_ns: float
    fitted_memory_byte_ns: float
    memory_byte_ns: float
    scratch_bytes: int
    hot: float
    cold: float


# Cached cost terms. The keys are identities, because a hash of these records takes longer than the
# whole computation. The values hold the objects, so that no identity is used again.
_known_costs: dict[tuple[int, int], tuple[KernelWork, GpuSpec, _CostTerms]] = {}


def n_sms(work: KernelWork, spec: GpuSpec) -> int:
    """Return how many multiprocessors the kernel can use."""
    return _cost_terms_of(work, spec).n_sms


def duration_ns(work: KernelWork, traffic: Traffic, spec: GpuSpec, stretch: float = 1.0) -> int:
    """Return the duration of a kernel in nanoseconds, if it is alone on the GPU.

    The model is a roofline with measured ceilings: a floor plus the longer of the arithmetic and
    the memory time. If calls of this kind were measured, the result is multiplied by the
    correction for these sizes. It is the figure of a model, not of a particular kernel's code.

    ``stretch`` is how many times longer the arithmetic takes than at the boost clock.
    """
    found_ns = (_shared_ns if work.whole else _part_ns)(work, traffic, spec, stretch)
    return found_ns + _latency_ns(spec)


# The H100's shortest kernels take 0.19 µs longer than the H200's, whatever they do, and its memory
# has 0.82 of the clock: what each kernel waits for at its end or start goes through memory. Clocks
# of other memories than HBM are higher and do not compare.
_WAIT_NS, _FITTED_MEMORY_MHZ = 850, 3_201


def _latency_ns(spec: GpuSpec) -> int:
    """Return by how much each kernel is longer than on the GPU of the fit."""
    slower = min(1.0, max(0.0, _FITTED_MEMORY_MHZ / spec.memory_clock_mhz - 1))
    return round(_WAIT_NS * slower)


def _part_ns(work: KernelWork, traffic: Traffic, spec: GpuSpec, stretch: float) -> int:
    """Return the time of a kernel on its own, with the latencies of the GPU of the fit."""
    cost = _cost_terms_of(work, spec)
    miss_bytes = traffic.miss_bytes + traffic.late_bytes + cost.scratch_bytes
    memory_ns = traffic.hit_bytes * cost.hit_byte_ns + miss_bytes * cost.miss_byte_ns
    # A lower clock stretches the arithmetic only: the device memory has a clock of its own.
    busy_ns = max(cost.arithmetic_ns * stretch + cost.waves_ns, memory_ns)
    latency_ns = cost.first_miss_ns if miss_bytes else 0
    # Without the late bytes: they are results of other kernels, and make this one's no colder.
    touched_bytes = traffic.hit_bytes + traffic.miss_bytes
    # Corrections were measured all hot and all cold; between them the factor is interpolated.
    cold_share = traffic.miss_bytes / touched_bytes if touched_bytes else 0.0
    factor = cost.hot + (cost.cold - cost.hot) * cold_share
    fitted_ns = (cost.fixed_ns + latency_ns + busy_ns) * factor
    if cost.memory_byte_ns == cost.fitted_memory_byte_ns:
        return round(fitted_ns)
    # On another GPU the memory takes another part of the time. The two parts add up like the
    # sides of a right angle: a kernel that used half of the H200's bandwidth was 1.17 times as
    # long on an H100 with 0.7 of it (1.12 by this rule), one that used all of it 1.41 times.
    from_memory_ns = min(fitted_ns, miss_bytes * cost.fitted_memory_byte_ns)
    other_square = fitted_ns**2 - from_memory_ns**2
    return round(sqrt(other_square + (miss_bytes * cost.memory_byte_ns) ** 2))


# One in a hundred of 17,925 kernels that an H200's driver recorded was shorter than 0.96 µs.
_LEAST_NS = 900


def _shared_ns(work: KernelWork, traffic: Traffic, spec: GpuSpec, stretch: float) -> int:
    """Return the time of a kernel that shares the time of its call with others."""
    cached = [Traffic(part.cached_bytes, 0) for part in work.whole]
    cached_ns = sum(map(_part_ns, work.whole, cached, repeat(spec), repeat(stretch)))
    if not (work.reads or work.writes):
        return max(_LEAST_NS, round(cached_ns * work.share))
    # The first part that touches memory finds what the cache has; the next ones find all of it.
    first = next((i for i, part in enumerate(work.whole) if part.cached_bytes), 0)
    served = [*cached[:first], traffic, *cached[first + 1 :]]
    whole_ns = sum(map(_part_ns, work.whole, served, repeat(spec), repeat(stretch)))
    # More than 0: a surface may have a cold time that is shorter than the hot one.
    return max(_LEAST_NS, round(whole_ns - cached_ns * (1 - work.share)))


def sleep_ns(cycles: int, spec: GpuSpec) -> int:
    """Return how long ``cycles`` of the boost clock take, in nanoseconds."""
    return round(cycles * 1_000 / spec.boost_clock_mhz)


def _cost_terms_of(work: KernelWork, spec: GpuSpec) -> _CostTerms:
    key = (id(work), id(spec))
    known = _known_costs.get(key)
    if known is None:
        if len(_known_costs) >= _N_COSTS_KEPT:
            _known_costs.clear()
        known = _known_costs[key] = (work, spec, _cost_terms(work, spec))
    return known[2]


def _cost_terms(work: KernelWork, spec: GpuSpec) -> _CostTerms:
    family = KERNEL_FAMILIES[work.family]
    clocks_per_ns = spec.boost_clock_mhz / 1e3
    all_clocks_per_ns = clocks_per_ns * spec.n_sms
    l2_bytes_per_ns = _L2_BYTES_PER_CLOCK_AND_SM * all_clocks_per_ns * family.l2_share
    fitted_memory = _MEMORY_BYTES_PER_CLOCK_AND_SM * all_clocks_per_ns * _BANDWIDTH_SHARE
    memory_bytes_per_ns = fitted_memory * family.memory_share
    own_memory = spec.bandwidth_bytes_per_s * _BANDWIDTH_SHARE / _NS
    # Equal up to rounding on the GPU of the fit.
    own_memory = fitted_memory if isclose(own_memory, fitted_memory) else own_memory
    # A block moves so many bytes per clock, so few blocks cannot use the whole bandwidth.
    if family.block_bytes:
        by_blocks = max(1, work.n_rows) * family.block_bytes * clocks_per_ns
        l2_bytes_per_ns = min(l2_bytes_per_ns, by_blocks)
        memory_bytes_per_ns = min(memory_bytes_per_ns, by_blocks)
    arithmetic = _arithmetic(work, family, spec)
    issue_ns = 0.0
    # Some kernels are limited by their instructions for each element, not by FLOPs or bytes.
    if family.rate:
        n_used = min(spec.n_sms, work.n_rows or spec.n_sms)
        issue_ns = work.n_elements / (family.rate * n_used * clocks_per_ns)
    factors = correction(work.surface_point)
    return _CostTerms(
        n_sms=min(spec.n_sms, max(1, arithmetic.n_tiles)),
        # Rows are spread over all multiprocessors; steps follow one another on a single one.
        fixed_ns=_floor_ns(work, family)
        + work.n_rows * family.row_clocks / all_clocks_per_ns
        + work.n_steps * family.step_clocks / clocks_per_ns
        + arithmetic.after_ns,
        first_miss_ns=family.first_miss_ns,
        arithmetic_ns=max(arithmetic.arithmetic_ns, issue_ns),
        waves_ns=arithmetic.waves_ns,
        hit_byte_ns=1 / l2_bytes_per_ns,
        miss_byte_ns=1 / memory_bytes_per_ns,
        fitted_memory_byte_ns=1 / fitted_memory,
        memory_byte_ns=1 / own_memory,
        scratch_bytes=work.scratch_bytes,
        hot=factors.hot,
        cold=factors.cold,
    )


def _floor_ns(work: KernelWork, family: KernelFamily) -> float:
    if not family.doubling_ns:  # all but reductions
        return family.floor_ns
    n_doublings = min(max(log2(max(work.n_elements, 1)), _FEW), _MANY) - _FEW
    return family.floor_ns + n_doublings * family.doubling_ns


def _arithmetic(work: KernelWork, family: KernelFamily, spec: GpuSpec) -> TileSchedule:
    if work.matmul is not None:
        return schedule(work.matmul, work.arithmetic, spec)
    peak = spec.peak_flops_per_s[work.arithmetic] * family.compute_share
    # Without tiles only the number of blocks matters, for how many multiprocessors are used.
    n_blocks = work.n_rows or ceil(work.n_elements / _ELEMENTS_PER_BLOCK)
    return TileSchedule(n_blocks, work.flops / peak * _NS, 0.0, 0.0)
