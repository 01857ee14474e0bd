"""Find data races in a program on CUDA or on the virtual GPU while it runs.

``gpulab.hazards`` is the way in. The rules of what is a race are in ``gpulab.happens_before``; the
modules here report to it what a program does on a CUDA GPU.
"""

from gpulab.tracing.sanitizer._hazards import Hazards, hazards

__all__ = ["Hazards", "hazards"]
