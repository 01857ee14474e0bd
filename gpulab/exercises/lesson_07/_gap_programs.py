"""Three programs for the exercise on gaps: one waits, one launches too late, one has no gaps."""

from collections.abc import Callable
from functools import partial
from types import MappingProxyType

import torch

from gpulab.core.errors import UnknownNameError

_N_STEPS = 6


def program(letter: str) -> Callable[[], None]:
    """Return the program ``"a"``, ``"b"`` or ``"c"`` of the exercise ``07.gaps``.

    Any other letter raises `UnknownNameError`.
    """
    if letter not in _PROGRAMS:
        raise UnknownNameError("program", letter, tuple(_PROGRAMS))
    step, shape = _PROGRAMS[letter]
    return partial(_repeat, step, torch.ones(shape, device="cuda"))


def _repeat(step: Callable[[torch.Tensor], object], x: torch.Tensor) -> None:
    for _ in range(_N_STEPS):
        step(x)


_PROGRAMS = MappingProxyType(
    {
        "a": (lambda x: x.sum().item(), (1 << 20,)),  # item() waits in every step
        "b": (lambda x: x @ x, (2048, 2048)),  # each kernel takes longer than its launch
        "c": (lambda x: x.neg_(), (1 << 12,)),  # each launch takes longer than its kernel
    }
)
