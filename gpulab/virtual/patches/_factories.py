"""``torch.tensor``, ``as_tensor`` and ``asarray`` for tensors on the virtual GPU."""

import warnings
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from gpulab.core.torch_private import DeviceContext, function_modes
from gpulab.core.tracebacks import ends_at_the_call
from gpulab.virtual._streams import index_of
from gpulab.virtual.simulator import Machine
from gpulab.virtual.tensors import VirtualTensor, cuda_device

_COPY_ADVICE = (  # PyTorch's own warning
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
)


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replaced factories."""
    # PyTorch runs these in C++ without an operator, so the dispatcher does not see them.
    factories = {
        "tensor": _tensor(machine, torch.tensor),
        "as_tensor": _as_tensor(machine, torch.as_tensor),
        "asarray": _asarray(machine, torch.asarray),
    }
    # Messages and stack traces show the name.
    for name, factory in factories.items():
        factory.__name__ = name
    default_type = _set_default_type(torch.set_default_tensor_type)
    names = {**factories, "set_default_tensor_type": default_type}
    return [(torch, {name: ends_at_the_call(function) for name, function in names.items()})]


def _target(machine: Machine, device: Any) -> torch.device | None:
    """Return the device of a new tensor, with its index; None means the default, the host."""
    if device is None:
        device = default_device()
    if device is None:
        return None
    if isinstance(device, int):
        return cuda_device(index_of(device, machine))
    named = torch.device(device)
    return cuda_device(index_of(named, machine)) if named.type == "cuda" else named


def default_device() -> torch.device | None:
    """Return the device set by ``set_default_device`` or ``with torch.device(...)``, or None."""
    # The innermost mode wins, as in PyTorch.
    devices = [mode.device for mode in function_modes() if isinstance(mode, DeviceContext)]
    return devices[-1] if devices else None


def _tensor(machine: Machine, original: Any) -> Callable[..., Any]:
    def make(
        data: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> torch.Tensor:
        target = _target(machine, device)
        if isinstance(data, torch.Tensor):
            warnings.warn(_COPY_ADVICE, UserWarning, stacklevel=3)
            result = data.detach().to(target or data.device, dtype or data.dtype, copy=True)
        else:
            result = _from_numbers(partial(original, device="cpu"), data, dtype)
            result = result.to(target) if target is not None else result
        if pin_memory and result.device.type == "cpu":
            result = result.pin_memory()
        return result.requires_grad_() if requires_grad else result

    return make


def _from_numbers(original: Any, data: Any, dtype: Any) -> torch.Tensor:
    """Return a host tensor of numbers, some of which may be virtual tensors of one element."""
    # The plain call is tried first, because most data contain no tensors and a search in them
    # would take longer than the call.
    try:
        result: torch.Tensor = original(data, dtype=dtype)
    except (RuntimeError, TypeError, ValueError) as error:
        leaves = tree_leaves(data)
        dtypes = {item.dtype for item in leaves if isinstance(item, VirtualTensor)}
        if not dtypes:
            raise error.with_traceback(None) from None
        on_host = [item for item in leaves if not isinstance(item, VirtualTensor)]
        if on_host:
            dtypes.add(original(on_host, dtype=None).dtype)
        numbers = tree_map_only(VirtualTensor, VirtualTensor.item, data)
        # PyTorch promotes the types of all elements, as it does for an operator on tensors.
        result = original(numbers, dtype=dtype or reduce(torch.promote_types, dtypes))
    return result


def _as_tensor(machine: Machine, original: Any) -> Callable[..., Any]:
    def make(data: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
        target = _target(machine, device)
        if isinstance(data, VirtualTensor):
            return data.to(target or data.device, dtype or data.dtype)
        result = _from_numbers(partial(original, device="cpu"), data, dtype)
        return result.to(target) if target is not None else result

    return make


def _asarray(machine: Machine, original: Any) -> Callable[..., Any]:
    def make(
        obj: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        requires_grad: bool = False,
    ) -> torch.Tensor:
        target = _target(machine, device)
        if not isinstance(obj, VirtualTensor):
            if target is None or target.type != "cuda":
                options = {"device": target, "copy": copy, "requires_grad": requires_grad}
                return _from_numbers(partial(original, **options), obj, dtype)
            obj = _from_numbers(partial(original, device="cpu"), obj, dtype)
        goal = target or obj.device
        if copy is False and obj.device != goal:
            raise ValueError(f"can't alias tensor from device '{obj.device}' to '{goal.type}'.")
        result: torch.Tensor = obj.detach().to(goal, dtype or obj.dtype, copy=bool(copy))
        return result.requires_grad_() if requires_grad else result

    return make


def _set_default_type(original: Any) -> Callable[..., None]:
    def set_default_type(wanted: Any) -> None:
        name = wanted if isinstance(wanted, str) else f"{wanted.__module__}.{wanted.__name__}"
        original(name.replace("torch.cuda.", "torch."))
        torch.set_default_device("cuda" if name.startswith("torch.cuda.") else None)

    return set_default_type
