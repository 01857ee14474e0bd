"""Copy between host and GPUs: on which engine, how long, who waits, and when the values move."""

import math
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

import torch

from gpulab.errors import NoValuesError
from gpulab.happens_before import MemoryAccess, user_site
from gpulab.tensor_accesses import forget_when_freed, host_access
from gpulab.virtual.dispatch._deferred_values import Payload, without_dispatch
from gpulab.virtual.dispatch._plain_shapes import without_symbols
from gpulab.virtual.dispatch._references import reference
from gpulab.virtual.dispatch._value_limits import explained, missing_by_size
from gpulab.virtual.simulator import (
    FixedDuration,
    Kind,
    SimulatedGpu,
    StreamTask,
    active,
    is_owner,
)
from gpulab.virtual.simulator.costs import STAGED_BYTES, copy_ns, peer_copy_ns
from gpulab.virtual.tensors import (
    Storage,
    TensorLayout,
    VirtualTensor,
    device_access,
    device_accesses,
    wrap,
)

# Between two GPUs the host takes 7 µs more than for other copies, as seen beside two H200.
_PEER_LAUNCH_NS = 7_000


class MissingValuesWarning(UserWarning):
    """``nan`` was read from a tensor of the virtual GPU that has no values."""


def is_pinned(tensor: torch.Tensor) -> bool:
    """Tell whether a host tensor lies in pinned memory of the virtual machine."""
    return hasattr(tensor.untyped_storage(), "pinned_block")


def pin(tensor: torch.Tensor) -> torch.Tensor:
    """Let a new host tensor lie in pinned memory, until it is dropped.

    On another thread than the one of the virtual GPU that takes no time and no block.
    """
    storage: Any = tensor.untyped_storage()
    storage.pinned_block = None
    if is_owner():
        machine = active()
        block = storage.pinned_block = machine.pin(tensor.nbytes)
        weakref.finalize(storage, machine.pinned.release, block).atexit = False
    return tensor


def _note_use(tensor: torch.Tensor, gpu: SimulatedGpu) -> None:
    """Keep pinned memory from being used again before a copy on the current stream is done."""
    block = tensor.untyped_storage().pinned_block  # type: ignore[attr-defined] # our mark
    if block is not None:
        block.streams[gpu.stream] = None


def to_device(
    source: torch.Tensor, gpu: SimulatedGpu, layout: TensorLayout, *, non_blocking: bool = False
) -> VirtualTensor:
    """Copy a host tensor of the same type to new memory of ``gpu``, where it gets this layout."""
    machine = active()
    storage = Storage(machine, gpu, layout.span_bytes, missing_by_size(machine, layout))
    target = wrap(layout, storage)
    copy_in(target, source.detach(), pinned=is_pinned(source), non_blocking=non_blocking)
    return target


def to_host(source: VirtualTensor, *, non_blocking: bool = False) -> torch.Tensor:
    """Copy a virtual tensor to new host memory; values that are not computed become ``nan``."""
    key = source.layout_key
    # Gaps and repetitions are not copied; the order of the dimensions is kept.
    shape = torch.empty_strided(key.sizes, key.strides, dtype=key.dtype, device="meta")
    with without_symbols():
        target = torch.empty_like(shape, device="cpu")
    if non_blocking:
        pin(target)  # as PyTorch: only then can the copy go on while the host does
    copy_out(target, source, non_blocking=non_blocking)
    return target


def copy_in(
    target: VirtualTensor, source: torch.Tensor, *, pinned: bool, non_blocking: bool
) -> None:
    """Copy host memory into a virtual tensor."""
    on_device = reference(target)
    # Pageable memory is read before the call returns, pinned memory only when the copy runs.
    held = source if pinned else source.detach().clone()

    def move(_seed: int) -> None:
        if on_device.values.missing is None:
            on_device.to_write().copy_(held)

    is_staged = target.layout_key.size_bytes <= STAGED_BYTES
    waits = not (non_blocking if pinned else is_staged)
    task = _copy_task(Kind.COPY_IN, target, pinned=pinned, move=move)
    if pinned and non_blocking:
        _note_use(source, target.storage_block.gpu)
    accesses = [device_access(target, is_write=True)] if _is_watched() else []
    if pinned and accesses:
        accesses.append(_host_access(source, is_write=False))
    _launch(task, accesses, waits=waits)


