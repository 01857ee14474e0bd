"""The FLOPs and bytes of one call: as the user states them, or counted by PyTorch."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from gpulab import device, gpus
from gpulab.core.errors import InvalidOptionError
from gpulab.core.torch_private import allows_tf32, flop_formulas
from gpulab.core.units import format_bytes
from gpulab.device.measurement import Counts
from gpulab.device.work import Work
from gpulab.timing._isolation import calling_work
from gpulab.timing._options import AUTO, MeasurementOptions

__all__ = ["counts_of", "least_time"]


class _Types(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's gap
    """Collects the types of the tensors in operators whose FLOPs PyTorch counts."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's gap
        self.names: set[str] = set()

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401  # as PyTorch declares them
        _types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        if func._overloadpacket in flop_formulas:  # noqa: SLF001  # as PyTorch's counter does
            tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
            self.names |= {_arithmetic(tensor.dtype, func) for tensor in tensors}
        return func(*args, **(kwargs or {}))


def _arithmetic(dtype: torch.dtype, func: object) -> str:
    if dtype != torch.float32:
        return str(dtype).removeprefix("torch.")
    if "convolution" in str(func):  # cuDNN has a switch of its own
        return "unknown"
    return "tf32" if allows_tf32("matmul") else "float32"


def counts_of(work: Work, options: MeasurementOptions) -> Counts:
    """Return the counts of the options; ``"auto"`` calls the setup and the work once.

    If PyTorch's counter counts nothing in this work, this raises `InvalidOptionError`.
    """
    if options.flops != AUTO:
        return Counts(options.flops, options.size_bytes)  # type: ignore[arg-type]  # no text but "auto"
    if options.setup is not None:
        options.setup()
    counter, types = FlopCounterMode(display=False), _Types()
    with calling_work("while PyTorch counted its FLOPs"), counter, types:
        work()
    flops = counter.get_total_flops()
    if not flops:
        raise InvalidOptionError(
            "flops='auto', and PyTorch's counter counts nothing in this work: it knows matmuls, "
            "convolutions and attention, outside of graphs; give a number, such as flops=2 * n**3"
        )
    arithmetic = types.names.pop() if len(types.names) == 1 else ""
    return Counts(float(flops), options.size_bytes, arithmetic, is_counted=True)


def least_time(counts: Counts) -> tuple[float, str] | None:
    """Return the least seconds that the GPU in use needs for one call, and the reason.

    The type of the arithmetic is not known, so the peak of the fastest type counts. Bytes that
    fit into the L2 set no limit, because they may come from there. Returns None for a GPU without
    a data sheet, or without a limit.
    """
    flops, size_bytes = counts.flops, counts.size_bytes
    spec = gpus.by_driver_name(device.current().name)
    if spec is None:
        return None
    limits, roof = [], gpus.data_sheet(spec)
    if flops:
        counted = f"{flops:.3g} floating-point operations"
        limits.append((roof.compute_s(flops, roof.fastest), counted))
    if size_bytes and size_bytes > spec.l2_bytes:
        counted = f"{format_bytes(size_bytes)} from and to memory"
        limits.append((roof.memory_s(size_bytes), counted))
    # Arithmetic and memory may overlap completely, so the slower of the two is the limit.
    return max(limits, default=None)
