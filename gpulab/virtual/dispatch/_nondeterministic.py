"""Refuse operators that have no deterministic kernel on a GPU, if the program asks for that.

``torch.use_deterministic_algorithms(True)`` makes PyTorch's CUDA kernels raise or warn. For its
C++ layer a virtual tensor is on another device, so the table of these operators is here. An H100
with torch 2.11 was asked which calls raise (``python -m benchmarks.switches``).
"""

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch

from gpulab.core.torch_private import arguments_of, fills_new_memory, is_only_warned
from gpulab.happens_before import user_site
from gpulab.virtual.dispatch._operators import without_alerts
from gpulab.virtual.tensors import VirtualTensor

aten = torch.ops.aten

# The text of PyTorch's alert.
_REFUSED = (
    "{} does not have a deterministic implementation, but you set "
    "'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for this "
    "operation, or you can use the 'warn_only=True' option, if that's acceptable for your "
    "application. You can also file an issue at https://github.com/pytorch/pytorch/issues to help "
    "us prioritize adding deterministic support for this operation."
)
_WARNED = (
    "{} does not have a deterministic implementation, but you set "
    "'torch.use_deterministic_algorithms(True, warn_only=True)'. You can file an issue at "
    "https://github.com/pytorch/pytorch/issues to help us prioritize adding deterministic support "
    "for this operation."
)
_MAX = 2  # the mode of an embedding bag
_CUDNN_CHANNELS = 1024  # cuDNN samples a grid of at most so many

Given = Callable[[str], Any]


def _always(_given: Given) -> bool:
    return True


def _unless_by_cudnn(given: Given) -> bool:
    """Return whether PyTorch's own kernel samples the grid; cuDNN's is not refused."""
    is_possible = torch.backends.cudnn.enabled and given("align_corners")
    is_plain = given("interpolation_mode") == given("padding_mode") == 0
    return not (is_possible and is_plain and given("input").shape[1] <= _CUDNN_CHANNELS)


# For each operator the name in PyTorch's message, and whether a call with these arguments is
# refused.
_BY_NAME: dict[str, tuple[str, Callable[[Given], bool]]] = {
    "put": ("put_", _always),
    "put_": ("put_", _always),
    "scatter": ("scatter_reduce_cuda_kernel", lambda given: given("reduce") == "multiply"),
    "scatter_": ("scatter_reduce_cuda_kernel", lambda given: given("reduce") == "multiply"),
    "scatter_reduce": ("scatter_reduce_cuda_prod_", lambda given: given("reduce") == "prod"),
    "scatter_reduce_": ("scatter_reduce_cuda_prod_", lambda given: given("reduce") == "prod"),
    "index_reduce": ("index_reduce_cuda", _always),
    "index_reduce_": ("index_reduce_cuda", _always),
    **{
        name: ("embedding_bag_backward_cuda_max", lambda given: given("mode") == _MAX)
        for name in ("_embedding_bag_backward", "_embedding_bag_dense_backward")
    },
    "bincount": ("_bincount_cuda", lambda given: given("weights") is not None),
    "histc": (
        "_histc_cuda with floating point input",
        lambda given: given("self").is_floating_point(),
    ),
    "median": ("median CUDA with indices output", lambda given: given("dim") is not None),
    "nanmedian": ("median CUDA with indices output", lambda given: given("dim") is not None),
    "nll_loss2d_forward": (
        "nll_loss2d_forward_out_cuda_template",
        lambda given: given("reduction") != 0,
    ),
    "_ctc_loss_backward": ("ctc_loss_backward_gpu", _always),
    "max_unpool2d": ("max_unpooling2d_forward_out", _always),
    "max_unpool3d": ("max_unpooling3d_forward_out", _always),
    "_adaptive_avg_pool2d_backward": ("adaptive_avg_pool2d_backward_cuda", _always),
    "_adaptive_avg_pool3d_backward": ("adaptive_avg_pool3d_backward_cuda", _always),
    **{
        f"{name}_backward": (f"{name}_backward_cuda", _always)
        for name in (
            *("adaptive_max_pool2d", "avg_pool3d", "fractional_max_pool2d"),
            *("fractional_max_pool3d", "replication_pad1d", "replication_pad2d"),
            *("replication_pad3d", "grid_sampler_3d"),
        )
    },
    "grid_sampler_2d_backward": ("grid_sampler_2d_backward_cuda", _unless_by_cudnn),
    **{
        f"{prefix}{name}_backward": (f"{name}_backward_out_cuda", _always)
        for prefix, names in {
            "": (
                *("upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d"),
                *("upsample_trilinear3d", "reflection_pad1d", "reflection_pad3d"),
            ),
            "_": ("upsample_bilinear2d_aa", "upsample_bicubic2d_aa"),
        }.items()
        for name in names
    },
}
# From 2.13 on PyTorch's documentation lists it among those that act deterministically.
if torch.__version__ < (2, 13):  # type: ignore[operator] # torch compares it with numbers
    _BY_NAME["max_pool3d_with_indices_backward"] = (
        "max_pool3d_with_indices_backward_cuda",
        _always,
    )
