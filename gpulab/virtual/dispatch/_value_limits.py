"""Decide which tensors carry values, from fixed estimates of time and memory.

The estimate of an operator's time on the host is made from its FLOPs and its bytes at rates that
are the same everywhere: a program's tensors carry values or not whatever the machine, and however
busy it is. A laptop takes a few times as long for convolutions and sorts as the estimate.
"""

from collections.abc import Iterable

from gpulab.virtual.simulator import Machine, ValueLimits
from gpulab.virtual.simulator.costs import KernelWork
from gpulab.virtual.tensors import MissingValues, TensorLayout, VirtualTensor

# What a desktop's CPU of 16 cores reaches.
_FLOPS_PER_S = 500e9
_BYTES_PER_S = 10e9
_RANDOM_BYTES_PER_S = 1e9
# Scalars and statistics, as the steps of optimizers, carry values in the largest programs too.
_ALWAYS_BYTES = 1 << 20
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


def host_s(work: KernelWork, layouts: Iterable[TensorLayout], *, is_random: bool) -> float:
    """Return about how long the host takes to compute an operator, in seconds."""
    flops = work.flops + sum(step.flops for step in work.before)
    size_bytes = sum(item.size_bytes for item in layouts)
    bytes_per_s = _RANDOM_BYTES_PER_S if is_random else _BYTES_PER_S
    return max(flops / _FLOPS_PER_S, size_bytes / bytes_per_s)


def too_slow(operator: str, duration_s: float) -> MissingValues:
    """Return why the results of an operator carry no values that takes the host so long."""
    return MissingValues(
        f"the host would take about {duration_s:.2g} s for {operator}, more than", "budget_s"
    )


def missing_by_size(
    machine: Machine, layout: TensorLayout, *, counted_bytes: int = 0
) -> MissingValues | None:
    """Return why a tensor of this layout carries no values, or None if it does.

    ``counted_bytes`` of it are among those of the machine already.
    """
    span_bytes = layout.span_bytes
    if span_bytes > machine.limits.max_elements * layout.dtype.itemsize:
        return _TOO_MANY_ELEMENTS
    return missing_by_memory(machine, span_bytes - counted_bytes)


def missing_by_memory(machine: Machine, size_bytes: int) -> MissingValues | None:
    """Return why so many more bytes carry no values, or None if they do."""
    if size_bytes > _ALWAYS_BYTES and machine.value_bytes + size_bytes > machine.limits.max_bytes:
        return _TOO_MUCH_MEMORY
    return None


def explained(tensor: VirtualTensor, missing: MissingValues, limits: ValueLimits) -> str:
    """Return why a tensor has no values, and by which option it would have."""
    option = _OPTIONS[missing.option]
    return (
        f"this {tensor.dtype} tensor of shape {tuple(tensor.shape)} has no values: {missing.why} "
        f"{option}={getattr(limits, missing.option)}; choose smaller sizes, or raise {option}= of "
        "gpulab.virtual_gpu(...)"
    )
