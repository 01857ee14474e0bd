"""Make one-hot vectors as PyTorch does on a CUDA GPU, which finds a class that is out of range.

PyTorch's C++ takes virtual tensors for meta tensors. For these it compares with all classes, so
that a class out of range would give a vector of zeros.
"""

from functools import wraps
from typing import Any

import torch
from torch.nn import functional

from gpulab.core.torch_private import C_nn
from gpulab.virtual.simulator import Machine, is_owner
from gpulab.virtual.tensors import VirtualTensor


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacement of ``torch.nn.functional.one_hot``."""
    del machine
    plain = functional.one_hot

    @wraps(plain)
    def one_hot(tensor: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
        # Inside torch.func tensors are wrapped, and only PyTorch's operators can unwrap them.
        if isinstance(tensor, VirtualTensor) and is_owner() and tensor.dtype == torch.int64:
            return _one_hot(tensor, num_classes)
        return plain(tensor, num_classes)

    return [(owner, {"one_hot": one_hot}) for owner in (functional, C_nn)]


def _one_hot(classes: torch.Tensor, n_classes: int) -> torch.Tensor:
    # As one_hot in PyTorch's Onehot.cpp.
    if not classes.numel():
        if n_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return classes.new_empty((*classes.shape, n_classes))
    if n_classes == -1:
        n_classes = int(classes.max().item()) + 1
    elif n_classes < 1:
        raise RuntimeError("num_classes should be positive")
    vectors = classes.new_zeros((*classes.shape, n_classes))
    return vectors.scatter_(-1, classes.unsqueeze(-1), 1)
