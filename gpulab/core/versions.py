"""The versions of Python and torch that gpulab was tried with, and what it says about others."""

import platform
import warnings
from functools import cache

from gpulab.core.errors import UnsupportedVersionError

# The first version that was tried, and the first one that was not.
PYTHON_RANGE = ((3, 11), (3, 15))
TORCH_RANGE = ((2, 11), (2, 16))
TRIED_TORCH = "torch>=2.11,<2.16"
INSTALL_TORCH = f'pip install "{TRIED_TORCH}"'


def is_within(version: str, bounds: tuple[tuple[int, int], tuple[int, int]]) -> bool:
    """Return whether a version such as ``"2.13.0"`` is in a range; the range excludes its end."""
    major, minor = version.split(".")[:2]
    return bounds[0] <= (int(major), int(minor)) < bounds[1]


def span(bounds: tuple[tuple[int, int], tuple[int, int]]) -> str:
    """Return a range in words, e.g. ``"3.11 to 3.14"``; the range excludes its end."""
    (major, minor), (last_major, end) = bounds
    return f"{major}.{minor} to {last_major}.{end - 1}"


def torch_version() -> str:
    """Return the version of the torch that is imported, e.g. ``"2.13.0+cpu"``."""
    import torch

    return str(torch.__version__)


def torch_was_tried() -> bool:
    """Return whether gpulab was tried with the torch that is imported."""
    return is_within(torch_version(), TORCH_RANGE)


def check_python() -> None:
    """Refuse a Python outside the supported range; the error says what to install."""
    if not is_within(platform.python_version(), PYTHON_RANGE):
        raise UnsupportedVersionError(
            f"Python {platform.python_version()} is not supported; "
            f"make an environment with Python {span(PYTHON_RANGE)}"
        )


@cache  # one warning a process
def warn_of_untried_torch() -> None:
    """Warn once if gpulab was not tried with this torch."""
    if not torch_was_tried():
        warnings.warn(
            f"gpulab was tried with torch {span(TORCH_RANGE)}, and this is torch "
            f"{torch_version()}: a CUDA GPU is measured as usual, and the virtual GPU is used if "
            "its self-check passes; `gpulab doctor` shows the result",
            UserWarning,
            stacklevel=2,
        )
