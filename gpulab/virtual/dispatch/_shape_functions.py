"""Run operators on meta tensors by the C++ functions that find the shapes of CUDA's results."""

from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from gpulab.core.torch_private import arguments_of, call_shape_function, has_shape_function


class ShapesAlone(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's is untyped
    """Runs the C++ shape function of an operator, which the CUDA kernel also uses, if it has one.

    PyTorch would choose its Python implementation for meta tensors instead.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # True would import torch._dynamo; see VirtualMode.
        return False

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


class _NothingWritten(ShapesAlone):  # type: ignore[no-untyped-call] # as above
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
