"""Make the inputs of the clinic's programs: kernels, layers, numbers and batches."""

import time
from functools import partial
from typing import TYPE_CHECKING

from gpulab.core.torch_private import spin
from gpulab.device.work import Work

if TYPE_CHECKING:
    from torch import Tensor

_CYCLES_PER_MS = 1_980_000


def kernel(length_ms: float = 2.0) -> Work:
    """Return a kernel that takes about as long on the GPU in use."""
    return partial(spin, round(length_ms * _CYCLES_PER_MS))


def layers(n_layers: int = 20, length_ms: float = 0.03) -> list[Work]:
    """Return the layers of a model, one short kernel each."""
    return [kernel(length_ms) for _ in range(n_layers)]


def numbers(n: int = 1000) -> "Tensor":
    """Return the numbers 0 to n - 1 on the GPU."""
    import torch

    return torch.arange(float(n), device="cuda")


def slow_double(x: "Tensor") -> "Tensor":
    """Return twice the numbers, after a long kernel in the current stream."""
    spin(_CYCLES_PER_MS)
    return x * 2


def batches(n_batches: int = 5) -> "list[Tensor]":
    """Return batches on the host; the numbers of batch k are all k + 1."""
    import torch

    return [torch.full((1000,), k + 1.0) for k in range(n_batches)]


def filler() -> None:
    """Launch a very short kernel, and pause for a moment."""
    spin(_CYCLES_PER_MS // 100)
    time.sleep(50e-6)
