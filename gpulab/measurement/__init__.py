"""What a timing run leaves behind: samples, conditions and findings in one record."""

from gpulab.measurement._conditions import Conditions, Finding
from gpulab.measurement._measurement import Measurement

__all__ = ["Conditions", "Finding", "Measurement"]
