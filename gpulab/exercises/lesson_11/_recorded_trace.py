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

    Examples
    --------
    >>> from gpulab.exercises import lesson_11 as lab
    >>> len(lab.h200_trace().summary().devices)
    1
    """
    with resources.as_file(resources.files("gpulab") / _TRACE) as path:
        return tracing.read_trace(path)


def save_h200_trace(path: str | Path) -> Path:
    """Save the trace file of :func:`h200_trace` as the profiler wrote it, and return its path.

    Parameters
    ----------
    path
        Path of the new file.

    Raises
    ------
    NotSavedError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gpulab.exercises import lesson_11 as lab
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lab.save_h200_trace(Path(folder) / "step.json.gz").name
    'step.json.gz'
    """
    write_whole(path, resources.files("gpulab").joinpath(_TRACE).read_bytes())
    return Path(path)
