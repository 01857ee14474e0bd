"""The record of one operator call, which every part of its execution gets."""

from dataclasses import dataclass
from typing import Any

import torch

from gpulab.virtual.operators import Operator
from gpulab.virtual.simulator import SimulatedGpu
from gpulab.virtual.tensors import VirtualTensor


@dataclass(slots=True)
class DispatchedCall:
    """One call of an operator, with its arguments but without its generator."""

    operator: Operator
    args: Any
    kwargs: Any
    # The virtual tensors among the arguments; the indices in a plan refer to this list.
    tensors: list[VirtualTensor]
    # The arguments whose values may differ under one plan: floats and host tensors.
    unplanned: list[object]
    gpu: SimulatedGpu
    generator: torch.Generator | None
