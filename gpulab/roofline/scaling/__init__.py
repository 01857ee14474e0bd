"""Time over problem size: a curve for the CPU and one for the GPU, and where they cross."""

from gpulab.roofline.scaling._crossover import Crossover, crossover
from gpulab.roofline.scaling._curve import Curve
from gpulab.roofline.scaling._intersection import Crossing
from gpulab.roofline.scaling._links import LINK_COSTS, LINKS, payload

__all__ = [
    "LINKS",
    "LINK_COSTS",
    "Crossing",
    "Crossover",
    "Curve",
    "crossover",
    "payload",
]
