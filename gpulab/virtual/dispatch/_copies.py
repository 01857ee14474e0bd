"""Copies between host and GPUs: their engine, their duration, who waits, and when bytes move."""

import math
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from gpulab.core.errors import NoValuesError
from gpulab.core.torch_private import next_sequence_number
from gpulab.happens_before import MemoryAccess, user_site
from gpulab.happens_before.tensor_accesses import forget_when_freed, host_access
from gpulab.virtual.dispatch._moved_values import move, put, take, take_nothing
from gpulab.virtual.dispatch._plain_shapes import without_symbols
from gpulab.virtual.dispatch._value_limits import explained, missing_by_size
from gpulab.virtual.simulator import (
    HostCopy,
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
    reference,
    wrap,
)

Payload = Callable[[int], None]

# The host needs 7 µs more to launch a copy between two GPUs than another copy, measured on a
# machine with two H200.
_PEER_LAUNCH_NS = 7_000
_NUMBER_BYTES = 8  # of a number that PyTorch reads back inside an operator


class MissingValuesWarning(UserWarning):
    """Warns that ``nan`` was read from a tensor of the virtual GPU that has no values."""


def is_pinned(tensor: torch.Tensor) -> bool:
    """Return whether a host tensor is in pinned memory of the virtual machine."""
    return hasattr(tensor.untyped_storage(), "pinned_block")


def pin(tensor: torch.Tensor) -> torch.Tensor:
    """Mark a new host tensor as pinned, and return it.

    On the thread of the virtual GPU this takes time and a block of pinned memory, which is free
    again when the tensor is dropped. On another thread, such as a data loader's, it costs nothing.
    """
    # The mark is an attribute of the storage, so that every view of the tensor is pinned, too.
    storage: Any = tensor.untyped_storage()
    storage.pinned_block = None
    if is_owner():
        machine = active()
        block = storage.pinned_block = machine.pin(tensor.nbytes)
        # Not at exit: the machine may be gone then, and the process gives all memory back.
        weakref.finalize(storage, machine.pinned.release, block).atexit = False
    return tensor


def _note_use(tensor: torch.Tensor, gpu: SimulatedGpu) -> None:
    """Prevent that pinned memory is used again before the current stream's copy is done."""
    block = tensor.untyped_storage().pinned_block  # type: ignore[attr-defined] # our mark
    if block is not None:
        block.streams[gpu.stream] = None


def to_device(
    source: torch.Tensor, gpu: SimulatedGpu, layout: TensorLayout, *, non_blocking: bool = False
) -> VirtualTensor:
    """Return a copy of a host tensor in new memory of ``gpu``, with this layout."""
    machine = active()
    storage = Storage(machine, gpu, layout.span_bytes, missing_by_size(machine, layout))
    target = wrap(layout, storage)
    # Detached: autograd works above this level and must not record the copy of the bytes.
    copy_in(target, source.detach(), pinned=is_pinned(source), non_blocking=non_blocking)
    return target


def to_host(
    source: VirtualTensor, dtype: torch.dtype | None = None, *, non_blocking: bool = False
) -> torch.Tensor:
    """Return a copy of a virtual tensor in host memory; missing values become ``nan``."""
    key = source.layout_key
    # empty_like gives a dense layout with the same order of dimensions, as PyTorch's cpu() does.
    shape = torch.empty_strided(key.sizes, key.strides, dtype=dtype or key.dtype, device="meta")
    with without_symbols():
        target = torch.empty_like(shape, device="cpu")
    if non_blocking:
        # As PyTorch does: the host can only go on if the target is pinned.
        pin(target)
    copy_out(target, source, non_blocking=non_blocking)
    return target


def copy_in(
    target: VirtualTensor, source: torch.Tensor, *, pinned: bool, non_blocking: bool
) -> None:
    """Copy host memory into a virtual tensor."""
    if target.layout_key.n_elements == 0:
        return
    pinned = pinned and _is_direct(source, target.layout_key)
    on_device = reference(target)
    # Without non_blocking PyTorch waits for the stream after every copy. Otherwise the driver
    # copies a small pageable source into a buffer of its own and returns at once; a larger one
    # makes the host wait.
    is_staged = target.layout_key.size_bytes <= STAGED_BYTES
    waits = not (non_blocking and (pinned or is_staged))
    # The driver reads pageable memory before the call returns, but pinned memory only when the
    # copy runs. So a program that changes pinned memory too early copies the new bytes.
    snapshot = source if pinned or waits else source.detach().clone()

    def end(_seed: int) -> None:
        if on_device.values.missing is None:
            put(on_device, snapshot)

    task = _copy_task(Kind.COPY_IN, *_on_gpu(target), pinned=pinned, payload=end)
    # If the host waits, the copy is done before anybody can drop the memory.
    if pinned and non_blocking:
        _note_use(source, target.storage_block.gpu)
    accesses = _accesses(target, source if pinned else None, is_write=True)
    _launch(task, accesses, waits=waits, is_known=not non_blocking)


