"""A new virtual GPU for each answer that is tried, independent of the GPU in use."""

from collections.abc import Iterator

from gpulab import device
from gpulab.core.interrupts import contextmanager
from gpulab.device import Device


@contextmanager
def fresh_gpu(
    gpu: str = "H200", *, n_gpus: int = 1, first_use: bool = False, host: str | None = None
) -> Iterator[Device]:
    """Use a new virtual machine in a ``with`` block.

    With ``first_use`` its first calls take extra time for context, libraries and kernels. ``host``
    is the name of a recorded host.
    """
    from gpulab import virtual

    # Only one virtual machine at a time can replace torch.cuda, so leave the one in use first.
    machine = virtual.virtual_gpu(gpu, count=n_gpus, first_use=first_use, host=host)
    with device.outside(), machine:
        yield device.current()
