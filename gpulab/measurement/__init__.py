"""The result of a timing run: samples, conditions and findings in one record."""

from gpulab.measurement._conditions import Conditions, Finding
from gpulab.measurement._measurement import Measurement

__all__ = ["Conditions", "Finding", "Measurement"]
