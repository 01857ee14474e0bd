"""Run dropout, RMS norm and foreach optimizers as fused kernels, as CUDA does.

Without this, PyTorch would treat virtual tensors as on an unknown device: several operators for a
dropout or a norm, and optimizers that update one tensor after another.
"""

from typing import Any

import torch
from torch.optim import optimizer
from torch.utils import _foreach_utils as foreach_utils

from gpulab.core.torch_private import (
    C,
    disable_dispatch,
    fused_rms_norm,
    group_tensors,
    variable_functions,
)
from gpulab.virtual.dispatch import dispatch
from gpulab.virtual.simulator import Machine
from gpulab.virtual.tensors import VirtualTensor


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements for functions that PyTorch would not fuse for virtual tensors.

    The host is charged for grouping the tensors of an optimizer.
    """
    plain_dropout, plain_rms_norm = torch.dropout, torch.rms_norm

    def dropout(input: torch.Tensor, p: float, train: bool) -> torch.Tensor:  # noqa: A002, FBT001 # torch's signature
        # PyTorch's own condition for the fused kernel (is_fused_kernel_acceptable in Dropout.cpp).
        if isinstance(input, VirtualTensor) and train and 0 < p < 1 and input.numel():
            dropped: torch.Tensor = torch.native_dropout(input, p, train)[0]
            return dropped
        return plain_dropout(input, p, train)

    def rms_norm(
        input: torch.Tensor,  # noqa: A002 # torch's signature
        normalized_shape: list[int],
        weight: torch.Tensor | None = None,
        eps: float | None = None,
    ) -> torch.Tensor:
        fits_input = weight is None or (
            isinstance(weight, VirtualTensor) and weight.dtype == input.dtype
        )
        needs_gradient = torch.is_grad_enabled() and (
            input.requires_grad or (weight is not None and weight.requires_grad)
        )
        # The fused operator bypasses autograd, so it is used only where no gradient is needed.
        if isinstance(input, VirtualTensor) and fits_input and not needs_gradient:
            return _normed((input, list(normalized_shape), weight, eps))
        return plain_rms_norm(input, normalized_shape, weight, eps)

    def by_device(lists: Any, with_indices: bool = False) -> Any:  # noqa: FBT001, FBT002 # torch's signature
        if not any(isinstance(item, VirtualTensor) for item in lists[0]):
            return group_tensors(lists, with_indices)
        machine.host.charge("grouped tensor", len(lists[0]))
        return _grouped(lists)

    functions = {"dropout": dropout, "rms_norm": rms_norm}
    # In torch 2.13 both modules have a list of this name, and each uses its own.
    types = {"_foreach_supported_types": [torch.Tensor, torch.nn.Parameter, VirtualTensor]}
    return [
        (torch, functions),
        (variable_functions, {"dropout": dropout}),
        (C, {"_group_tensors_by_device_and_dtype": by_device}),
        (optimizer, types),
        (foreach_utils, types),
    ]


def _normed(call: tuple[Any, ...]) -> torch.Tensor:
    # The state in which PyTorch calls a dispatch mode: the operators below are not dispatched.
    guard = disable_dispatch()
    try:
        normed: torch.Tensor = dispatch(fused_rms_norm, call, {})[0]
    finally:
        del guard
    return normed


def _grouped(lists: Any) -> Any:
    """Group tensors by device and type, as PyTorch's function does in C++ for real tensors."""
    # That function would see all virtual tensors as meta tensors, whatever their GPU.
    groups: dict[Any, Any] = {}
    for index, first in enumerate(lists[0]):
        columns, indices = groups.setdefault(
            (first.device, first.dtype), ([[] for _ in lists], [])
        )
        for column, items in zip(columns, lists, strict=True):
            if items:
                column.append(items[index])
        indices.append(index)
    return groups
