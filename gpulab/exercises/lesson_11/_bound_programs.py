"""Four programs to profile: each spends most of its time waiting for something else."""

from collections.abc import Callable
from functools import cache

import torch

from gpulab.core.errors import UnknownNameError
from gpulab.device.work import Work

_N_SMALL = 200
_MIB = 2**20


def program(name: str) -> Work:
    """Return the program ``"a"``, ``"b"``, ``"c"`` or ``"d"``, ready to be called and profiled.

    Any other name raises `UnknownNameError`.
    """
    if name not in _PROGRAMS:
        raise UnknownNameError("program", name, tuple(_PROGRAMS))
    return _PROGRAMS[name]


def _copies() -> None:
    """Copy a batch from pageable memory, for one small kernel each time."""
    for _ in range(4):
        _batch().cuda().mul_(2)
    torch.cuda.synchronize()


def _launches() -> None:
    """Launch many kernels, each of which takes less time than its launch."""
    x = _tensor(1024)
    for _ in range(_N_SMALL):
        x.add_(1)
    torch.cuda.synchronize()


def _computes() -> None:
    """Multiply matrices that are large enough to keep the GPU busy."""
    a = _tensor(4096, 4096)
    for _ in range(4):
        a @ a
    torch.cuda.synchronize()


def _allocates() -> None:
    """Allocate memory from the driver in each round, and return it to the driver."""
    for _ in range(8):
        torch.empty(256 * _MIB, dtype=torch.uint8, device="cuda")
        torch.cuda.empty_cache()
    torch.cuda.synchronize()


@cache  # filling the batch would otherwise be the longest part of the program
def _batch() -> torch.Tensor:
    return torch.ones(16 * _MIB, dtype=torch.uint8)


def _tensor(*shape: int) -> torch.Tensor:
    return torch.ones(shape, device="cuda")


# The letters of the exercise, in no order that would give the answers away.
_PROGRAMS: dict[str, Callable[[], None]] = {
    "a": _launches,
    "b": _allocates,
    "c": _computes,
    "d": _copies,
}