def copy_out(target: torch.Tensor, source: VirtualTensor, *, non_blocking: bool) -> None:
    """Copy a virtual tensor into host memory.

    As in PyTorch, the GPU converts the type for a copy that does not block, and otherwise the
    host, so that the copy needs no memory on the GPU.
    """
    if source.layout_key.n_elements == 0:
        return
    converts = target.dtype != source.dtype
    if converts and non_blocking:
        source = cast("VirtualTensor", source.to(target.dtype))
    source = _in_order(source, target)
    on_device = reference(source)
    # The host converts from pageable memory.
    is_direct = (non_blocking or not converts) and _is_direct(target, source.layout_key)
    pinned = is_direct and is_pinned(target)
    if not source.has_values:
        # Raises or warns now, on the line of the program that copies.
        _stand_in(source, target.dtype)
    # With values switched off nobody looks at the result, and filling it with nan would take
    # longer than the rest of the copy.
    may_look = active().limits.max_elements > 0

    def end(_seed: int) -> None:
        if on_device.values.missing is None:
            take(on_device, target)
        elif may_look:
            take_nothing(on_device, target)

    task = _copy_task(Kind.COPY_OUT, *_on_gpu(source), pinned=pinned, payload=end)
    if pinned and non_blocking:
        _note_use(target, source.storage_block.gpu)
    accesses = _accesses(source, target if pinned else None, is_write=False)
    _launch(task, accesses, waits=not (pinned and non_blocking), is_known=not non_blocking)
    if converts and not non_blocking:
        # The task above has converted the values; here is the time that the host takes for it.
        active().host.run(lambda: None, size_bytes=source.layout_key.size_bytes)


def _in_order(source: VirtualTensor, target: torch.Tensor) -> VirtualTensor:
    """Return the source in an order in which the driver can copy its bytes as they lie."""
    key = source.layout_key
    is_same = key.is_dense and target.stride() == key.strides
    if is_same or (source.is_contiguous() and target.is_contiguous()):
        return source
    return cast("VirtualTensor", source.contiguous())


def _is_direct(on_host: torch.Tensor, on_device: TensorLayout) -> bool:
    """Return whether the driver copies from or to the memory of a host tensor itself.

    For other layouts PyTorch makes a dense tensor in between, in pageable memory.
    """
    if on_host.is_contiguous():
        return True
    return on_device.is_dense and on_host.stride() == on_device.strides


def copy_across(target: VirtualTensor, source: VirtualTensor) -> None:
    """Copy a virtual tensor to another GPU, on the current stream of the source's GPU.

    As in PyTorch, the copy waits for the current stream of the target's GPU, and that stream waits
    for the copy.
    """
    machine = active()
    written, read = reference(target), reference(source)
    target.storage_block.set_missing(source.storage_block.values.missing)
    source_stream, target_stream = source.storage_block.gpu.stream, target.storage_block.gpu.stream

    def end(_seed: int) -> None:
        if written.values.missing is None:
            move(written, read, "a copy between GPUs")

    task = _copy_task(Kind.COPY_PEER, *_on_gpu(source), pinned=True, payload=end)
    machine.host.spend(_PEER_LAUNCH_NS)
    cost_ns = machine.host.costs.stream_wait_ns
    machine.order(target_stream, source_stream, cost_ns)
    accesses = device_accesses([source], [target]) if machine.lists_accesses else ()
    _launch(task, accesses, waits=False)
    machine.order(source_stream, target_stream, cost_ns)


def copy_to_show(source: VirtualTensor) -> torch.Tensor | None:
    """Copy a virtual tensor to the host to show it; None, after the same time, without values."""
    if not source.layout_key.is_dense:
        # Here, because the GPU puts it in order, which an operator of the program does.
        source = cast("VirtualTensor", source.contiguous())
    if source.has_values:
        # PyTorch calls this for no operator, and so the new tensor on the host costs no time.
        return active().values.guarded(lambda: to_host(source))
    accesses = _accesses(source, is_write=False)
    task = _copy_task(Kind.COPY_OUT, *_on_gpu(source), pinned=False, payload=None)
    _launch(task, accesses, waits=True)
    return None


def read_item(source: VirtualTensor) -> Any:
    """Wait for a tensor of one element and return its value, as ``Tensor.item`` does."""
    on_device = reference(source)
    accesses = _accesses(source, is_write=False)
    read_back(source.storage_block.gpu, source.layout_key.size_bytes, accesses)
    if on_device.values.missing is not None:
        return _stand_in(source, source.dtype)
    return on_device.view().item()


