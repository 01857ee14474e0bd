"""One step of measuring for a picture: quick, as the kernel waits for it."""

from gpulab._explorer_scene import Found, Step
from gpulab.roofline import measure_ceilings
from gpulab.sweeping import take
from gpulab.tasks import Task

_PRECISION = 0.02
_POINT_S, _CEILING_S = 0.15, 0.05  # of sampling; warming up comes on top


def take_step(step: Step) -> Found:
    """Measure a task, or the roofs of the GPU in use; of each roof there are nine figures."""
    if isinstance(step, Task):
        return take(step, precision=_PRECISION, max_time_s=_POINT_S)
    return measure_ceilings(max_time_s=_CEILING_S)
