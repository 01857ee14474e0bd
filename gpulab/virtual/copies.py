"""Copies between host and device: which engine, how long, who waits, and when the values move."""

import math
from collections.abc import Callable
from typing import Any

import torch

from gpulab.errors import NoValuesError
from gpulab.virtual.host import Host
from gpulab.virtual.machine import Machine, active
from gpulab.virtual.storage import Layout, Storage, layout_of
from gpulab.virtual.task import Fixed, Kind, Task
from gpulab.virtual.tensor import VirtualTensor, wrap
from gpulab.virtual.values import reference, unseen

_NS = 1e9

# Seen on an H200: pinned memory moves at 0.87 of the link's rate, pageable memory at 22.6 GB/s in
# and 16.3 GB/s out, whatever the link, because the host copies it first; and each copy takes
# about 1.4 µs before the first byte.
_PINNED_SHARE = 0.87
_PAGEABLE_BYTES_PER_S = {Kind.COPY_IN: 22.6e9, Kind.COPY_OUT: 16.3e9}
_COPY_FLOOR_NS = 1_400
# A pageable copy of up to 64 KiB to the device is put aside at once, and the host goes on.
_STAGED_BYTES = 65_536
_PINNING_BYTES_PER_S = 5e9
_PINNING_FLOOR_NS = 100_000


def is_pinned(tensor: torch.Tensor) -> bool:
    """Tell whether a host tensor lies in pinned memory of the virtual machine."""
    return getattr(tensor.untyped_storage(), "is_pinned_virtually", False)


def pin(tensor: torch.Tensor, host: Host | None = None) -> torch.Tensor:
    """Mark a host tensor's memory as pinned; with ``host``, at the cost of pinning it."""
    tensor.untyped_storage().is_pinned_virtually = True  # type: ignore[attr-defined] # our mark
    if host is not None:
        host.spend(_PINNING_FLOOR_NS + round(tensor.nbytes / _PINNING_BYTES_PER_S * _NS))
    return tensor


def known_by_size(machine: Machine, layout: Layout) -> bool:
    """Tell whether a new tensor of this layout is small enough to carry values."""
    return layout.span_bytes <= machine.limits.max_elements * layout.dtype.itemsize


def to_device(
    source: torch.Tensor, dtype: torch.dtype, *, non_blocking: bool = False
) -> VirtualTensor:
    """Copy a host tensor to new memory on the device."""
    machine = active()
    converted = source.detach().to(dtype)
    layout = layout_of(converted)
    storage = Storage(machine, layout.span_bytes, known=known_by_size(machine, layout))
    target = wrap(layout, storage)
    copy_in(target, converted, pinned=is_pinned(source), non_blocking=non_blocking)
    return target


def to_host(source: VirtualTensor, *, non_blocking: bool = False) -> torch.Tensor:
    """Copy a virtual tensor to new host memory; values that are not computed become ``nan``."""
    key = source.layout_key
    target = torch.empty_strided(key.sizes, key.strides, dtype=key.dtype)
    if non_blocking:
        pin(target)  # as PyTorch: only then can the copy go on while the host does
    copy_out(target, source, non_blocking=non_blocking)
    return target


def copy_in(
    target: VirtualTensor, source: torch.Tensor, *, pinned: bool, non_blocking: bool
) -> None:
    """Copy host memory into a virtual tensor."""
    place = reference(target)
    # Pageable memory is read before the call returns, pinned memory only when the copy runs.
    held = source if pinned else source.detach().clone()

    def move() -> None:
        if place.values.known:
            place.view().copy_(held)

    task = _launch(Kind.COPY_IN, target, pinned=pinned, move=move)
    is_staged = target.layout_key.size_bytes <= _STAGED_BYTES
    waits = not (non_blocking if pinned else is_staged)
    if waits:
        active().host.wait(task)


def copy_out(target: torch.Tensor, source: VirtualTensor, *, non_blocking: bool) -> None:
    """Copy a virtual tensor into host memory."""
    place = reference(source)
    pinned = is_pinned(target)
    if not source.has_values:
        _stand_in(source)  # refuses now what could not be refused when the copy ends

    def move() -> None:
        if place.values.known:
            target.detach().copy_(place.view())
        else:
            target.detach().fill_(math.nan)

    task = _launch(Kind.COPY_OUT, source, pinned=pinned, move=move)
    if not (pinned and non_blocking):
        active().host.wait(task)


def read_item(source: VirtualTensor) -> Any:
    """Return the one value of a tensor, after waiting for it."""
    machine = active()
    place = reference(source)
    machine.host.wait(_launch(Kind.COPY_OUT, source, pinned=True, move=None))
    return place.view().item() if place.values.known else _stand_in(source)


def require_values(tensor: VirtualTensor) -> None:
    """Refuse a tensor whose values are not computed.

    Raises
    ------
    NoValuesError
        Naming the limits and how to raise them.
    """
    if tensor.has_values:
        return
    limits = active().limits
    raise NoValuesError(
        f"this {tensor.dtype} tensor of shape {tuple(tensor.shape)} has no values: the virtual "
        f"GPU computes them up to {limits.max_elements} elements and {limits.max_flops} FLOPs an "
        "operation; choose smaller sizes, or raise max_value_elements= and max_value_flops= of "
        "gpulab.virtual_gpu(...)"
    )


def _stand_in(tensor: VirtualTensor) -> float:
    """Return what stands for a value that was not computed, or refuse where nothing could."""
    if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        require_values(tensor)
    return math.nan


def _launch(
    kind: Kind, on_device: VirtualTensor, *, pinned: bool, move: Callable[[], None] | None
) -> Task:
    machine = active()
    size_bytes = on_device.layout_key.size_bytes
    rate = machine.spec.link_bytes_per_s * _PINNED_SHARE
    if not pinned:
        rate = min(rate, _PAGEABLE_BYTES_PER_S[kind])
    duration_ns = _COPY_FLOOR_NS + round(size_bytes / rate * _NS)
    task = Task(
        kind,
        machine.stream,
        name=kind.value,
        demand=Fixed(duration_ns, 0),
        payload=unseen(move) if move is not None else None,
    )
    return machine.host.launch(task, machine.host.costs.copy_launch_ns)
