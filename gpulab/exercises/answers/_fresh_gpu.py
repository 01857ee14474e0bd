"""A virtual H200 of its own for each answer that is tried, whatever GPU is in use."""

from collections.abc import Iterator
from contextlib import contextmanager

from gpulab import device


@contextmanager
def fresh_h200(*, first_use: bool = False) -> Iterator[None]:
    """Lend a virtual H200 that nothing has warmed.

    Parameters
    ----------
    first_use
        Whether its first calls pay for context, libraries and kernels.
    """
    from gpulab import virtual

    with device.outside(), virtual.virtual_gpu("H200", first_use=first_use):
        yield
