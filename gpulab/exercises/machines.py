"""GPUs for one cell of a lesson: two GPUs, or a virtual one with another host."""

from collections.abc import Iterator

import torch

from gpulab import device
from gpulab.core.interrupts import contextmanager
from gpulab.device import Device
from gpulab.exercises.answers import fresh_gpu


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
    with fresh_gpu(n_gpus=2) as borrowed:
        yield borrowed


@contextmanager
def on_host(host: str | None) -> Iterator[str]:
    """Use a new virtual H100 whose work a recorded host launches; the text says its pace.

    ``host`` is the name of a recording, or None for the model's host.
    """
    with fresh_gpu("H100", host=host) as borrowed:
        machine = borrowed.virtual
        yield "" if machine is None else str(machine.machine.host.recorded)
