"""``torch.Generator`` on the virtual GPU: one class for generators of the CPU and the GPU."""

from typing import Any

import torch

from gpulab.virtual._generators import TorchGenerator, VirtualGenerator, default_generators
from gpulab.virtual.simulator import Machine


class _FrontType(type(torch.Generator)):  # type: ignore[misc] # torch's metaclass differs by build
    """The metaclass of the replaced ``torch.Generator``.

    A call returns a generator of the CPU or of the virtual GPU, and both pass ``isinstance``.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        device = _device_asked_for(*args, **kwargs)
        if device is None or device.type != "cuda":
            return TorchGenerator(*args, **kwargs)
        return VirtualGenerator(device)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TorchGenerator)

    def __subclasscheck__(cls, subclass: type) -> bool:
        # Both kinds of generators derive from PyTorch's own class, and not from this one.
        return issubclass(subclass, TorchGenerator)


class Generator(torch.Generator, metaclass=_FrontType):
    """The replaced ``torch.Generator``: for ``"cuda"`` it makes a virtual generator."""


def _device_asked_for(device: Any = "cpu") -> torch.device | None:
    if isinstance(device, int):
        return torch.device("cuda", device)
    return torch.device(device) if isinstance(device, str) else device


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the class and the default generators."""
    # torch.cuda.manual_seed and the like are PyTorch's own and use the default generators.
    return [
        (torch, {"Generator": Generator}),
        (torch.cuda, {"default_generators": default_generators(machine)}),
        (torch.cuda.random, {"device_count": lambda: len(machine.gpus)}),
    ]
