"""The record of one operator call, which every part of its execution gets."""

from dataclasses import dataclass
from typing import Any

import torch

from gpulab.virtual.operators import Operator
from gpulab.virtual.simulator import SimulatedGpu
from gpulab.virtual.tensors import VirtualTensor


@dataclass(slots=True)
class DispatchedCall:
    """One call of an operator.

    Attributes
    ----------
    operator
        The operator.
    args, kwargs
        Its arguments, without a generator.
    tensors
        The virtual tensors among the arguments; the indices in a plan refer to this list.
    unplanned
        The arguments whose values may differ under one plan: floats and host tensors.
    gpu
        The GPU that it runs on.
    generator
        The generator that it was given to draw from, or None.
    """

    operator: Operator
    args: Any
    kwargs: Any
    tensors: list[VirtualTensor]
    unplanned: list[object]
    gpu: SimulatedGpu
    generator: torch.Generator | None
