"""Lazy modules, such as ``nn.LazyLinear``, whose tensors have no sizes before the first call."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch.nn import parameter
from torch.nn.parameter import is_lazy

from gpulab.core.torch_private import UninitializedTensor, disable_torch_function, swap_tensors
from gpulab.virtual.simulator import Machine
from gpulab.virtual.tensors import VirtualTensor


class _OnDevice:
    """A tensor on the virtual GPU that has no shape yet."""

    on_host: type
    cls_to_become = VirtualTensor  # its class after PyTorch's own materialize()
    __str__ = UninitializedTensor.__repr__  # a virtual tensor would show its values

    def __reduce_ex__(self: Any, _protocol: Any) -> tuple[Any, ...]:
        return self.on_host, (self.requires_grad,)


class UninitializedParameter(_OnDevice, parameter.UninitializedParameter, VirtualTensor):
    """A parameter on the virtual GPU that has no shape yet."""

    on_host = parameter.UninitializedParameter


class UninitializedBuffer(_OnDevice, parameter.UninitializedBuffer, VirtualTensor):
    """A buffer on the virtual GPU that has no shape yet."""

    on_host = parameter.UninitializedBuffer


_ON_DEVICE = {cls.on_host: cls for cls in (UninitializedParameter, UninitializedBuffer)}


def replacements(_machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacement with which PyTorch makes a parameter or a buffer without a shape."""
    original = torch.Tensor._make_subclass  # noqa: SLF001 # PyTorch's

    def make(cls: type, data: Any, require_grad: bool = False, **options: Any) -> Any:  # noqa: FBT001, FBT002 # torch's signature
        cls = getattr(cls, "on_host", cls)
        if cls not in _ON_DEVICE or not isinstance(data, VirtualTensor):
            return original(cls, data, require_grad, **options)
        data._is_param = cls is parameter.UninitializedParameter  # noqa: SLF001 # PyTorch's own mark
        data.requires_grad_(require_grad).__class__ = _ON_DEVICE[cls]
        return data

    return [(torch.Tensor, {"_make_subclass": staticmethod(make)})]


def moving_lazy_tensors(apply: Any) -> Any:
    """Return a ``Module._apply`` that also moves tensors that have no sizes yet."""

    @wraps(apply)
    def moved(self: Any, fn: Callable[[Any], Any], *args: Any, **kwargs: Any) -> Any:
        # This is not parameters(), which would take the host's time.
        members: list[tuple[Any, str, Any]] = [
            (owner, name, item)
            for owner in (self._parameters, self._buffers)
            for name, item in owner.items()
            if is_lazy(item)
        ]
        try:
            for owner, name, item in members:
                # Hidden from PyTorch, which would make an ordinary empty parameter of it.
                owner[name] = None
                to = fn(item)
                made = type(item)(item.requires_grad, to.device, to.dtype)
                with disable_torch_function():  # or the tensor would refuse the swap's questions
                    swap_tensors(item, made)
            return apply(self, fn, *args, **kwargs)
        finally:
            for owner, name, item in members:
                owner[name] = item

    return moved
