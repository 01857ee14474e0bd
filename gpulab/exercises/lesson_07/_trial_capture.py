"""Try to capture work as a CUDA graph, and say why that is not possible."""

from gpulab.core.errors import NotCapturableError
from gpulab.core.foreign_text import first_line
from gpulab.device.work import Work
from gpulab.timing import measure

_MAX_TIME_S = 0.05  # the capture is what counts, and one replay shows it


def try_to_capture(work: Work) -> str:
    """Return ``"captured"``, or the reason why this work cannot be captured as a CUDA graph."""
    try:
        measure(work, method="graph", max_time_s=_MAX_TIME_S, progress=False)
    except NotCapturableError as error:
        return first_line(error.__cause__ or error)
    return "captured"
