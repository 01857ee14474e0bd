"""One workload at one size: its inputs, its call, and the least FLOPs and bytes that it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Tensor = torch.Tensor

_INDEX_BYTES = 8  # PyTorch's indices are int64


@dataclass(frozen=True, slots=True)
class Normal:
    """Random numbers of the workload's type, from the normal distribution.

    Random on purpose: zeros let a GPU draw less power and hold a higher clock.
    """

    shape: tuple[int, ...]

    def draw(
        self, dtype: torch.dtype, device: torch.device, generator: torch.Generator | None
    ) -> Tensor:
        """Return the input on a device."""
        return torch.randn(self.shape, dtype=dtype, device=device, generator=generator)


@dataclass(frozen=True, slots=True)
class Whole:
    """Random whole numbers from 0 to below ``high``: indices and labels."""

    high: int
    shape: tuple[int, ...]

    def draw(
        self, _dtype: torch.dtype, device: torch.device, generator: torch.Generator | None
    ) -> Tensor:
        """Return the input on a device; its type is always int64."""
        return torch.randint(self.high, self.shape, device=device, generator=generator)


def normal(*shape: int) -> Normal:
    """Return the description of a random input of the workload's type."""
    return Normal(shape)


def whole(high: int, *shape: int) -> Whole:
    """Return the description of an input of random indices below ``high``."""
    return Whole(high, shape)


def same(result: Tensor, *_inputs: Tensor) -> Tensor:
    """Return the result itself, as what is to be compared."""
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One operation at one size.

    Attributes
    ----------
    inputs
        What is drawn, in the order in which ``call`` takes it.
    call
        The operation.
    n_elements
        Elements of the workload's type that must be read or written at least once.
    n_indices
        Elements of int64 that must be read or written beside them.
    n_flops
        Floating-point operations; comparisons and moves count nothing.
    n_terms
        How many numbers are added up for one number of the result, which sets how far rounding
        may lead it away.
    prepared
        Whether ``call`` is called once with the inputs and returns the work; else the work is
        the call itself.
    compared
        Takes the result and the inputs, and returns what is compared: of an index the element
        that it points to, because two equal elements may be named in either order.
    reference
        Takes the result and the inputs in float64 and returns what the result should have been;
        None: what ``call`` makes of them.
    tensor_cores
        Whether float32 may be rounded to TF32 on the way: ``"matmul"`` or ``"cudnn"``, as
        torch's two switches are called, or nothing.
    """

    inputs: tuple[Normal | Whole, ...]
    call: Callable[..., Any]
    n_elements: int
    n_indices: int = 0
    n_flops: int = 0
    n_terms: int = 1
    prepared: bool = False
    compared: Callable[..., Tensor] = same
    reference: Callable[..., Tensor] | None = None
    tensor_cores: str = ""

    def n_bytes(self, itemsize: int) -> int:
        """Return the bytes that must be moved at least, for elements of so many bytes each."""
        return self.n_elements * itemsize + self.n_indices * _INDEX_BYTES

    def work(self, inputs: tuple[Tensor, ...]) -> Callable[[], Any]:
        """Return the operation on these inputs, as work to be timed."""
        if self.prepared:
            made: Callable[[], Any] = self.call(*inputs)
            return made
        call = self.call
        # One or two inputs are passed without unpacking: what is timed should be the operation.
        if len(inputs) == 1:
            (only,) = inputs
            return lambda: call(only)
        return lambda: call(*inputs)
