"""Give the system back the host memory that PyTorch and Python have freed."""

import ctypes
import sys
from collections.abc import Callable


def _trim() -> Callable[[int], int] | None:
    """Return the C library's ``malloc_trim``, or None where there is none."""
    if sys.platform != "linux":
        return None
    malloc_trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return malloc_trim  # musl, the C library of Alpine Linux, has none


_malloc_trim = _trim()


def return_freed_memory() -> None:
    """Give freed memory back to the system, as far as the C library can.

    Values are computed in temporary tensors of a few megabytes. After them glibc keeps their
    memory for the process, in a notebook's kernel often more than 100 MiB.
    """
    if _malloc_trim is not None:
        _malloc_trim(0)
