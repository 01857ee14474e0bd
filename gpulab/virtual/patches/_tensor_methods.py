"""Teach ``Tensor.to``, ``cuda``, ``pin_memory`` and related methods about the virtual GPU."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import torch

from gpulab.happens_before import user_site
from gpulab.tensor_accesses import host_access
from gpulab.torch_private import (
    ScriptModule,
    device_constructors,
    disable_dispatch,
    parse_to,
    script_module,
)
from gpulab.virtual._streams import index_of
from gpulab.virtual.dispatch import META, is_pinned, pin
from gpulab.virtual.patches._device_numbers import numbered
from gpulab.virtual.patches._factories import default_device
from gpulab.virtual.patches._unsupported import require_dense
from gpulab.virtual.simulator import Machine, is_owner
from gpulab.virtual.tensors import VirtualTensor, cuda_device

# Where C++ reads a bare number as a device, it asks for an accelerator that it was built with.
_FACTORIES = (
    *("empty", "zeros", "ones", "full", "rand", "randn", "randint", "randperm", "arange"),
    *("linspace", "logspace", "eye", "empty_strided", "normal"),
    *("empty_like", "zeros_like", "ones_like", "full_like"),
    *("rand_like", "randn_like", "randint_like"),
)
_NO_DATA = "Cannot copy out of meta tensor; no data!"

# PyTorch collects its own factories at the first use, and must not find those below instead.
device_constructors()


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return what to put in the place of which names of torch."""
    factories = {name: _factory(machine, name, getattr(torch, name)) for name in _FACTORIES}
    return [
        (torch.Tensor, {**_moves(machine), **_host_access(machine)}),
        (torch.nn.Module, {"_apply": _in_place(vars(torch.nn.Module)["_apply"])}),
        (torch, factories),
        (torch.linalg, {"matrix_rank": _filling_out(torch.linalg.matrix_rank)}),
        (torch.jit, {"load": _loading_scripted(machine, torch.jit.load)}),
    ]