# PyTorch fills memory that these return, with nan or the largest value of the type.
_UNFILLED = (
    *("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty"),
    *("new_empty_strided",),
)

OperatorHandler = Callable[[Any, Any, Any], Any]
Wrapper = Callable[[OperatorHandler], OperatorHandler]


@cache
def deterministic_handlers() -> tuple[tuple[Any, Wrapper], ...]:
    """Return the operators that the deterministic mode concerns, with wrappers of their handlers.

    Examples
    --------
    >>> import torch
    >>> operators = [operator for operator, _ in deterministic_handlers()]
    >>> torch.ops.aten.put_.default in operators, torch.ops.aten.add.Tensor in operators
    (True, False)
    """
    refused = ((func, _refusing) for name in _BY_NAME for func in _overloads(name))
    filled = ((func, _filling) for name in _UNFILLED for func in _overloads(name))
    resized = ((func, _filling_the_rest) for func in _overloads("resize_"))
    return (*refused, *filled, *resized)


def _overloads(name: str) -> Iterator[Any]:
    packet = getattr(aten, name, None)
    if packet is not None:  # in some versions of torch only
        yield from (getattr(packet, overload) for overload in packet.overloads())


def _refusing(handler: OperatorHandler) -> OperatorHandler:
    def handle(func: Any, args: Any, kwargs: Any) -> Any:
        if not any(isinstance(arg, VirtualTensor) for arg in args):
            return handler(func, args, kwargs)
        _alert(func, args, kwargs)
        # The kernels of the CPU and of meta tensors, which the simulation uses, alert as well.
        return without_alerts(handler)(func, args, kwargs)

    return handle


def _alert(func: Any, args: Any, kwargs: Any) -> None:
    """Raise or warn as PyTorch does, if a GPU has no deterministic kernel for this call."""

    def given(name: str) -> Any:
        for position, argument in enumerate(arguments_of(func)):
            if argument.name == name:
                default = argument.default_value if argument.has_default_value() else None
                return kwargs.get(name, args[position] if position < len(args) else default)
        return None

    caller, is_refused = _BY_NAME[func.overloadpacket.__name__]
    if not is_refused(given):
        return
    if not is_only_warned():
        raise RuntimeError(_REFUSED.format(caller))
    warnings.warn_explicit(_WARNED.format(caller), UserWarning, *user_site(), registry=_shown)


# Where Python notes which warnings it has shown, so that a loop shows one.
_shown: dict[Any, Any] = {}


def _filling(handler: OperatorHandler) -> OperatorHandler:
    """Fill new memory after the call, so that a program that reads it too early always fails."""

    def handle(func: Any, args: Any, kwargs: Any) -> Any:
        result = handler(func, args, kwargs)
        if isinstance(result, VirtualTensor) and result.numel() and fills_new_memory():
            result.fill_(_fill_value(result.dtype))
        return result

    return handle


def _filling_the_rest(handler: OperatorHandler) -> OperatorHandler:
    """Fill what ``resize_`` adds to a tensor."""

    def handle(func: Any, args: Any, kwargs: Any) -> Any:
        tensor = args[0]
        is_known = isinstance(tensor, VirtualTensor) and fills_new_memory()
        n_before = tensor.untyped_storage().nbytes() // tensor.itemsize if is_known else 0
        result = handler(func, args, kwargs)
        n_after = tensor.untyped_storage().nbytes() // tensor.itemsize if is_known else 0
        if n_after > n_before:
            rest = tensor.as_strided((n_after - n_before,), (1,), n_before)
            rest.fill_(_fill_value(tensor.dtype))
        return result

    return handle


def _fill_value(dtype: torch.dtype) -> float:
    if dtype.is_floating_point or dtype.is_complex:
        return float("nan")
    return True if dtype is torch.bool else torch.iinfo(dtype).max
