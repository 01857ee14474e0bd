"""A GPU that is computed: unmodified torch.cuda code runs on it, on a virtual clock."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpulab.virtual.session import VirtualGpu

__all__ = ["virtual_gpu"]


def virtual_gpu(
    gpu: str = "H200",
    *,
    count: int = 1,
    first_use: bool = True,
    max_value_elements: int = 1 << 20,
    max_value_flops: int = 50_000_000,
) -> "VirtualGpu":
    """Make a virtual GPU; ``with`` puts it behind ``torch.cuda``, as often as wanted.

    Inside the context the virtual clock stands behind ``time.perf_counter`` and its relatives,
    on the thread that entered. Every duration is computed from a model of the named GPU: it is
    no measurement of one. The same seed gives the same random numbers here again, and neither
    those of a CPU generator nor those of a real GPU.

    Parameters
    ----------
    gpu
        A name of :func:`gpulab.gpus.names`, e.g. ``"H200"`` or ``"A100"``.
    count
        How many GPUs the machine has: ``cuda:0``, ``cuda:1`` ...
    first_use
        Whether the first use of the context, of libraries and of each kernel costs time, as it
        does on hardware.
    max_value_elements, max_value_flops
        Tensors above this many elements, and results of more floating-point operations, carry
        no values: they have shape, type and cost only. Reading one gives ``nan``, or raises
        ``NoValuesError`` where the type has no ``nan``.

    Raises
    ------
    UnknownNameError
        If there is no GPU of that name; the message names the nearest.

    Examples
    --------
    >>> import torch
    >>> with virtual_gpu("H200"):
    ...     torch.arange(3, device="cuda").sum().item()
    3
    """
    from gpulab.virtual.session import VirtualGpu

    return VirtualGpu(
        gpu,
        count=count,
        first_use=first_use,
        max_value_elements=max_value_elements,
        max_value_flops=max_value_flops,
    )