def _in_place(apply: Any) -> Any:
    """Keep a module's parameters the same objects when they move, as they are on hardware.

    So tied weights stay tied, and an optimizer made before the move trains what was moved.
    """

    @wraps(apply)
    def moved(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        future = torch.__future__
        before = future.get_swap_module_params_on_conversion()
        future.set_swap_module_params_on_conversion(True)  # torch's signature
        try:
            return apply(self, *args, **kwargs)
        except RuntimeError as error:
            # PyTorch swaps no tensor that something else holds a view of.
            if "swap" not in str(error):
                raise
            if isinstance(self, ScriptModule):
                return _with_new_tensors(self, *args)
            future.set_swap_module_params_on_conversion(False)  # torch's signature
            return apply(self, *args, **kwargs)
        finally:
            future.set_swap_module_params_on_conversion(before)

    return moved


def _with_new_tensors(
    module: Any, function: Callable[[torch.Tensor], torch.Tensor], *_recurse: bool
) -> Any:
    """Give a module that TorchScript has loaded other tensors; its own belong to C++.

    The modules in it have theirs by now.
    """
    inner = script_module(module)
    with torch.no_grad():
        for name, tensor in module.named_parameters(recurse=False):
            moved = function(tensor).requires_grad_(tensor.requires_grad)
            inner.setattr(name, moved)
        for name, tensor in module.named_buffers(recurse=False):
            inner.setattr(name, function(tensor))
    return module


class _AcrossGpus(torch.autograd.Function):
    """Moves a tensor to another GPU, and its gradient back to where it came from."""

    @staticmethod
    def forward(context: Any, source: torch.Tensor, move: Callable[[torch.Tensor], Any]) -> Any:
        """Move there."""
        context.home = source.device
        return move(source)

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        """Move back."""
        return gradients[0].to(context.home), None


def _moves(machine: Machine) -> dict[str, Any]:
    original = torch.Tensor.to

    def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        device, options = _parse_to(machine, args, kwargs)
        if device is not None and device.type == "meta":
            return _without_data(self, options["dtype"])
        if device is None or device.type != "cuda":
            return original(self, *args, **kwargs)
        require_dense(self)
        if self.is_meta:
            raise NotImplementedError(_NO_DATA)
        dtype = options.pop("dtype") or self.dtype
        index = index_of(device, machine)
        if not isinstance(self, VirtualTensor):
            return original(self, cuda_device(index), dtype, **options)
        if self.storage_block.gpu.index == index:
            return original(self, dtype, **options)
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

    return {"to": to, "cuda": cuda}


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
        # Some versions of torch return the copy too.
        device, dtype, non_blocking, memory_format = parse_to(*args, **options)[:4]
    others = {"dtype": dtype, "non_blocking": bool(non_blocking), "copy": copy}
    if memory_format is not None:
        others["memory_format"] = memory_format
    return device, others


def _position_of_copy(args: tuple[Any, ...]) -> int:
    """Return which argument of ``Tensor.to`` is ``copy``: a device may stand before the type."""
    is_device_first = bool(args) and not isinstance(args[0], (torch.Tensor, torch.dtype))
    return 3 if is_device_first else 2


def _host_access(machine: Machine) -> dict[str, Any]:
    """Return the methods that look at host memory: what the device wrote by now is seen."""

    def pin_memory(self: torch.Tensor, device: object = None) -> torch.Tensor:  # noqa: ARG001 # as torch
        if isinstance(self, VirtualTensor):
            raise RuntimeError(  # noqa: TRY004 # as PyTorch
                f"cannot pin '{self.type()}' only dense CPU tensors can be pinned"
            )
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


def _factory(machine: Machine, name: str, original: Any) -> Any:
    follows_default = not name.endswith("_like")

    @wraps(original)
    def make(*args: Any, **kwargs: Any) -> torch.Tensor:
        device = kwargs.get("device")
        if device is not None and isinstance(kwargs.get("out"), VirtualTensor):
            _drop_device_of_out(machine, kwargs)
            device = None
        if type(device) is int:
            kwargs["device"] = numbered(machine, device)
        elif device is None and follows_default:
            device = default_device()
        if isinstance(device, (str, torch.device)) and torch.device(device).type == "meta":
            return _undispatched(lambda: original(*args, **kwargs))
        return original(*args, **kwargs)  # type: ignore[no-any-return] # torch's own function

    return make


def _loading_scripted(machine: Machine, original: Any) -> Any:
    """Load on the host what TorchScript would put on a GPU in C++, and move it there."""

    @wraps(original)
    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        device = None if map_location is None else torch.device(numbered(machine, map_location))
        if device is None or device.type != "cuda":
            return original(f, map_location, *args, **kwargs)
        return original(f, "cpu", *args, **kwargs).to(device)

    return load


def _filling_out(original: Any) -> Any:
    """Write to ``out=`` where PyTorch's C++ returns a new tensor for subclasses of its own."""

    @wraps(original)
    def filled(*args: Any, **kwargs: Any) -> torch.Tensor:
        out = kwargs.pop("out", None)
        result: torch.Tensor = original(*args, **kwargs)
        return result if out is None else out.resize_(result.shape).copy_(result)

    return filled


def _drop_device_of_out(machine: Machine, kwargs: dict[str, Any]) -> None:
    """Leave out a device that says what ``out`` says; PyTorch's C++ would compare it to meta."""
    device, out = torch.device(numbered(machine, kwargs.pop("device"))), kwargs["out"]
    if device.type != "cuda" or index_of(device, machine) != out.get_device():
        raise RuntimeError(
            f"device type {device.type} does not match device type of out parameter (cuda)"
        )


def _without_data(source: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    """Return what the program itself asks to have on the device ``meta``."""
    sizes, strides = source.size(), source.stride()
    make = partial(torch.empty_strided, sizes, strides, dtype=dtype or source.dtype, device=META)
    return _undispatched(make)


def _undispatched(make: Callable[[], torch.Tensor]) -> torch.Tensor:
    # Further down, meta is what PyTorch's C++ layer takes the virtual GPU for.
    guard = disable_dispatch()
    try:
        return make()
    finally:
        del guard
