"""A new virtual H200 for each answer that is tried, independent of the GPU in use."""

from collections.abc import Iterator
from contextlib import contextmanager

from gpulab import device


@contextmanager
def fresh_h200(*, first_use: bool = False) -> Iterator[None]:
    """Use a new virtual H200 in a ``with`` block.

    Parameters
    ----------
    first_use
        Whether its first calls take extra time for context, libraries and kernels.
    """
    from gpulab import virtual

    # Only one virtual machine at a time can replace torch.cuda, so leave the one in use first.
    with device.outside(), virtual.virtual_gpu("H200", first_use=first_use):
        yield
