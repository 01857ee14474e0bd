"""Cast the arguments of operators on virtual tensors as ``torch.autocast("cuda")`` does.

PyTorch casts in kernels that run before those of autograd, and only for tensors that C++ sees on
CUDA. So virtual tensors have a dispatch key that no other tensor has, and this module registers
autocast kernels for it. Outside autocast the key is excluded, so that operators are no slower.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import torch

from gpulab.core.interrupts import Undo
from gpulab.core.torch_private import (
    arguments_of,
    autocast_key,
    autocast_keys,
    exclude_key_from_here,
    exclude_keys,
    has_backend_fallback,
    has_own_kernel,
    is_view,
    set_grad_enabled,
)
from gpulab.virtual.operators import MODELS, Autocast
from gpulab.virtual.simulator import Machine, active, is_owner
from gpulab.virtual.tensors import VirtualTensor

aten = torch.ops.aten

AutocastKernel = Callable[..., Any]

# The cast of each weight, by the id of the weight. The weight is kept with it, so that no other
# object can get its id.
_casts: dict[int, tuple[VirtualTensor, Any]] = {}
# PyTorch removes the kernels of a library when the library is garbage-collected.
_libraries: list[Any] = []
_Library: Any = torch.library.Library  # its methods are untyped


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the functions that switch autocast and clear its cache."""
    set_enabled, clear_cache = torch.set_autocast_enabled, torch.clear_autocast_cache

    def set_autocast_enabled(*args: Any, **kwargs: Any) -> None:
        set_enabled(*args, **kwargs)
        if is_owner():
            machine.host.charge("autocast")
        _follow()

    def clear_autocast_cache() -> None:
        clear_cache()
        _casts.clear()

    own = {
        "set_autocast_enabled": set_autocast_enabled,
        "clear_autocast_cache": clear_autocast_cache,
    }
    return [(torch, own)]


def install(_machine: Machine, undo: Undo) -> None:
    """Start to cast if autocast is already on; closing ``undo`` ends it."""
    undo.callback(_casts.clear)
    undo.callback(exclude_key_from_here, autocast_key, True)  # noqa: FBT003 # torch's signature
    _follow()


def cast_for_layer(
    tensors: Sequence[torch.Tensor], dtype: torch.dtype | None = None
) -> Sequence[torch.Tensor]:
    """Return the tensors of a layer in the type that autocast gives them, by default its own.

    For a layer that is computed as a whole, which PyTorch does not pass through autocast.
    """
    if not torch.is_autocast_enabled("cuda"):
        return tensors
    with exclude_keys(autocast_keys):
        cast: Sequence[torch.Tensor] = _cast(tensors, dtype or _lower_type(), use_cache=not dtype)
        return cast


def _follow() -> None:
    """Switch the casts of this thread on if autocast is on for CUDA, otherwise off."""
    enabled = torch.is_autocast_enabled("cuda")
    if enabled:
        _register()
    exclude_key_from_here(autocast_key, not enabled)


# Once for each process and never undone: only virtual tensors have the key, so these kernels
# cannot run for other tensors.
@cache
def _register() -> None:
    # Operators that are in no list fall through to autograd without a cast.
    if not has_backend_fallback(autocast_key):
        others = _Library("_", "IMPL", autocast_key.name)
        others.fallback(torch.library.fallthrough_kernel)
        _libraries.append(others)
    library = _Library("aten", "IMPL", autocast_key.name)
    for name, model in MODELS.items():
        if model.autocast is not None:
            for operator in _overloads_cast(name, model.autocast):
                library.impl(operator, _POLICIES[model.autocast](operator))
    _libraries.append(library)


def _overloads_cast(name: str, autocast: Autocast) -> Iterator[Any]:
    """Yield the overloads that this version of torch casts on CUDA, too."""
    packet = getattr(aten, name, None)
    for overload in [] if packet is None else packet.overloads():
        operator = getattr(packet, overload)
        is_by_names = "names" in overload or "imname" in overload  # in older versions
        # On CUDA a recurrent layer is another operator, one of cuDNN.
        is_recurrent = autocast is Autocast.FLOAT16
        if is_recurrent or (has_own_kernel(operator, "AutocastCUDA") and not is_by_names):
            yield operator


def _lower_type(_tensors: object = ()) -> torch.dtype:
    return torch.get_autocast_dtype("cuda")


def _float16(_tensors: object) -> torch.dtype:
    return torch.float16


def _float32(_tensors: object) -> torch.dtype:
    return torch.float32


def _widest(args: Any) -> torch.dtype:
    """Return float32 if an argument has it, otherwise autocast's lower type."""
    widest = _lower_type()
    for tensor in filter(_is_eligible, args):
        if torch.float32 in (widest, tensor.dtype):
            widest = torch.float32
        elif tensor.dtype != widest:
            raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return widest


