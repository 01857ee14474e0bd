"""Measure everything that gpulab can measure on a machine, into one file that resumes."""

from gpulab.roofline.survey._plan import plan
from gpulab.roofline.survey._record import record

__all__ = ["plan", "record"]
