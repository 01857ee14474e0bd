"""Data sheets of NVIDIA GPUs with their rooflines, and where a time comes from."""

from gpulab.gpus._datasheets import (
    GpuSpec,
    by_driver_name,
    gpu,
    is_known,
    names,
    why_unknown,
)
from gpulab.gpus._roofs import BASES, DATA_SHEET, LIVE, MEASURED, Roof, at_clocks, data_sheet

__all__ = [
    "BASES",
    "DATA_SHEET",
    "LIVE",
    "MEASURED",
    "GpuSpec",
    "Roof",
    "at_clocks",
    "by_driver_name",
    "data_sheet",
    "gpu",
    "is_known",
    "names",
    "why_unknown",
]
