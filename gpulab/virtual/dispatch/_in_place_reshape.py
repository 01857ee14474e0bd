"""Change the layout of a tensor: ``resize_``, ``t_`` and ``as_strided``."""

from typing import Any

from gpulab.virtual.dispatch._effects import Reshaped
from gpulab.virtual.dispatch._moved_values import move
from gpulab.virtual.dispatch._value_limits import missing_by_size
from gpulab.virtual.simulator import FixedDuration, Kind, StreamTask, active
from gpulab.virtual.tensors import (
    MissingValues,
    Storage,
    TensorLayout,
    VirtualTensor,
    layout,
    reference,
    wrap,
)

# The duration of the kernel that copies the old values of a grown tensor.
_GROWING_NS = 2_000


def reshape(tensor: VirtualTensor, change: Reshaped) -> None:
    """Give ``tensor`` another layout, and new memory if the old is too small."""
    # Memory is only ever added. As in PyTorch, resize_() to a smaller size keeps the storage.
    storage, offset = tensor.storage_block, tensor.offset + change.offset
    end_bytes = offset * tensor.dtype.itemsize + change.layout.span_bytes
    if end_bytes > storage.values.size_bytes:
        missing = missing_by_size(active(), change.layout)
        storage = _grown(tensor, end_bytes, tensor.storage_block.values.missing or missing)
    tensor.become(wrap(change.layout, storage, offset, like=tensor))


def _grown(tensor: VirtualTensor, size_bytes: int, missing: MissingValues | None) -> Storage:
    """Return larger memory, and launch the kernel that copies the values of ``tensor`` into it."""
    machine, old = active(), reference(tensor)
    gpu = tensor.storage_block.gpu
    storage = Storage(machine, gpu, size_bytes, missing)
    if tensor.layout_key.n_elements:
        new = reference(wrap(tensor.layout_key, storage, tensor.offset))

        # A task of the stream, so that the values of kernels launched before are copied, too.
        def end(_seed: int) -> None:
            move(new, old, "a resize_")

        payload = end if missing is None else None
        demand = FixedDuration(_GROWING_NS)
        task = StreamTask(Kind.KERNEL, gpu.stream, name="resize", demand=demand, payload=payload)
        machine.launch(task, machine.host.costs.copy_launch_ns)
    return storage


def as_strided(_func: Any, args: Any, kwargs: Any) -> Any:
    """Return a view of a tensor's storage with the given sizes, strides and offset."""
    tensor, sizes, strides = args[:3]
    # Unlike for other views, the offset counts from the start of the storage, not of the tensor.
    storage_offset = args[3] if len(args) > 3 else kwargs.get("storage_offset")  # noqa: PLR2004 # its fourth argument
    offset = tensor.offset if storage_offset is None else storage_offset
    if len(sizes) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(step < 0 for step in strides):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(strides)}"
        )
    view = layout(tuple(sizes), tuple(strides), tensor.dtype)
    _require_capacity(tensor, view, offset)
    machine = active()
    machine.host.spend(machine.host.costs.view_ns)
    return wrap(view, tensor.storage_block, offset, like=tensor)


def _require_capacity(tensor: VirtualTensor, view: TensorLayout, offset: int) -> None:
    needed_bytes = offset * tensor.dtype.itemsize + view.span_bytes
    held_bytes = tensor.storage_block.values.size_bytes
    if view.n_elements and needed_bytes > held_bytes:
        raise RuntimeError(
            f"setStorage: sizes {list(view.sizes)}, strides {list(view.strides)}, storage offset "
            f"{offset}, and itemsize {tensor.dtype.itemsize} requiring a storage size of "
            f"{needed_bytes} are out of bounds for storage of size {held_bytes}"
        )
