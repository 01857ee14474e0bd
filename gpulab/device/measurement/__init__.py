"""The result of a timing run: samples, conditions and findings in one record."""

from gpulab.device.measurement._conditions import Conditions, Finding
from gpulab.device.measurement._measurement import Measurement

__all__ = ["Conditions", "Finding", "Measurement"]