def _cast_arguments(type_for: Callable[[Any], torch.dtype], *, use_cache: bool = True) -> Any:
    """Return a function that makes the kernel of an operator whose tensors are cast.

    ``type_for`` returns the type for the arguments of a call. With ``use_cache`` a weight is cast
    only once while autocast is on.
    """

    def kernel_for(operator: Any) -> AutocastKernel:
        def kernel(*args: Any, **kwargs: Any) -> Any:
            # Without the keys, the operators called here are not cast a second time.
            with exclude_keys(autocast_keys):
                dtype = type_for(args)
                return operator(
                    *[_cast(arg, dtype, use_cache=use_cache) for arg in args], **kwargs
                )

        return kernel

    return kernel_for


def _ask_for_float32(operator: Any) -> AutocastKernel:
    """Return the kernel of an operator that is asked for a float32 result by ``dtype``."""
    names = [argument.name for argument in arguments_of(operator)]
    position = names.index("dtype")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with exclude_keys(autocast_keys):
            dtype = args[position] if position < len(args) else kwargs.get("dtype")
            if dtype is None and _is_eligible(args[0]):
                return operator(*args[:position], **{**kwargs, "dtype": torch.float32})
            return operator(*args, **kwargs)

    return kernel


def _norm(operator: Any) -> AutocastKernel:
    """Return the kernel of a norm, whose ``dtype`` argument is in another overload."""
    defaults = [argument.default_value for argument in arguments_of(operator)]
    along = operator is aten.norm.ScalarOpt_dim
    typed = aten.norm.ScalarOpt_dim_dtype if along else aten.norm.ScalarOpt_dtype

    def kernel(tensor: Any, *args: Any) -> Any:
        with exclude_keys(autocast_keys):
            dtype = torch.float32 if _is_eligible(tensor) else tensor.dtype
            return typed(tensor, *args, *defaults[1 + len(args) :], dtype=dtype)

    return kernel


def _refuse(_operator: object) -> AutocastKernel:
    def kernel(*_args: object, **_kwargs: object) -> Any:
        raise RuntimeError(
            "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast."
            "\nMany models use a sigmoid layer right before the binary cross entropy layer."
            "\nIn this case, combine the two layers using "
            "torch.nn.functional.binary_cross_entropy_with_logits"
            "\nor torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and "
            "BCEWithLogits are\nsafe to autocast."
        )

    return kernel


_POLICIES: dict[Autocast, Callable[[Any], AutocastKernel]] = {
    Autocast.LOWER: _cast_arguments(_lower_type),
    Autocast.FLOAT16: _cast_arguments(_float16, use_cache=False),
    Autocast.FLOAT32: _cast_arguments(_float32),
    Autocast.FLOAT32_RESULT: _ask_for_float32,
    Autocast.NORM: _norm,
    Autocast.WIDEST: _cast_arguments(_widest),
    Autocast.REFUSED: _refuse,
}


def _is_eligible(arg: Any) -> bool:
    """Return whether autocast casts an argument: a virtual tensor, floating, not float64."""
    if not isinstance(arg, VirtualTensor):
        return False
    return arg.dtype.is_floating_point and arg.dtype != torch.float64


def _cast(arg: Any, dtype: torch.dtype, *, use_cache: bool) -> Any:
    if isinstance(arg, (list, tuple)):
        return [_cast(item, dtype, use_cache=use_cache) for item in arg]
    if not _is_eligible(arg) or arg.dtype == dtype:
        return arg
    if use_cache and _is_weight(arg) and torch.is_autocast_cache_enabled():
        return _cached_cast(arg, dtype)
    return aten.to.dtype(arg, dtype)


def _is_weight(tensor: torch.Tensor) -> bool:
    is_leaf = tensor.requires_grad and tensor.is_leaf and not is_view(tensor)
    return is_leaf and tensor.dtype == torch.float32


def _cached_cast(weight: VirtualTensor, dtype: torch.dtype) -> Any:
    """Return the cast of a weight, which is made once until autocast ends, as in PyTorch."""
    cached = _casts.get(id(weight))
    if cached is None:
        records = torch.is_grad_enabled()
        if not (records or torch.is_inference_mode_enabled()):
            # As an operator that nobody records: PyTorch's C++ code makes this node.
            active().host.forget_recorded(1)
        # With gradients on, because a first use inside no_grad() may be followed by one outside.
        set_grad_enabled(True)
        try:
            cached = _casts[id(weight)] = (weight, aten.to.dtype(weight, dtype))
        finally:
            set_grad_enabled(records)
    return cached[1]
