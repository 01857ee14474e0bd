"""Time over problem size: a curve for the CPU and one for the GPU, and where they cross."""

from gpulab.scaling._crossover import Crossover, crossover
from gpulab.scaling._curve import Curve
from gpulab.scaling._intersection import Crossing
from gpulab.scaling._latency_bandwidth_fit import Fit
from gpulab.scaling._links import LINK_COSTS, LINKS, payload

__all__ = [
    "LINKS",
    "LINK_COSTS",
    "Crossing",
    "Crossover",
    "Curve",
    "Fit",
    "crossover",
    "payload",
]
