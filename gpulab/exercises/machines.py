"""GPUs for one cell of a lesson: two GPUs, or a virtual one that an error may ruin."""

from collections.abc import Iterator

import torch

from gpulab import device, virtual
from gpulab.core.interrupts import contextmanager
from gpulab.device import Device


@contextmanager
def two_gpus() -> Iterator[Device]:
    """Use two GPUs, ``cuda:0`` and ``cuda:1``, in a ``with`` block.

    If the machine in use has two GPUs, the block runs on it. Otherwise the block runs on two
    virtual GPUs. The machine in use and its state come back after the block; its tensors cannot be
    used inside.
    """
    with device.active() as in_use:
        if torch.cuda.device_count() > 1:
            yield in_use
            return
    with _borrowed(n_gpus=2) as borrowed:
        yield borrowed


@contextmanager
def throwaway_gpu() -> Iterator[Device]:
    """Use a new virtual GPU in a ``with`` block, so that an error in a kernel does no harm.

    On a CUDA GPU, after an error in a kernel the process cannot use the GPU any more.
    """
    with _borrowed(n_gpus=1) as borrowed:
        yield borrowed


@contextmanager
def on_host(host: str | None) -> Iterator[str]:
    """Use a new virtual H100 whose work a recorded host launches; the text says its pace.

    ``host`` is the name of a recording, or None for the model's host.
    """
    with _borrowed(n_gpus=1, gpu="H100", host=host):
        borrowed = device.current().virtual
        yield "" if borrowed is None else str(borrowed.machine.host.recorded)


@contextmanager
def _borrowed(
    *, n_gpus: int, gpu: str = device.STAND_IN, host: str | None = None
) -> Iterator[Device]:
    # Only one virtual machine at a time can replace torch.cuda, so leave the one in use first.
    machine = virtual.virtual_gpu(gpu, count=n_gpus, first_use=False, host=host)
    with device.outside(), machine:
        yield device.current()
