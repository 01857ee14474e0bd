"""Choose or find the GPU in use, real or virtual, and report what this machine can time."""

from gpulab.device._device import STAND_IN, Device, find, outside
from gpulab.device._in_use import NotEnteredWarning, active, conditions, current, doctor, use
from gpulab.device._probe import cuda_obstacle

__all__ = [
    "STAND_IN",
    "Device",
    "NotEnteredWarning",
    "active",
    "conditions",
    "cuda_obstacle",
    "current",
    "doctor",
    "find",
    "outside",
    "use",
]
