"""Add copies between host and GPU to a piece of work, so that they are timed with it.

The host memory is pinned and allocated first, and no copy waits for the one before. This is the
fastest way that PyTorch offers; a program that copies from pageable memory is slower.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpulab.device.work import Work
from gpulab.virtual import VirtualTensor


def with_copies(work: Callable[[], Any], inputs: Sequence[torch.Tensor], transfers: str) -> Work:
    """Return a function that copies the inputs, calls the work and copies the results.

    The work operates on ``inputs``, which are on the GPU. If results are copied, it is called once
    here, to allocate memory for them. ``transfers`` is ``"none"``, ``"in"``, ``"out"`` or
    ``"both"``.
    """
    if transfers == "none":
        return work
    sources = (
        [(on_device, _host_copy(on_device)) for on_device in inputs] if transfers != "out" else []
    )
    # Only a call shows the shapes of the results. Pinned memory is slow to allocate, so it is done
    # once, before the timing.
    targets = [_host_space(made) for made in _tensors(work())] if transfers != "in" else []

    def copied() -> Any:  # noqa: ANN401  # whatever the work returns
        for on_device, source in sources:
            on_device.copy_(source, non_blocking=True)
        result = work()
        if targets:
            for made, target in zip(_tensors(result), targets, strict=True):
                target.copy_(made, non_blocking=True)
        return result

    return copied


def host_bytes(inputs: Sequence[torch.Tensor], transfers: str) -> int:
    """Return the bytes of pinned memory that the inputs need at least."""
    return sum(tensor.nbytes for tensor in inputs) if transfers in {"in", "both"} else 0


def _tensors(result: Any) -> list[torch.Tensor]:  # noqa: ANN401  # a tensor, or a tuple of them
    made = [result] if isinstance(result, torch.Tensor) else list(result)
    return [_as_floats(tensor.detach()) for tensor in made]


def _as_floats(tensor: torch.Tensor) -> torch.Tensor:
    # The virtual GPU refuses to copy an index to the host if it did not compute its value. As
    # floats, the same bytes may be copied.
    if tensor.dtype is torch.int64 and not _has_values(tensor):
        return tensor.view(torch.float64)
    return tensor


def _host_space(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)


def _host_copy(tensor: torch.Tensor) -> torch.Tensor:
    space = _host_space(tensor)
    # Indices need their values; a virtual tensor may have no values to copy.
    if _has_values(tensor):
        space.copy_(tensor)
    return space


def _has_values(tensor: torch.Tensor) -> bool:
    return not isinstance(tensor, VirtualTensor) or tensor.has_values
