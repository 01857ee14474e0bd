"""Find the GPU that an operator runs on, and refuse tensors on other devices."""

from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from gpulab.core.errors import NotModelledError, VirtualGpuError
from gpulab.core.torch_private import arguments_of, overload_name
from gpulab.virtual._streams import index_of
from gpulab.virtual.operators import Operator, operator_of
from gpulab.virtual.simulator import SimulatedGpu, active
from gpulab.virtual.tensors import VirtualTensor


def check_host_tensors(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse host tensors together with tensors of a GPU, except as indices or lengths.

    Raises
    ------
    NotModelledError
        If a tensor has no values because PyTorch made it on the meta device.
    RuntimeError
        With PyTorch's message.
    """
    if any(
        isinstance(item, torch.Tensor) and item.is_meta and not isinstance(item, VirtualTensor)
        for item in tree_leaves([args, kwargs])
    ):
        raise NotModelledError(
            f"a tensor that PyTorch made without values reached {operator.name}; make it "
            "with torch.tensor(...) first, or run this part on the CPU"
        )
    model = operator.model
    if model.takes_host_indices and not isinstance(args[0], VirtualTensor):
        raise RuntimeError(
            "indices should be either on cpu or on the same device as the indexed tensor (cpu)"
        )
    if not (model.takes_host_indices or model.takes_lengths):
        raise RuntimeError(_mixed_devices(operator.func, args, kwargs))


def check_host_numbers(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a host tensor without dimensions, unless CUDA's kernel takes it for a number.

    Raises
    ------
    RuntimeError
        With PyTorch's message.
    """
    # Indices are on the GPU by now: PyTorch, and so the dispatcher, moves them there.
    allowed = operator.host_numbers
    for name, tensor in _named_tensors(operator.func, args, kwargs):
        if name not in allowed and not isinstance(tensor, VirtualTensor) and not tensor.dim():
            raise RuntimeError(_mixed_devices(operator.func, args, kwargs))


def named_gpu(device: torch.device | None) -> SimulatedGpu:
    """Return the GPU that a device names, or the current one if it is no GPU or None."""
    machine = active()
    is_named = device is not None and device.type == "cuda"
    return machine.gpus[index_of(device, machine)] if is_named else machine.gpu


def refuse_far_apart(
    tensors: list[VirtualTensor],
    func: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Refuse tensors of several GPUs, or of another virtual machine.

    Raises
    ------
    RuntimeError
        With PyTorch's message.
    VirtualGpuError
        If a tensor belongs to another virtual machine.
    """
    machine = active()
    for storage in [tensor.storage_block for tensor in tensors]:
        if storage.machine is not machine:
            raise VirtualGpuError(
                f"a tensor of another virtual GPU ({storage.gpu.spec.name}) is used; copy it with "
                ".cpu() while that GPU is in use, and move the copy to this one"
            )
    # As in PyTorch, a tensor without dimensions may be on any device.
    first = tensors[0].storage_block.gpu
    if any(tensor.dim() for tensor in tensors if tensor.storage_block.gpu is not first):
        raise RuntimeError(_mixed_devices(func, args, kwargs))


def _mixed_devices(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return PyTorch's message for a call whose tensors are on several devices."""
    tensors = _named_tensors(func, args, kwargs)
    # A tensor without dimensions may be on the host, so PyTorch's message names none of them,
    # unless all others are on one device.
    placed = [(name, tensor.device) for name, tensor in tensors if tensor.dim()]
    if len({device for _, device in placed}) < 2:  # noqa: PLR2004  # two devices
        placed = [(name, tensor.device) for name, tensor in tensors]
    first = placed[0][1]
    name, other = next(item for item in placed if item[1] != first)
    expected = "Expected all tensors to be on the same device, but"
    if torch.Tag.pointwise in func.tags and operator_of(func).model.host_numbers is None:
        return f"{expected} found at least two devices, {first} and {other}!"
    overload = "" if overload_name(func) == "default" else f"{overload_name(func)}_"
    method = f"wrapper_CUDA_{overload}{func.overloadpacket.__name__}"
    return (
        f"{expected} got {name} is on {other}, different from other tensors on {first} "
        f"(when checking argument in method {method})"
    )


def _named_tensors(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[str, torch.Tensor]]:
    """Return the tensors of a call, each with the name of its argument."""
    named = [(item.name, value) for item, value in zip(arguments_of(func), args, strict=False)]
    return [
        (name, tensor)
        for name, value in (*named, *kwargs.items())
        for tensor in (value if isinstance(value, (list, tuple)) else (value,))
        if isinstance(tensor, torch.Tensor)
    ]
