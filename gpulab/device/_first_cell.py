"""What a notebook says to a user who has chosen no GPU yet."""

import re

from gpulab import gpus
from gpulab.core.foreign_text import one_line
from gpulab.device import _probe
from gpulab.device._device import STAND_IN, outside
from gpulab.device._notebook_session import session

_CURE = 'gpulab.use("auto")'
# PyTorch's errors for a missing GPU. A CPU build has the first before a virtual GPU was used, and
# the next two after it. A build with CUDA has the last two.
_MISSING_GPU = (
    (AssertionError, re.compile("Torch not compiled with CUDA enabled")),
    (
        NotImplementedError,
        re.compile(r"Could not run '\S+' with arguments from the 'CUDA' backend"),
    ),
    (RuntimeError, re.compile("PyTorch is not linked with support for cuda devices")),
    (RuntimeError, re.compile("Found no NVIDIA driver on your system")),
    (RuntimeError, re.compile("No CUDA GPUs are available")),
)


def introduction() -> str:
    """Return which GPU a notebook times, in one line; empty if its user has chosen one."""
    if session.device is not None:
        return ""
    with outside():
        obstacle = _probe.cuda_obstacle()
        if obstacle is None:
            return f"GPU in use: {one_line(_probe.cuda_name())}"
    return (
        f"no CUDA GPU: {one_line(obstacle.reason)}. %cudatime times the virtual "
        f'{gpus.gpu(STAND_IN).driver_name}; plain cells with device="cuda" need {_CURE}'
    )


def hint(error: BaseException | None) -> str:
    """Return what to do about an error of PyTorch for a missing GPU; empty for other errors."""
    no_gpu = any(
        type(error) is kind and pattern.match(str(error)) for kind, pattern in _MISSING_GPU
    )
    # With a GPU entered for each cell, the cause is another one.
    if not no_gpu or session.shell is not None:
        return ""
    return f"hint: no CUDA GPU can be used; after {_CURE} the same code runs on the virtual GPU"
