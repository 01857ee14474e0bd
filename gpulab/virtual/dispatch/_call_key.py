"""Build the key of an operator call: calls with the same key have the same plan."""

import math
from bisect import bisect_right
from collections.abc import Hashable
from typing import Any

import torch
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from gpulab.virtual.tensors import VirtualTensor

# The numbers at which operators begin to refuse a float: 0, 1, and the largest ones of types. 0
# and 1 themselves are apart from the numbers on both sides.
_NOTED = (
    *(-torch.finfo(torch.float32).max, -torch.finfo(torch.float16).max, 0.0, math.ulp(0.0)),
    *(1.0, math.nextafter(1.0, 2.0), torch.finfo(torch.float16).max),
    *(torch.finfo(torch.float32).max, math.inf),
)


class CallKey:
    """Builds the key of a call, and collects its tensors and the values that it leaves out."""

    __slots__ = ("_last", "host_tensors", "tensors", "unplanned")

    def __init__(self, tensors: list[VirtualTensor]) -> None:
        self._last = -math.inf
        self.tensors = tensors
        self.host_tensors: list[torch.Tensor] = []
        self.unplanned: list[object] = []

    def of(self, value: Any) -> Hashable:
        """Return the key of an argument, which may be a list."""
        kind = type(value)
        if kind is VirtualTensor:
            self.tensors.append(value)
            key: Hashable = value.layout_key
            return key
        if kind is float:
            # Not the value: an optimizer's step size changes, and each would need a plan. But
            # some operators refuse a negative number, a probability above 1, or two numbers in
            # the wrong order.
            self.unplanned.append(value)
            is_ascending, self._last = value >= self._last, value
            return bisect_right(_NOTED, value) if is_ascending else ~bisect_right(_NOTED, value)
        if kind is list or kind is tuple:
            # From a list, which is faster than from a generator.
            return tuple([self.of(item) for item in value])
        if isinstance(value, torch.Tensor):
            return self._of_host_tensor(value)
        if kind is complex:
            self.unplanned.append(value)  # a plan may have been made for -0j, which equals 0j
        # With the type, because 1 and True are equal and would share a plan.
        return (kind, value)

    def _of_host_tensor(self, value: torch.Tensor) -> Hashable:
        self.unplanned.append(value)
        if isinstance(value, (UninitializedBuffer, UninitializedParameter)):
            return str(type(value))
        # CUDA's operators, too, take a host tensor without dimensions for a number.
        if value.dim() or value.is_meta:
            self.host_tensors.append(value)
        # A nested tensor has no shape, so the name of its class stands for it.
        return (value.dtype, str(type(value)) if value.is_nested else tuple(value.shape))

    def of_mapping(self, kwargs: dict[str, Any]) -> Hashable:
        """Return the key of the arguments given by name."""
        return tuple((name, self.of(value)) for name, value in kwargs.items())
