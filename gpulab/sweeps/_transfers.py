"""Work together with the copies that bring its inputs to the GPU and its results back.

The host's side is pinned memory that is there beforehand, and every copy is queued behind the
last: the fastest way that PyTorch offers. A program that copies from ordinary memory waits longer.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpulab.work import Work

Tensor = torch.Tensor


def with_copies(work: Callable[[], Any], inputs: Sequence[Tensor], transfers: str) -> Work:
    """Return the work with its copies in front and behind; it is called once to see its results.

    Parameters
    ----------
    work
        The operation on ``inputs``, which are on the GPU.
    transfers
        ``"none"``, ``"in"``, ``"out"`` or ``"both"``.
    """
    if transfers == "none":
        return work
    sources = [(given, _host_copy(given)) for given in inputs] if transfers != "out" else []
    targets = [_host_space(made) for made in _tensors(work())] if transfers != "in" else []

    def copied() -> Any:  # noqa: ANN401  # whatever the work returns
        for given, source in sources:
            given.copy_(source, non_blocking=True)
        result = work()
        if targets:
            for made, target in zip(_tensors(result), targets, strict=True):
                target.copy_(made, non_blocking=True)
        return result

    return copied


def host_bytes(inputs: Sequence[Tensor], transfers: str) -> int:
    """Return the bytes of pinned memory that the inputs take at least."""
    return sum(given.nbytes for given in inputs) if transfers in {"in", "both"} else 0


def _tensors(result: Any) -> list[Tensor]:  # noqa: ANN401  # a tensor, or a tuple of them
    made = [result] if isinstance(result, Tensor) else list(result)
    return [_as_floats(tensor.detach()) for tensor in made]


def _as_floats(tensor: Tensor) -> Tensor:
    # Of an index that the virtual GPU did not compute it gives out nothing, not even a copy that
    # nobody reads; as floats the same bytes pass.
    if tensor.dtype is torch.int64 and not getattr(tensor, "has_values", True):
        return tensor.view(torch.float64)
    return tensor


def _host_space(tensor: Tensor) -> Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)


def _host_copy(tensor: Tensor) -> Tensor:
    space = _host_space(tensor)
    # Values matter where they are indices, and a virtual tensor may have none.
    if getattr(tensor, "has_values", True):
        space.copy_(tensor)
    return space
