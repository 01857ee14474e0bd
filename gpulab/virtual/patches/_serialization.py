"""Save and load virtual tensors in the same files as a CUDA GPU.

PyTorch saves a tensor as a storage and a view of it. It asks the storage for its device, for its
bytes, and for a copy on another device. A virtual tensor's storage answers all three, so PyTorch's
own code saves and loads, including devices, shared storages and ``map_location``.
"""

import io
import pickle
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.utils.hooks import warn_if_has_hooks

from gpulab.core.errors import NotModelledError
from gpulab.core.torch_private import (
    rebuild_from_type,
    rebuild_parameter,
    rebuild_parameter_with_state,
    rebuild_tensor,
    rebuild_untyped_tensor,
    set_tensor_metadata,
    tensor_metadata,
    tensor_utils,
    untyped_dtypes,
)
from gpulab.virtual.dispatch import VirtualStorage, require_values
from gpulab.virtual.simulator import Machine
from gpulab.virtual.tensors import VirtualTensor, wrap


def replacements(_machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements for ``torch.save`` and for moving a host storage to the device."""
    original_to, original_save = torch.UntypedStorage.to, torch.save
    originally_storage = torch.is_storage

    def to(self: torch.UntypedStorage, *, device: Any, non_blocking: bool = False) -> Any:
        target = torch.device(device)
        if target.type != "cuda":
            return original_to(self, device=target, non_blocking=non_blocking)
        return VirtualStorage.of_host(self, target)

    def save(
        obj: object,
        f: Any,
        pickle_module: Any = pickle,
        pickle_protocol: int = 2,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        _require_all_values(obj, pickle_module, pickle_protocol)
        original_save(obj, f, pickle_module, pickle_protocol, *args, **kwargs)

    def is_storage(obj: object, /) -> bool:
        return isinstance(obj, VirtualStorage) or originally_storage(obj)

    return [
        (torch.UntypedStorage, {"to": to}),
        (tensor_utils, {"set_tensor_metadata": _set_metadata}),
        (torch, {"save": save, "is_storage": is_storage}),
        (torch.serialization, {"save": save}),
    ]


def _require_all_values(obj: object, pickle_module: Any, protocol: int) -> None:
    """Raise NoValuesError if a tensor without values is in ``obj``."""
    # This runs before torch.save opens the file, so that an older file is not overwritten. A
    # pickler finds every tensor that would be saved, wherever it is.

    class Check(pickle_module.Pickler):  # type: ignore[misc] # given by the caller
        def persistent_id(self, item: object) -> str | None:
            if isinstance(item, VirtualTensor) and not item.has_values:
                require_values(item, _path_to(item, obj) or "")
            is_value = isinstance(item, (torch.Tensor, torch.TypedStorage, torch.UntypedStorage))
            return "value" if is_value else None

    Check(io.BytesIO(), protocol=protocol).dump(obj)


def _path_to(item: object, obj: object) -> str | None:
    """Return the path to an object in dicts and lists, e.g. ``["model"]["fc.weight"]``."""
    if item is obj:
        return ""
    if isinstance(obj, torch.nn.Module):
        obj = obj.state_dict(keep_vars=True)
    if isinstance(obj, Mapping):
        parts: Iterable[tuple[object, object]] = obj.items()
    elif isinstance(obj, (list, tuple)):
        parts = enumerate(obj)
    else:
        return None
    for key, part in parts:
        path = _path_to(item, part)
        if path is not None:
            return f"[{key!r}]{path}"
    return None


def _reduce(tensor: VirtualTensor, _protocol: Any) -> tuple[Any, ...]:
    """Return what pickle needs to rebuild the tensor, the same as for a CUDA tensor."""
    # Attributes that the program has set on the tensor are saved, those of gpulab are not.
    own = {*VirtualTensor.__annotations__, "_is_param"}
    state = {name: value for name, value in vars(tensor).items() if name not in own}
    if getattr(tensor, "_is_param", False):
        data = wrap(tensor.layout_key, tensor.storage_block, tensor.offset, like=tensor)
        parts: tuple[Any, ...] = (data, tensor.requires_grad, OrderedDict())
        # As PyTorch does, so that a file is the same as the one of a CUDA GPU.
        if state:
            return rebuild_parameter_with_state, (*parts, state)
        return rebuild_parameter, parts
    warn_if_has_hooks(tensor)
    function, parts = _reduce_data(tensor)
    return (
        (rebuild_from_type, (function, torch.Tensor, parts, state)) if state else (function, parts)
    )


def _reduce_data(tensor: VirtualTensor) -> tuple[Any, tuple[Any, ...]]:
    key = tensor.layout_key
    hooks: OrderedDict[Any, Any] = OrderedDict()
    # New tuples, because pickle writes a tuple that it has seen before as a reference, and the
    # file would differ from the one of a CUDA GPU.
    sizes, strides = (tuple(map(int, numbers)) for numbers in (key.sizes, key.strides))
    view = (tensor.offset, sizes, strides, tensor.requires_grad, hooks)
    bits = tensor_metadata(tensor)
    last = (bits,) if bits else ()
    storage = tensor.untyped_storage()
    if key.dtype in untyped_dtypes():
        return rebuild_untyped_tensor, (storage, *view, key.dtype, *last)
    typed = torch.TypedStorage(wrap_storage=storage, dtype=key.dtype, _internal=True)  # type: ignore[no-untyped-call] # torch's is untyped
    return rebuild_tensor, (typed, *view, *last)


def _set_metadata(tensor: torch.Tensor, metadata: dict[str, bool]) -> None:
    """Apply lazy conjugation and negation that a file stores as a mark on a tensor."""
    if not isinstance(tensor, VirtualTensor):
        set_tensor_metadata(tensor, metadata)
        return
    if metadata.get("conj"):
        tensor.data = tensor.conj_physical()
    if metadata.get("neg"):
        tensor.data = tensor.neg()


def _as_subclass(tensor: VirtualTensor, cls: type) -> VirtualTensor:
    if cls is torch.Tensor:
        return tensor
    raise NotModelledError(
        f"the virtual GPU has no model of tensor subclasses such as {cls.__name__}; "
        "use plain tensors there"
    )


# Set here and not in the class, because these functions need copies, and copies need the class.
for _name, _method in {
    "as_subclass": _as_subclass,
    "__reduce_ex__": _reduce,
}.items():
    setattr(VirtualTensor, _name, _method)
