"""``Tensor.to``, ``cuda``, ``pin_memory`` and related methods on the virtual GPU."""

from collections.abc import Callable, Iterable
from functools import cache, partial, wraps
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from gpulab.core.torch_private import (
    ScriptModule,
    UninitializedTensor,
    device_constructors,
    disable_dispatch,
    innermost,
    parse_to,
)
from gpulab.core.tracebacks import drop_this_frame, ends_at_the_call
from gpulab.happens_before import user_site
from gpulab.happens_before.tensor_accesses import host_access
from gpulab.virtual._streams import index_of
from gpulab.virtual.dispatch import is_pinned, pin
from gpulab.virtual.patches._device_numbers import numbered
from gpulab.virtual.patches._factories import default_device
from gpulab.virtual.patches._lazy_modules import moving_lazy_tensors
from gpulab.virtual.patches._unsupported import require_dense, unsupported_error
from gpulab.virtual.simulator import Machine, active, is_owner
from gpulab.virtual.tensors import VirtualTensor, cuda_device

_NO_DATA = "Cannot copy out of meta tensor; no data!"

# These accept a device as a number. C++ would then look for an accelerator that this build of
# PyTorch supports, so the number is converted to a device first. PyTorch's own set contains the
# functions that follow the default device; three are replaced by ``_factories``, and those for
# sparse and quantized tensors are refused.
# PyTorch caches its set on the first call of this function. The call is made here, so that the set
# contains PyTorch's functions and not the replacements below.
_FACTORIES = {"normal"} | {
    name
    for name in (str(function.__name__) for function in device_constructors())
    if hasattr(torch, name)
    and name not in {"tensor", "as_tensor", "asarray", "empty_quantized", "range"}
    and not name.startswith("sparse_")
}
_OF_FFT = ("fftfreq", "rfftfreq")
# These use the device of their tensor and not the default device.
_LIKE = tuple(name for name in dir(torch) if name.endswith("_like"))
_DEVICE_ATTRIBUTES = ("device", "is_cuda", "is_cpu", "is_meta")
_METHODS = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros")


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replaced methods and functions, by module or class."""

    def factories(owner: Any, names: Iterable[str], *, follows_default: bool) -> dict[str, Any]:
        return {
            name: _factory(getattr(owner, name), follows_default=follows_default) for name in names
        }

    methods, moves = factories(torch.Tensor, _METHODS, follows_default=False), _moves(machine)
    apply = vars(torch.nn.Module)["_apply"]
    # Parameters without a shape refuse every method but these.
    allowed = [*UninitializedTensor._allowed_methods, *moves.values()]  # noqa: SLF001 # PyTorch's
    return [
        (UninitializedTensor, {"_allowed_methods": allowed}),
        (torch.Tensor, {**moves, **_host_access(machine), **methods}),
        (torch.Tensor, {name: _of_innermost(name) for name in _DEVICE_ATTRIBUTES}),
        (torch.nn.Module, {"_apply": moving_lazy_tensors(_in_place(apply))}),
        (torch, factories(torch, _FACTORIES, follows_default=True)),
        (torch, factories(torch, _LIKE, follows_default=False)),
        (torch.fft, factories(torch.fft, _OF_FFT, follows_default=True)),
    ]


def _of_innermost(name: str) -> property:
    """Return an attribute that looks through the wrappers of ``torch.func``.

    A wrapper of a virtual tensor is a tensor of C++, which would answer as for a meta tensor.
    """
    original = getattr(torch.Tensor, name)

    def get(self: torch.Tensor) -> Any:
        inner = innermost(self)
        return original.__get__(self) if inner is self else getattr(inner, name)

    return property(get)


def _in_place(apply: Any) -> Any:
    """Return a ``Module._apply`` after which the parameters are the same objects as before.

    So tied weights stay tied, and an optimizer made before ``model.cuda()`` trains the parameters
    on the GPU. On CUDA, PyTorch achieves this with ``param.data = ...``.
    """

    @wraps(apply)
    def moved(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        future = torch.__future__
        before = future.get_swap_module_params_on_conversion()
        future.set_swap_module_params_on_conversion(True)  # torch's signature
        try:
            return apply(self, *args, **kwargs)
        except RuntimeError as error:
            # PyTorch refuses to swap a tensor if something else refers to it, such as a view.
            if "swap" not in str(error):
                raise
            if isinstance(self, ScriptModule):
                # Its tensors belong to C++.
                raise unsupported_error("torch.jit.load") from None
            # Then the module gets new parameters, which an optimizer made before does not know.
            future.set_swap_module_params_on_conversion(False)  # torch's signature
            return apply(self, *args, **kwargs)
        finally:
            future.set_swap_module_params_on_conversion(before)

    return moved


class _AcrossGpus(torch.autograd.Function):
    """Copies a tensor to another GPU, and its gradient back to the first one."""

    @staticmethod
    def forward(context: Any, source: torch.Tensor, move: Callable[[torch.Tensor], Any]) -> Any:
        """Copy the tensor to the other GPU."""
        context.home = source.device
        return move(source)

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        """Copy the gradient back."""
        return gradients[0].to(context.home), None


def _moves(machine: Machine) -> dict[str, Any]:
    original = torch.Tensor.to

    def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        device, options = _parse_to(machine, args, kwargs)
        if device is None or device.type not in {"cuda", "meta"}:
            return original(self, *args, **kwargs)
        if is_lazy(self):
            return torch.empty(0, dtype=options["dtype"] or self.dtype, device=device)
        if device.type == "meta":
            return _without_data(self, options["dtype"])
        require_dense(self)
        if self.is_meta:
            raise NotImplementedError(_NO_DATA)
        dtype = options.pop("dtype") or self.dtype
        index = index_of(device, machine)
        inner = innermost(self)
        if not isinstance(inner, VirtualTensor):
            return original(self, cuda_device(index), dtype, **options)
        if inner.storage_block.gpu.index == index:
            return original(self, dtype, **options)
        # To C++ both GPUs are meta, so its own derivative of the copy would leave the gradient on
        # the wrong GPU.
        return _AcrossGpus.apply(  # type: ignore[no-untyped-call, no-any-return] # torch's is untyped
            self, lambda source: original(source, cuda_device(index), dtype, **options)
        )

    def cuda(
        self: torch.Tensor,
        device: Any = None,
        non_blocking: bool = False,  # noqa: FBT001, FBT002 # torch's signature
        memory_format: torch.memory_format = torch.preserve_format,
    ) -> torch.Tensor:
        target = cuda_device(index_of("cuda" if device is None else device, machine))
        return to(self, target, non_blocking=non_blocking, memory_format=memory_format)

    numbered_device = torch.Tensor.get_device

    def get_device(self: torch.Tensor) -> int:
        inner = innermost(self)
        return numbered_device(self) if inner is self else inner.get_device()

    return {"to": ends_at_the_call(to), "cuda": ends_at_the_call(cuda), "get_device": get_device}


def _parse_to(
    machine: Machine, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.device | None, dict[str, Any]]:
    """Read the arguments of ``Tensor.to``: the device, and the other options."""
    options = dict(kwargs)
    at = _position_of_copy(args)
    copy = bool(options.pop("copy", args[at] if len(args) > at else False))
    args = args[:at]
    if args and isinstance(args[0], torch.Tensor):
        device, dtype, memory_format = args[0].device, args[0].dtype, None
        non_blocking = options.get("non_blocking", args[1] if len(args) > 1 else False)
    else:
        args = tuple(numbered(machine, arg) for arg in args[:1]) + args[1:]
        if "device" in options:
            options["device"] = numbered(machine, options["device"])
        # torch 2.13 returns four values; some other versions also return copy.
        device, dtype, non_blocking, memory_format = parse_to(*args, **options)[:4]
    others = {"dtype": dtype, "non_blocking": bool(non_blocking), "copy": copy}
    if memory_format is not None:
        others["memory_format"] = memory_format
    return device, others


def _position_of_copy(args: tuple[Any, ...]) -> int:
    """Return the position of ``copy`` among the arguments of ``Tensor.to``."""
    # The overloads are to(dtype, non_blocking, copy), to(other, non_blocking, copy) and
    # to(device, dtype, non_blocking, copy).
    is_device_first = bool(args) and not isinstance(args[0], (torch.Tensor, torch.dtype))
    return 3 if is_device_first else 2


def _host_access(machine: Machine) -> dict[str, Any]:
    """Return the methods that read host memory.

    They first finish the device's work up to the host's time, so that a program sees what a copy
    has written until now.
    """

    def pin_memory(self: torch.Tensor, device: object = None) -> torch.Tensor:  # noqa: ARG001 # as torch
        if isinstance(self, VirtualTensor):
            raise RuntimeError(  # noqa: TRY004 # as PyTorch
                f"cannot pin '{self.type()}' only dense CPU tensors can be pinned"
            )
        # A clone, because only new memory can be pinned, and views of the old stay pageable.
        return self if is_pinned(self) else pin(self.clone())

    def looking(original: Any) -> Any:
        @wraps(original)
        def look(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if not is_owner():
                return original(self, *args, **kwargs)
            machine.host.catch_up()
            if machine.hazards is not None and is_pinned(self):
                access = host_access(self, is_write=False)
                machine.hazards.host_access(access, original.__name__, user_site())
            return original(self, *args, **kwargs)

        return look

    return {
        "pin_memory": pin_memory,
        "is_pinned": lambda self, device=None: is_pinned(self),  # noqa: ARG005 # as torch
        "numpy": looking(torch.Tensor.numpy),
        "tolist": looking(torch.Tensor.tolist),
    }


@cache  # the same function each time a virtual GPU is entered
def _factory(original: Any, *, follows_default: bool) -> Any:
    @wraps(original)
    def make(*args: Any, **kwargs: Any) -> torch.Tensor:
        device = kwargs.get("device")
        if device is not None and isinstance(kwargs.get("out"), VirtualTensor):
            # PyTorch's C++ would compare the device with meta, which is that of out= in C++.
            device = kwargs["device"] = None
        if type(device) is int:
            kwargs["device"] = numbered(active(), device)
        elif device is None and follows_default:
            device = default_device()
        # A real meta tensor, as for a model whose weights are loaded later.
        if isinstance(device, (str, torch.device)) and torch.device(device).type == "meta":
            return _undispatched(lambda: original(*args, **kwargs))
        try:
            return original(*args, **kwargs)  # type: ignore[no-any-return] # torch's own function
        except Exception as error:
            drop_this_frame(error)
            raise

    return make


def _without_data(source: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    """Return a real meta tensor, which the program asked for."""
    sizes, strides = source.size(), source.stride()
    make = partial(torch.empty_strided, sizes, strides, dtype=dtype or source.dtype, device="meta")
    return _undispatched(make)


def _undispatched(make: Callable[[], torch.Tensor]) -> torch.Tensor:
    # The dispatcher takes an operator on meta for one on the virtual GPU, because C++ calls the
    # virtual GPU meta.
    guard = disable_dispatch()
    try:
        return make()
    finally:
        del guard
