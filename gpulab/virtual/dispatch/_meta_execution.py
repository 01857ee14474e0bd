"""Run an operator on meta tensors, to learn the shapes and the memory of its results."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gpulab.errors import NotModelledError
from gpulab.torch_private import arguments_of, call_shape_function, has_shape_function
from gpulab.virtual.dispatch._argument_checks import check_call
from gpulab.virtual.dispatch._plain_shapes import without_symbols
from gpulab.virtual.kernels import operator_name
from gpulab.virtual.tensors import VirtualTensor

META = torch.device("meta")
_CPU = torch.device("cpu")
# The results of these have other shapes without values than the CPU's have.
_WRONG_ON_META = {"_embedding_bag", "_embedding_bag_forward_only"}
# On stand-ins these do nothing, and send nothing.
_BETWEEN_PROCESSES = {"c10d", "_c10d_functional"}
_MAX_CPU_ELEMENTS = 1 << 20


@dataclass(frozen=True, slots=True)
class MetaExecution:
    """An operator's call on stand-ins of its tensors."""

    stand_ins: dict[int, torch.Tensor]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Any


def execute_on_meta(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> MetaExecution:
    """Run the operator on stand-ins: without values if it can, else on small ones on the CPU."""
    if func.namespace in _BETWEEN_PROCESSES:
        raise NotModelledError(
            f"the virtual GPU has no model of {func}, which sends between processes; send a copy "
            "on the CPU, as tensor.cpu(), or use CUDA GPUs"
        )
    check_call(func, args)
    if operator_name(func) in _WRONG_ON_META:
        return _execute_on(func, args, kwargs, _CPU)
    try:
        return _execute_on(func, args, kwargs, META)
    # There is no kernel for stand-ins without values, or the shape depends on values.
    except NotImplementedError:
        pass
    except RuntimeError as error:
        if func.namespace != "aten":
            raise not_modelled(func) from error
        return _execute_or_refuse(func, args, kwargs, error)
    try:
        return _execute_on(func, args, kwargs, _CPU)
    except (NotImplementedError, RuntimeError) as error:
        raise not_modelled(func) from error


def _execute_or_refuse(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: RuntimeError
) -> MetaExecution:
    """Refuse a call as PyTorch does with values; what only stand-ins refuse is accepted.

    PyTorch has other words for some mistakes where there are no values.
    """
    try:
        return _execute_on(func, args, kwargs, _CPU)
    except NotImplementedError:
        raise error from None
    except RuntimeError as same:
        raise same from None


def _execute_on(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], device: torch.device
) -> MetaExecution:
    stand_ins: dict[int, torch.Tensor] = {}
    new_args = tuple(_stand_in(arg, stand_ins, device) for arg in args)
    new_kwargs = {name: _stand_in(arg, stand_ins, device) for name, arg in kwargs.items()}
    new_kwargs.pop("pin_memory", None)
    if "device" in new_kwargs:
        new_kwargs["device"] = device
    with _ShapesAlone() if device is META else nullcontext(), without_symbols():  # type: ignore[no-untyped-call] # torch's is untyped
        out = func(*new_args, **new_kwargs)
        return MetaExecution(stand_ins, new_args, new_kwargs, _as_cudnn(func, new_args, out))


class _ShapesAlone(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's is untyped
    """Asks an operator's function for shapes in C++, which CUDA asks too, where there is one."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the compiler would be imported

    def __torch_dispatch__(
        self,
        func: Any,
        types: object,  # torch's signature
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if not has_shape_function(func):
            return func(*args, **(kwargs or {}))
        with _NothingWritten():  # type: ignore[no-untyped-call] # torch's is untyped
            return call_shape_function(func, args, kwargs or {})


class _NothingWritten(_ShapesAlone):  # type: ignore[no-untyped-call] # as above
    """Leaves out what follows a function for shapes: the operator that writes into its results."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: object,  # torch's signature
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        results = [kwargs[argument.name] for argument in arguments_of(func) if argument.is_out]
        if not results:
            return func(*args, **kwargs)
        return results[0] if len(results) == 1 else tuple(results)


def _as_cudnn(func: Any, args: tuple[Any, ...], out: Any) -> Any:
    """Have a convolution keep channels last, which cuDNN does and stand-ins do not."""
    if operator_name(func) != "convolution":
        return out
    if not any(_has_channels_last(item) for item in args[:2]):
        return out
    is_flat = out.dim() == 4  # noqa: PLR2004 # images, not volumes
    memory_format = torch.channels_last if is_flat else torch.channels_last_3d
    return torch.empty_like(out, memory_format=memory_format)


def _has_channels_last(tensor: torch.Tensor) -> bool:
    """Tell whether PyTorch takes these strides for channels last, as ``suggest_memory_format``.

    With one channel or one pixel a tensor is contiguous in both orders, and counts as neither.
    """
    sizes, strides = tensor.shape, tensor.stride()
    if tensor.dim() not in {4, 5} or strides[1] == 0:
        return False
    least = 0
    for dimension in (1, *range(tensor.dim() - 1, 1, -1), 0):
        is_ambiguous = dimension == 0 and least == strides[1]
        if sizes[dimension] == 0 or strides[dimension] < least or is_ambiguous:
            return False
        least = strides[dimension] * sizes[dimension]
    return True


def _stand_in(arg: Any, stand_ins: dict[int, torch.Tensor], device: torch.device) -> Any:
    if isinstance(arg, VirtualTensor):
        if id(arg) not in stand_ins:
            key = arg.layout_key
            if device is _CPU and key.n_elements > _MAX_CPU_ELEMENTS:
                raise NotImplementedError
            stand_in = torch.empty_strided(key.sizes, key.strides, dtype=key.dtype, device=device)
            stand_ins[id(arg)] = stand_in.zero_() if device is _CPU else stand_in
        return stand_ins[id(arg)]
    if isinstance(arg, (list, tuple)):
        return [_stand_in(item, stand_ins, device) for item in arg]
    return arg


def not_modelled(func: Any) -> NotModelledError:
    """Return the error that names an operator without a model."""
    return NotModelledError(
        f"the virtual GPU has no model of {func}; run this part on the CPU, or on a CUDA GPU"
    )