def copy_out(target: torch.Tensor, source: VirtualTensor, *, non_blocking: bool) -> None:
    """Copy a virtual tensor into host memory."""
    on_device = reference(source)
    pinned = is_pinned(target)
    if not source.has_values:
        _stand_in(source)  # refuses now what could not be refused when the copy ends
    # Where no value is carried at all nobody looks, and filling takes longer than all the rest.
    may_look = active().limits.max_elements > 0

    def move(_seed: int) -> None:
        if on_device.values.missing is None:
            target.detach().copy_(on_device.view())
        elif may_look:
            target.detach().fill_(math.nan)

    task = _copy_task(Kind.COPY_OUT, source, pinned=pinned, move=move)
    if pinned and non_blocking:
        _note_use(target, source.storage_block.gpu)
    accesses = [device_access(source, is_write=False)] if _is_watched() else []
    if pinned and accesses:
        accesses.append(_host_access(target, is_write=True))
    _launch(task, accesses, waits=not (pinned and non_blocking))


def copy_across(target: VirtualTensor, source: VirtualTensor) -> None:
    """Copy between two GPUs, on the current stream of the source's.

    As PyTorch does: the stream of the target's GPU waits for the copy, and the copy for it.
    """
    machine = active()
    written, read = reference(target), reference(source)
    target.storage_block.set_missing(source.storage_block.values.missing)
    here, there = source.storage_block.gpu.stream, target.storage_block.gpu.stream

    def move(_seed: int) -> None:
        if written.values.missing is None:
            written.to_write().copy_(read.view())

    task = _copy_task(Kind.COPY_PEER, source, pinned=True, move=move)
    machine.host.spend(_PEER_LAUNCH_NS)
    cost_ns = machine.host.costs.stream_wait_ns
    machine.order(there, here, cost_ns)
    accesses = []
    if _is_watched():
        accesses = device_accesses([source], [target])
    _launch(task, accesses, waits=False)
    machine.order(here, there, cost_ns)


def read_item(source: VirtualTensor) -> Any:
    """Return the one value of a tensor, after waiting for it."""
    on_device = reference(source)
    accesses = [device_access(source, is_write=False)] if _is_watched() else []
    _launch(_copy_task(Kind.COPY_OUT, source, pinned=True, move=None), accesses, waits=True)
    if on_device.values.missing is not None:
        return _stand_in(source)
    return on_device.view().item()


def require_values(tensor: VirtualTensor, where: str = "") -> None:
    """Refuse a tensor whose values are not computed; ``where`` it is, as ``["fc.weight"]``.

    Raises
    ------
    NoValuesError
        Naming the limits and how to raise them.
    """
    missing = tensor.storage_block.values.missing
    if missing is not None:
        reason = explained(tensor, missing, active().limits)
        raise NoValuesError(f"{where}: {reason}" if where else reason)


def _stand_in(tensor: VirtualTensor) -> float:
    """Return what stands for a value that was not computed, or refuse where nothing could."""
    if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        require_values(tensor)
    machine, missing = active(), tensor.storage_block.values.missing
    # Who has switched values off knows; the others are told once.
    if missing is not None and machine.limits.max_elements and not machine.has_warned:
        machine.has_warned = True
        message = (
            f"nan stands for what was not computed: {explained(tensor, missing, machine.limits)}"
        )
        warnings.warn_explicit(message, MissingValuesWarning, *user_site())
    return math.nan


def _is_watched() -> bool:
    return active().hazards is not None


def _host_access(tensor: torch.Tensor, *, is_write: bool) -> MemoryAccess:
    checker = active().hazards
    if checker is not None:
        forget_when_freed(checker, tensor)
    return host_access(tensor, is_write=is_write)


def _refuse_pageable(gpu: SimulatedGpu) -> None:
    """Refuse a pageable copy into a graph: its host memory may be gone at the replay."""
    capture = active().capture
    if capture is not None and capture.has(gpu.stream):
        raise RuntimeError(
            "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the "
            "CPU tensor is pinned. Please use tensor.pin_memory() or allocate the tensor with "
            "pin_memory=True."
        )


def _copy_task(
    kind: Kind, on_device: VirtualTensor, *, pinned: bool, move: Payload | None
) -> StreamTask:
    gpu = on_device.storage_block.gpu
    size_bytes = on_device.layout_key.size_bytes
    if not pinned:
        _refuse_pageable(gpu)
    if kind is Kind.COPY_PEER:
        duration_ns = peer_copy_ns(size_bytes, gpu.spec)
    else:
        duration_ns = copy_ns(size_bytes, gpu.spec, pinned=pinned)
    payload = without_dispatch(move, f"a {kind.value}") if move is not None else None
    return StreamTask(
        kind, gpu.stream, name=kind.value, demand=FixedDuration(duration_ns, 0), payload=payload
    )


def _launch(task: StreamTask, accesses: Sequence[MemoryAccess], *, waits: bool) -> None:
    machine = active()
    if waits and machine.capture is not None and machine.capture.has(task.stream):
        machine.require_no_capture()
    if waits:
        machine.note_hidden_wait()
    machine.launch(task, machine.host.costs.copy_launch_ns, accesses)
    if waits:
        machine.host.wait(task)
        if machine.hazards is not None:
            machine.hazards.host_wait_stream(task.stream.key)
