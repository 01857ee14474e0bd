"""``torch.Generator`` on the virtual GPU: one name for the generators of CPU and GPU."""

from typing import Any

import torch

from gpulab.virtual._generators import VirtualGenerator, _Generator, default_generators
from gpulab.virtual.simulator import Machine


class _FrontType(type(torch.Generator)):  # type: ignore[misc] # torch's metaclass differs by build
    """Makes ``torch.Generator`` a name for the generators of CPU and virtual GPU alike."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is not Generator:
            return super().__call__(*args, **kwargs)
        device = _device_asked_for(*args, **kwargs)
        if device is None or device.type != "cuda":
            return _Generator(*args, **kwargs)
        return VirtualGenerator(device)

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Generator:
            return isinstance(instance, _Generator)
        return bool(super().__instancecheck__(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        if cls is Generator:
            return issubclass(subclass, _Generator)
        return bool(super().__subclasscheck__(subclass))


class Generator(torch.Generator, metaclass=_FrontType):
    """What stands for ``torch.Generator``: on ``"cuda"`` it makes a virtual one."""


def _device_asked_for(device: Any = "cpu") -> torch.device | None:
    if isinstance(device, int):
        return torch.device("cuda", device)
    return torch.device(device) if isinstance(device, str) else device


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return what to put in the place of which names, by the object that has them."""
    # PyTorch's own functions for seeds and states work on the default generators.
    return [
        (torch, {"Generator": Generator}),
        (torch.cuda, {"default_generators": default_generators(machine)}),
        (torch.cuda.random, {"device_count": lambda: len(machine.gpus)}),
    ]
