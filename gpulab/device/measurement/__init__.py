"""The result of a timing run: samples, conditions and findings in one record."""

from gpulab.device.measurement._conditions import Conditions, Finding
from gpulab.device.measurement._measurement import Measurement
from gpulab.device.measurement._rates import NO_COUNTS, Counts, Rate

__all__ = ["NO_COUNTS", "Conditions", "Counts", "Finding", "Measurement", "Rate"]
