"""A trace that PyTorch's profiler recorded on an H200, which gpulab ships."""

from importlib import resources
from pathlib import Path

from gpulab import tracing
from gpulab.core.disk import write_whole

_TRACE = "data/traces/h200-training-step.json.gz"


def h200_trace() -> tracing.Timeline:
    """Return one training step as PyTorch's profiler recorded it on an NVIDIA H200.

    The model is two linear layers (512, 512, 10 wide) with a ReLU between them, batch 64, and
    plain SGD. Its forward pass runs twice: once from pageable and once from pinned memory.
    Recorded on 2026-11-22 with driver 580 and torch 2.11, on a machine whose host is shared.
    """
    with resources.as_file(resources.files("gpulab") / _TRACE) as path:
        return tracing.read_trace(path)


def save_h200_trace(path: str | Path) -> Path:
    """Save the trace file of :func:`h200_trace` as the profiler wrote it, and return its path."""
    write_whole(path, resources.files("gpulab").joinpath(_TRACE).read_bytes())
    return Path(path)
