"""Find data races in a program on CUDA or on the virtual GPU while it runs."""

from gpulab.sanitizer._cuda_waits import waits_reported_to
from gpulab.sanitizer._hazards import Hazards, hazards

__all__ = ["Hazards", "hazards", "waits_reported_to"]
