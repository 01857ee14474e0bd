"""Find the GPU that an operator runs on, and refuse tensors on other devices."""

from collections.abc import Iterator
from typing import Any

import torch

from gpulab.core.errors import NotModelledError, VirtualGpuError
from gpulab.virtual._streams import index_of
from gpulab.virtual.dispatch._argument_checks import mixed_devices
from gpulab.virtual.operators import Operator
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
        item.is_meta
        for item in _flat([*args, *kwargs.values()])
        if not isinstance(item, VirtualTensor)
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
        raise RuntimeError(mixed_devices(operator.func, args, kwargs))


def _flat(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors among arguments, including those in lists."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _flat(item)


def gpu_of(
    tensors: list[VirtualTensor],
    device: Any,
    func: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> SimulatedGpu:
    """Return the GPU that a call runs on: the one that has all its tensors.

    Without tensors it is the GPU named by ``device``, or else the current one.

    Raises
    ------
    RuntimeError
        If the tensors are on several GPUs, with PyTorch's message.
    VirtualGpuError
        If a tensor belongs to another virtual machine.
    """
    machine = active()
    if not tensors or (device is not None and device.type == "cuda"):
        is_named = device is not None and device.type == "cuda"
        return machine.gpus[index_of(device, machine)] if is_named else machine.gpu
    first = tensors[0].storage_block
    elsewhere = [tensor for tensor in tensors if tensor.storage_block.gpu is not first.gpu]
    if elsewhere or first.machine is not machine:
        _refuse_far_apart(tensors, elsewhere, func, args, kwargs)
    return first.gpu


def _refuse_far_apart(
    tensors: list[VirtualTensor],
    elsewhere: list[VirtualTensor],
    func: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    machine = active()
    for storage in [tensor.storage_block for tensor in tensors]:
        if storage.machine is not machine:
            raise VirtualGpuError(
                f"a tensor of another virtual GPU ({storage.gpu.spec.name}) is used; copy it with "
                ".cpu() while that GPU is in use, and move the copy to this one"
            )
    # As in PyTorch, a tensor without dimensions may be on any device.
    if any(tensor.dim() for tensor in elsewhere):
        raise RuntimeError(mixed_devices(func, args, kwargs))
