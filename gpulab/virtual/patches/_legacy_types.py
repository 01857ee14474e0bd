"""``torch.cuda.FloatTensor`` and similar types, and ``Tensor.type``, for old programs."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from gpulab.core.torch_private import disable_dispatch
from gpulab.virtual.dispatch import VirtualStorage
from gpulab.virtual.simulator import Machine
from gpulab.virtual.tensors import VirtualTensor, wrap

_NAMES = (
    *("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"),
)
# PyTorch has a class for each of these on the host, such as torch.FloatTensor.
_DTYPES: dict[str, torch.dtype] = {name: getattr(torch, f"{name}Tensor").dtype for name in _NAMES}


class LegacyType(type):
    """The metaclass of ``torch.cuda.FloatTensor`` and similar types on the virtual GPU."""

    dtype: torch.dtype
    is_cuda = True
    is_sparse = False
    layout = torch.strided

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, VirtualTensor) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, device: Any = None) -> torch.Tensor:
        """Return a tensor from sizes, a list, a tensor, a storage, or nothing."""
        return _make(cls.dtype, args, torch.device("cuda" if device is None else device))


def _make(dtype: torch.dtype, args: tuple[Any, ...], device: torch.device) -> torch.Tensor:
    if device.type != "cuda":
        raise RuntimeError(
            f"legacy constructor expects device type: cuda but device type: {device.type} "
            "was passed"
        )
    if len(args) != 1 or isinstance(args[0], (int, torch.Size)):
        sizes = args[0] if len(args) == 1 and isinstance(args[0], torch.Size) else args
        # As in PyTorch: sizes make an uninitialised tensor, and no argument makes an empty one.
        return torch.empty(sizes or (0,), dtype=dtype, device=device)
    return _of_one(dtype, args[0], device)


def _of_one(dtype: torch.dtype, source: Any, device: torch.device) -> torch.Tensor:
    """Return a tensor from one argument that is not a size."""
    # As PyTorch does, a tensor made from a tensor of the same type is a view of it.
    if isinstance(source, VirtualTensor) and source.dtype is dtype:
        return wrap(source.layout_key, source.storage_block, source.offset)
    if isinstance(source, torch.Tensor):
        raise TypeError(f"expected {type_name(dtype)} (got {source.type()})")
    if isinstance(source, VirtualStorage):
        return torch.empty(0, dtype=dtype, device=device).set_(source)
    if not isinstance(source, Sequence) and not hasattr(source, "__array__"):
        raise TypeError(f"new(): data must be a sequence (got {type(source).__name__})")
    return torch.tensor(source, dtype=dtype, device=device)


def _make_type(name: str) -> LegacyType:
    legacy_type = LegacyType(f"{name}Tensor", (), {"__module__": "torch.cuda"})
    legacy_type.dtype = _DTYPES[name]
    return legacy_type


# One class for each type in the whole process, because a program may keep one from one
# virtual_gpu() context to the next.
TYPES = {f"{name}Tensor": _make_type(name) for name in _DTYPES}


@cache
def type_name(dtype: torch.dtype) -> str:
    """Return the name that ``Tensor.type()`` gives to a CUDA tensor of ``dtype``."""
    guard = disable_dispatch()
    try:
        on_host = str(torch.empty(0, dtype=dtype, device="cpu").type())
    finally:
        del guard
    return on_host.replace("torch.", "torch.cuda.", 1)


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:  # noqa: ARG001 # as every patch
    """Return the types, and the functions that convert tensors to them."""
    original_type, original_type_as = torch.Tensor.type, torch.Tensor.type_as

    def convert(self: torch.Tensor, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        target = _cuda_type(dtype)
        if target is None:
            return original_type(self, dtype, *args, **kwargs)
        return self.to(torch.device("cuda"), target, *args, **kwargs)

    def type_as(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        if isinstance(other, VirtualTensor):
            return self.to(other.device, other.dtype)
        return original_type_as(self, other)

    return [(torch.cuda, dict(TYPES)), (torch.Tensor, {"type": convert, "type_as": type_as})]


def _cuda_type(wanted: Any) -> torch.dtype | None:
    """Return the element type for the name or class of a CUDA tensor; None for others."""
    name = wanted if isinstance(wanted, str) else _name_of_class(wanted)
    head, _, last = name.rpartition(".")
    return _DTYPES.get(last.removesuffix("Tensor")) if head == "torch.cuda" else None


def _name_of_class(wanted: Any) -> str:
    return f"{wanted.__module__}.{wanted.__name__}" if isinstance(wanted, type) else ""


def _type(
    tensor: VirtualTensor,
    dtype: Any = None,
    non_blocking: bool = False,  # noqa: FBT001, FBT002 # torch's signature
    **_options: Any,
) -> Any:
    """Return the name of a virtual tensor's type, or the tensor converted to ``dtype``."""
    if dtype is None:
        return type_name(tensor.dtype)
    if isinstance(dtype, torch.dtype):
        return tensor.to(dtype, non_blocking=non_blocking)
    target = _cuda_type(dtype)
    if target is not None:
        return tensor.to(target)
    # A type of the host, or PyTorch's own error.
    return tensor.to("cpu", non_blocking=non_blocking).type(dtype)


def _new(tensor: VirtualTensor, *args: Any, device: Any = None) -> torch.Tensor:
    return _make(tensor.dtype, args, tensor.device if device is None else torch.device(device))


def _new_tensor(
    tensor: VirtualTensor, data: Any, *, dtype: Any = None, device: Any = None, **options: Any
) -> torch.Tensor:
    goal = tensor.device if device is None else device
    return torch.tensor(data, dtype=dtype or tensor.dtype, device=goal, **options)


# Set here and not in the class, because the types above need the class.
for _name, _method in {"type": _type, "new": _new, "new_tensor": _new_tensor}.items():
    setattr(VirtualTensor, _name, _method)
