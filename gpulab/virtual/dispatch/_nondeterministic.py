"""Refuse operators that have no deterministic kernel on a GPU, if the program asks for that.

``torch.use_deterministic_algorithms(True)`` makes PyTorch's CUDA kernels raise or warn. For its
C++ layer a virtual tensor is on another device, so the models name these operators. An H100 with
torch 2.11 was asked which calls raise (``python -m benchmarks.switches``).
"""

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch

from gpulab.core.torch_private import fills_new_memory, is_only_warned
from gpulab.happens_before import user_site
from gpulab.virtual.operators import MODELS, CallArguments, operator_of, without_alerts
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
OperatorHandler = Callable[[Any, Any, Any], Any]
Wrapper = Callable[[OperatorHandler], OperatorHandler]


@cache
def deterministic_handlers() -> tuple[tuple[Any, Wrapper], ...]:
    """Return the operators that the deterministic mode concerns, with their handlers' wrappers."""
    wrapped: list[tuple[Any, Wrapper]] = []
    for name, model in MODELS.items():
        if model.nondeterministic is not None:
            wrapped += [(func, _refusing) for func in (*_overloads(name), *_overloads(f"{name}_"))]
        if model.allocates:
            wrapped += [(func, _filling) for func in _overloads(name)]
    return tuple(wrapped)


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
    operator = operator_of(func)
    alert = operator.model.nondeterministic
    if alert is None or not alert.condition(CallArguments(func, args, kwargs)):
        return
    caller = alert.caller.format(operator.name.removeprefix("_"))
    if not is_only_warned():
        raise RuntimeError(_REFUSED.format(caller))
    message = _WARNED.format(caller)
    warnings.warn_explicit(message, UserWarning, *user_site(), registry=_shown)


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


def _fill_value(dtype: torch.dtype) -> float:
    if dtype.is_floating_point or dtype.is_complex:
        return float("nan")
    return True if dtype is torch.bool else torch.iinfo(dtype).max
