"""Run an operator on meta tensors to find the shapes and strides of its results."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from gpulab.core.errors import NotModelledError
from gpulab.core.torch_private import (
    DispatchMode,
    arguments_of,
    call_shape_function,
    has_shape_function,
    schema_of,
    suggest_memory_format,
)
from gpulab.virtual.dispatch._cpu_errors import is_about_arguments
from gpulab.virtual.dispatch._plain_shapes import without_symbols
from gpulab.virtual.operators import USE_DENSE, Operator
from gpulab.virtual.tensors import VirtualTensor

META = torch.device("meta")
_CPU = torch.device("cpu")
# Collective operators do nothing on meta tensors, so a program would silently not communicate.
_BETWEEN_PROCESSES = {"c10d", "_c10d_functional"}
# Larger inputs are not worth allocating on the CPU only for a shape.
_MAX_CPU_ELEMENTS = 1 << 20


@dataclass(frozen=True, slots=True)
class MetaExecution:
    """A call in which stand-ins, by the ``id`` of the tensors, replace the virtual tensors."""

    stand_ins: dict[int, torch.Tensor]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Any


def execute_on_meta(
    operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> MetaExecution:
    """Run an operator on meta tensors, or on CPU tensors of zeros if it has no meta kernel.

    Raises
    ------
    NotModelledError
        If neither is possible, or the operator communicates between processes.
    RuntimeError
        If the operator refuses its arguments.
    """
    namespace = operator.func.namespace
    if namespace in _BETWEEN_PROCESSES:
        raise NotModelledError(
            f"the virtual GPU has no model of {operator.func}, which communicates between "
            "processes; send a copy on the CPU, made with tensor.cpu(), or use CUDA GPUs"
        )
    if operator.model.is_on_cpu_alone:
        raise NotImplementedError(
            f"Could not run '{operator.func.name()}' with arguments from the 'CUDA' backend."
        )
    if operator.model.is_wrong_on_meta:
        return _execute_on(operator, args, kwargs, _CPU)
    try:
        return _execute_on(operator, args, kwargs, META)
    # The operator has no kernel for meta tensors, or the shape depends on values.
    except NotImplementedError:
        pass
    # PyTorch's functions in Python raise other classes than its C++ functions.
    except (
        RuntimeError,
        AssertionError,
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        # Our own operators run PyTorch's layers, and raise the errors of these.
        if namespace == "gpulab":
            raise error.with_traceback(None) from None
        if namespace != "aten":
            raise not_modelled(operator) from error
        return _execute_or_refuse(operator, args, kwargs, error)
    return _execute_on_cpu(operator, args, kwargs)


def _execute_on_cpu(
    operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> MetaExecution:
    """Run an operator that has no kernel for meta tensors on the CPU."""
    try:
        return _execute_on(operator, args, kwargs, _CPU)
    except NotImplementedError:
        # Too large for the CPU; but there is no shape to find if nothing is returned.
        if schema_of(operator.func).returns:
            raise
        return _execute_on(operator, args, kwargs, META, is_run=False)
    except RuntimeError as error:
        # CUDA may have a kernel for types for which the CPU has none.
        wider = operator.model.wider_types
        may_differ = any(isinstance(arg, torch.Tensor) and arg.dtype in wider for arg in args)
        if is_about_arguments(error) and not may_differ:
            raise error.with_traceback(None) from None
        raise not_modelled(operator) from error


def _execute_or_refuse(
    operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> MetaExecution:
    """Run a call that meta tensors refused on the CPU, or raise the CPU's error.

    For some mistakes PyTorch's message for meta tensors differs from the one for CPU and CUDA. And
    meta kernels refuse some calls that are correct.
    """
    try:
        return _execute_on(operator, args, kwargs, _CPU)
    except NotImplementedError:
        # The CPU has no kernel for it either, so the first error says more.
        raise error.with_traceback(None) from None
    except RuntimeError as cpu_error:
        # A check without a text of its own says less than the error of the meta tensors.
        clearer = error if "to be true, but got false" in str(cpu_error) else cpu_error
        raise clearer.with_traceback(None) from None


def _execute_on(
    operator: Operator,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    device: torch.device,
    *,
    is_run: bool = True,
) -> MetaExecution:
    stand_ins: dict[int, torch.Tensor] = {}
    new_args = tuple(_stand_in(arg, stand_ins, device) for arg in args)
    new_kwargs = {name: _stand_in(arg, stand_ins, device) for name, arg in kwargs.items()}
    new_kwargs.pop("pin_memory", None)
    if "device" in new_kwargs:
        new_kwargs["device"] = device
    with shapes_alone() if device is META else without_symbols():
        out = operator.compute(*new_args, **new_kwargs) if is_run else None
        if operator.model.keeps_channels_last:
            out = _as_cudnn(new_args, out)
        return MetaExecution(stand_ins, new_args, new_kwargs, out)


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Run operators on meta tensors inside the block as they run to make a plan."""
    with _ShapesAlone(), without_symbols():  # type: ignore[no-untyped-call] # torch's is untyped
        yield


class _ShapesAlone(DispatchMode):
    """Runs the C++ shape function of an operator, which the CUDA kernel also uses, if it has one.

    PyTorch would choose its Python implementation for meta tensors instead.
    """

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
    """Skips the ``out=`` operator that follows a shape function, and returns its outputs."""

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


def _as_cudnn(args: tuple[Any, ...], out: Any) -> Any:
    """Return a convolution's result in channels-last format if an input has it, as cuDNN does."""
    # Meta tensors return a contiguous result.
    formats = {suggest_memory_format(item) for item in args[:2]} - {torch.contiguous_format}
    return torch.empty_like(out, memory_format=formats.pop()) if formats else out


def _stand_in(arg: Any, stand_ins: dict[int, torch.Tensor], device: torch.device) -> Any:
    if isinstance(arg, VirtualTensor):
        # One stand-in for each tensor, so that the operator sees if two arguments are the same.
        if id(arg) not in stand_ins:
            key = arg.layout_key
            if device is _CPU and key.n_elements > _MAX_CPU_ELEMENTS:
                raise NotImplementedError
            stand_in = torch.empty_strided(key.sizes, key.strides, dtype=key.dtype, device=device)
            # Zeros, because arbitrary contents may be refused, e.g. as indices out of range.
            stand_ins[id(arg)] = stand_in.zero_() if device is _CPU else stand_in
        return stand_ins[id(arg)]
    if isinstance(arg, (list, tuple)):
        return [_stand_in(item, stand_ins, device) for item in arg]
    return arg


def not_modelled(operator: Operator) -> NotModelledError:
    """Return the error for an operator that the virtual GPU has no model of."""
    usual = str(operator.func), "run this part on the CPU, or on a CUDA GPU"
    subject, instead = operator.model.refusal or usual
    return NotModelledError(f"the virtual GPU has no model of {subject}; {instead}")


def not_dense(operator: Operator, layout: torch.layout) -> NotModelledError:
    """Return the error for an operator that returns a tensor of another layout than dense."""
    if operator.model.refusal or not str(layout).startswith("torch.sparse"):
        return not_modelled(operator)
    return NotModelledError(
        f"the virtual GPU has no model of {operator.func} with layout={layout}; {USE_DENSE}"
    )
