"""Accept a number as a virtual GPU, where PyTorch's C++ would look for a real accelerator."""

from typing import Any

import torch

from gpulab.core.torch_private import C_nn, parse_to
from gpulab.virtual._streams import index_of
from gpulab.virtual.simulator import Machine, active, is_entered
from gpulab.virtual.tensors import cuda_device

_DEVICE = torch.device


class _DeviceType(type):
    """The metaclass of the replaced ``torch.device``.

    A call returns an object of PyTorch's own class, which also passes ``isinstance`` and compares
    as equal to the replacement.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else kwargs.get("device")
        # A program may keep this class after the context and make devices with it.
        if is_number(first) and is_entered():
            return numbered(active(), first)
        return _DEVICE(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _DEVICE)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, _DEVICE) or type.__subclasscheck__(cls, other)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is _DEVICE

    def __hash__(cls) -> int:
        return hash(_DEVICE)


# PyTorch's own class is written in C, so its constructor cannot be replaced in place.
_NumberedDevice = _DeviceType("device", (), {"__module__": "torch", "__doc__": _DEVICE.__doc__})


def is_number(device: object) -> bool:
    """Return whether a device is given by its number."""
    return isinstance(device, int) and not isinstance(device, bool)


def numbered(machine: Machine, device: Any) -> Any:
    """Return the device with this number, or ``device`` unchanged if it is not a number."""
    return cuda_device(index_of(device, machine)) if is_number(device) else device


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements for functions that read a device in C++."""
    set_default = torch.set_default_device

    def parse(*args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = numbered(machine, kwargs["device"])
        return parse_to(*(numbered(machine, arg) for arg in args[:1]), *args[1:], **kwargs)

    def set_default_device(device: Any) -> None:
        set_default(numbered(machine, device))

    return [
        (torch, {"device": _NumberedDevice, "set_default_device": set_default_device}),
        (C_nn, {"_parse_to": parse}),
    ]
