"""Read which kernels a program launched on the virtual GPU."""

import torch

from gpulab.virtual import Kind, VirtualGpu


def kernels(gpu: VirtualGpu) -> list[str]:
    """Return the names of the kernels since the last call."""
    torch.cuda.synchronize()
    device = gpu.machine.gpu.device
    found = [item.name for item in device.records() if item.kind is Kind.KERNEL]
    device.forget_records()
    return found
