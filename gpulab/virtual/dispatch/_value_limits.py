"""Decide which virtual tensors have values, from fixed estimates of time and memory.

An operator's time on the host is estimated from its FLOPs and bytes, with the same rates on every
machine. So a program's tensors have values, or have none, on every machine, however busy it is. A
laptop takes a few times as long as estimated for convolutions and sorts.
"""

from collections.abc import Iterable

from gpulab.virtual.simulator import Machine, ValueLimits
from gpulab.virtual.simulator.costs import KernelWork
from gpulab.virtual.tensors import MissingValues, TensorLayout, VirtualTensor

# About what a desktop CPU with 16 cores reaches.
_FLOPS_PER_S = 500e9
_BYTES_PER_S = 10e9
_RANDOM_BYTES_PER_S = 1e9
# Tensors up to this size have values whatever the total, so that scalars and statistics, such as
# the step counts of optimizers, have them in the largest programs, too.
_ALWAYS_BYTES = 4 << 20
_TOO_MANY_ELEMENTS = MissingValues(
    "it is, or was computed from, a tensor of more elements than", "max_elements"
)
_TOO_MUCH_MEMORY = MissingValues(
    "all tensors with values together would take more bytes than", "max_bytes"
)
_OPTIONS = {
    "max_elements": "max_value_elements",
    "max_bytes": "max_value_bytes",
    "budget_s": "value_budget_s",
}
# The functions whose option sets a limit; most are options of one alone.
_SET_BY = {"max_bytes": "gpulab.use(...) or gpulab.virtual_gpu(...)"}


def host_s(work: KernelWork, layouts: Iterable[TensorLayout], *, is_random: bool) -> float:
    """Return the estimated time in seconds that the host takes to compute an operator."""
    flops = work.flops + sum(kernel.flops for kernel in work.before)
    size_bytes = sum(item.size_bytes for item in layouts)
    bytes_per_s = _RANDOM_BYTES_PER_S if is_random else _BYTES_PER_S
    # As on the GPU, what takes longer, arithmetic or memory, hides the other.
    return max(flops / _FLOPS_PER_S, size_bytes / bytes_per_s)


def too_slow(operator: str, duration_s: float) -> MissingValues:
    """Return the reason for missing values of an operator that takes the host too long."""
    return MissingValues(
        f"the host would take about {duration_s:.2g} s for {operator}, more than", "budget_s"
    )


def missing_by_size(
    machine: Machine, layout: TensorLayout, *, counted_bytes: int = 0
) -> MissingValues | None:
    """Return why a tensor of this layout would have no values, or None if it would have them.

    ``counted_bytes`` of it are in the machine's total already.
    """
    span_bytes = layout.span_bytes
    if span_bytes > machine.limits.max_elements * layout.dtype.itemsize:
        return _TOO_MANY_ELEMENTS
    return missing_by_memory(machine, span_bytes - counted_bytes)


def missing_by_memory(machine: Machine, size_bytes: int) -> MissingValues | None:
    """Return why ``size_bytes`` more bytes would have no values, or None if they would."""
    if size_bytes > _ALWAYS_BYTES and machine.value_bytes + size_bytes > machine.limits.max_bytes:
        return _TOO_MUCH_MEMORY
    return None


def explained(tensor: VirtualTensor, missing: MissingValues, limits: ValueLimits) -> str:
    """Return a message: why a tensor has no values, and which option would change that."""
    option = _OPTIONS[missing.option]
    return (
        f"this {tensor.dtype} tensor of shape {tuple(tensor.shape)} has no values: {missing.why} "
        f"{option}={getattr(limits, missing.option)}; choose smaller sizes, or raise {option}= of "
        f"{_SET_BY.get(missing.option, 'gpulab.virtual_gpu(...)')}"
    )