def read_back(
    gpu: SimulatedGpu,
    size_bytes: int = _NUMBER_BYTES,
    accesses: Sequence[MemoryAccess] = (),
    *,
    by_library: bool = False,
) -> None:
    """Wait for a copy of a number to the host, as PyTorch does where it reads a value.

    ``by_library`` is for a library that waits without PyTorch's knowledge.
    """
    # Nothing is moved: the value is read after the wait. PyTorch copies a single
    # element through pinned memory, so this counts as pinned.
    task = _copy_task(Kind.COPY_OUT, gpu, size_bytes, pinned=True, payload=None)
    _launch(task, accesses, waits=True, is_known=not by_library)


def require_values(tensor: VirtualTensor, where: str = "") -> None:
    """Raise an error if a tensor's values are not computed.

    ``where`` says in the message where the tensor was found, e.g. ``'["fc.weight"]'``.

    Raises
    ------
    NoValuesError
        If it has no values. The message names the limit and the option that raises it.
    """
    missing = tensor.storage_block.values.missing
    if missing is not None:
        reason = explained(tensor, missing, active().limits)
        raise NoValuesError(f"{where}: {reason}" if where else reason)


def _stand_in(tensor: VirtualTensor, dtype: torch.dtype) -> float:
    """Return nan for a value that was not computed, with one warning for each virtual machine.

    Raises
    ------
    NoValuesError
        If ``dtype``, the type in which the value is read, is not a floating point type, because
        integers have no nan.
    """
    if not (dtype.is_floating_point or dtype.is_complex):
        require_values(tensor)
    machine, missing = active(), tensor.storage_block.values.missing
    # A user who switched values off (max_elements is 0) expects nan and needs no warning.
    if missing is not None and machine.limits.max_elements and not machine.has_warned:
        machine.has_warned = True
        message = (
            f"nan stands for what was not computed: {explained(tensor, missing, machine.limits)}"
        )
        # With the program's line: a depth of the stack would name a file of PyTorch or gpulab.
        warnings.warn_explicit(message, MissingValuesWarning, *user_site())
    return math.nan


def _accesses(
    tensor: VirtualTensor, pinned: torch.Tensor | None = None, *, is_write: bool
) -> list[MemoryAccess]:
    """Return what a copy accesses on the device and in pinned memory, if somebody lists it.

    ``is_write`` says whether it writes to the device.
    """
    machine = active()
    if not machine.lists_accesses:
        return []
    accesses = [device_access(tensor, is_write=is_write)]
    if pinned is not None:
        if machine.hazards is not None:
            forget_when_freed(machine.hazards, pinned)
        accesses.append(host_access(pinned, is_write=not is_write))
    return accesses


def _refuse_pageable(gpu: SimulatedGpu) -> None:
    """Raise PyTorch's error for a pageable copy in a CUDA graph."""
    # The host memory of the copy may be gone when the graph is replayed.
    capture = active().capture
    if capture is not None and capture.has(gpu.stream):
        raise RuntimeError(
            "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the "
            "CPU tensor is pinned. Please use tensor.pin_memory() or allocate the tensor with "
            "pin_memory=True."
        )


def _on_gpu(tensor: VirtualTensor) -> tuple[SimulatedGpu, int]:
    """Return the GPU and the number of bytes of a tensor."""
    return tensor.storage_block.gpu, tensor.layout_key.size_bytes


def _copy_task(
    kind: Kind, gpu: SimulatedGpu, size_bytes: int, *, pinned: bool, payload: Payload | None
) -> StreamTask:
    if not pinned:
        _refuse_pageable(gpu)
    if kind is Kind.COPY_PEER:
        duration_ns = peer_copy_ns(size_bytes, gpu.spec)
    else:
        duration_ns = copy_ns(size_bytes, gpu.spec, pinned=pinned)
    demand = HostCopy(duration_ns, 0, is_pinned=pinned, size_bytes=size_bytes)
    return StreamTask(kind, gpu.stream, name=kind.value, demand=demand, payload=payload)


def _launch(
    task: StreamTask, accesses: Sequence[MemoryAccess], *, waits: bool, is_known: bool = True
) -> None:
    """Launch a copy; ``is_known`` says whether PyTorch knows that the host waits for it."""
    machine = active()
    if waits and machine.capture is not None and machine.capture.has(task.stream):
        machine.require_no_capture()
    if waits and is_known:
        machine.note_hidden_wait()
    host_ns = machine.host.costs.copy_launch_ns
    machine.host.begin_operator(
        task.kind, next_sequence_number(), launch_ns=host_ns, takes_lists=False
    )
    machine.launch(task, host_ns, accesses)
    if waits:
        machine.host.wait(task)
        if machine.hazards is not None:
            # The copy was the last work of its stream, so the host has waited for all of it.
            machine.hazards.host_wait_stream(task.stream.key)
