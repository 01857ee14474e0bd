"""Machines that one cell borrows: two GPUs, or one that an error may ruin."""

from collections.abc import Iterator

import torch

from gpulab import device, virtual
from gpulab.device import Device
from gpulab.interrupts import contextmanager


@contextmanager
def two_gpus() -> Iterator[Device]:
    """Lend ``cuda:0`` and ``cuda:1``: those of the machine in use, else virtual ones.

    A machine with one GPU is left for the length of the block, with its state kept. Its tensors
    mean nothing on the one that is lent.
    """
    with device.active() as in_use:
        if torch.cuda.device_count() > 1:
            yield in_use
            return
    with _borrowed(n_gpus=2) as lent:
        yield lent


@contextmanager
def throwaway_gpu() -> Iterator[Device]:
    """Lend a virtual GPU that has seen nothing yet, so that an error leaves nothing behind.

    On a CUDA GPU an error in a kernel ends all work of the process.
    """
    with _borrowed(n_gpus=1) as lent:
        yield lent


@contextmanager
def _borrowed(*, n_gpus: int) -> Iterator[Device]:
    # Two virtual machines cannot both stand behind torch.cuda.
    with device.outside(), virtual.virtual_gpu(device.STAND_IN, count=n_gpus, first_use=False):
        yield device.current()
