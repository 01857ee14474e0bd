"""One workload at one size: its inputs, its call, and the FLOPs and bytes that it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

Tensor: TypeAlias = torch.Tensor

_INDEX_BYTES = 8  # PyTorch's indices are int64


@dataclass(frozen=True, slots=True)
class Normal:
    """A random input of the workload's type, from the normal distribution.

    It is random because with zeros a GPU needs less power and has a higher clock.
    """

    shape: tuple[int, ...]

    def draw(
        self, dtype: torch.dtype, device: torch.device, generator: torch.Generator | None
    ) -> Tensor:
        """Return the input on a device."""
        return torch.randn(self.shape, dtype=dtype, device=device, generator=generator)


@dataclass(frozen=True, slots=True)
class Whole:
    """An input of random whole numbers from 0 to ``high - 1``, for indices and labels."""

    high: int
    shape: tuple[int, ...]

    def draw(
        self, _dtype: torch.dtype, device: torch.device, generator: torch.Generator | None
    ) -> Tensor:
        """Return the input on a device; its type is always int64."""
        return torch.randint(self.high, self.shape, device=device, generator=generator)


def normal(*shape: int) -> Normal:
    """Return a random input of the workload's type, not yet drawn."""
    return Normal(shape)


def indices(high: int, *shape: int) -> Whole:
    """Return an input of random indices below ``high``, not yet drawn."""
    return Whole(high, shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One operation at one size.

    Attributes
    ----------
    inputs
        Descriptions of the inputs, in the order in which ``call`` takes them.
    call
        The operation.
    n_elements
        Elements of the workload's type that must be read or written at least once.
    n_indices
        Elements of int64 that must be read or written in addition.
    n_flops
        Floating-point operations; comparisons and moves do not count.
    prepared
        If true, ``call`` is called once with the inputs and returns the work. If false, the work
        is the call itself.
    tensor_cores
        The switch that lets PyTorch round float32 to TF32 here: ``"matmul"``, ``"cudnn"``, or
        empty for none.
    """

    inputs: tuple[Normal | Whole, ...]
    call: Callable[..., Any]
    n_elements: int
    n_indices: int = 0
    n_flops: int = 0
    prepared: bool = False
    tensor_cores: str = ""

    def n_bytes(self, itemsize: int) -> int:
        """Return the least bytes that must be moved, for elements of ``itemsize`` bytes."""
        return self.n_elements * itemsize + self.n_indices * _INDEX_BYTES

    def work(self, inputs: tuple[Tensor, ...]) -> Callable[[], Any]:
        """Return a function without arguments that runs the operation on these inputs."""
        if self.prepared:
            made: Callable[[], Any] = self.call(*inputs)
            return made
        call = self.call
        # A single input is passed without unpacking, which takes the host less time.
        if len(inputs) == 1:
            (only,) = inputs
            return lambda: call(only)
        return lambda: call(*inputs)
