"""Operators that only move data, to record: rolls, flips, pads, permutations, repeats, stacks."""

from collections.abc import Callable

import torch
from torch.nn import functional

from benchmarks.fidelity.operators import Tensor, normal
from gpulab.device.work import Work

_MATRICES: dict[str, Callable[[Tensor, Tensor], object]] = {
    "roll rows": lambda a, _: a.roll(3, 0),
    "roll columns": lambda a, _: a.roll(3, 1),
    "roll both": lambda a, _: a.roll((3, 5), (0, 1)),
    "flip rows": lambda a, _: a.flip(0),
    "flip columns": lambda a, _: a.flip(1),
    "tril": lambda a, _: a.tril(),
    "triu": lambda a, _: a.triu(1),
    "repeat rows": lambda a, _: a.repeat(2, 1),
    "repeat columns": lambda a, _: a.repeat(1, 2),
    "repeat_interleave": lambda a, _: a.repeat_interleave(2, 0),
    "stack first": lambda a, b: torch.stack((a, b)),
    "stack last": lambda a, b: torch.stack((a, b), -1),
    "cat rows": lambda a, b: torch.cat((a, b)),
    "pad": lambda a, _: functional.pad(a, (1, 1, 1, 1)),
    "even columns": lambda a, _: a[:, ::2].contiguous(),
    "even rows": lambda a, _: a[::2].contiguous(),
    "left half": lambda a, _: a[:, : a.shape[1] // 2].contiguous(),
    "write left half": lambda a, b: b[:, : a.shape[1] // 2].copy_(a[:, : a.shape[1] // 2]),
    "expand a row": lambda a, _: a[:1].expand(a.shape).contiguous(),
    "expand a column": lambda a, _: a[:, :1].expand(a.shape).contiguous(),
    "rot90": lambda a, _: a.rot90(),
    "clone": lambda a, _: a.clone(),
    "fill left half": lambda a, _: a[:, : a.shape[1] // 2].fill_(0.0),
    "add transposed": lambda a, b: a + b.view(a.shape[1], a.shape[0]).t(),
}


def moved(dtype: torch.dtype, op: str, rows: int, columns: int) -> Work:
    """Move the elements of a matrix."""
    a, b, call = normal(dtype, rows, columns), normal(dtype, rows, columns), _MATRICES[op]
    return lambda: call(a, b)


def permuted(dtype: torch.dtype, op: str, **sizes: int) -> Work:
    """Write four dimensions in another order."""
    x, order = normal(dtype, *sizes.values()), [int(word) for word in op.split()]
    return lambda: x.permute(order).contiguous()


_IMAGES: dict[str, Callable[[Tensor], object]] = {
    "reflect": lambda x: functional.pad(x, (2, 2, 2, 2), "reflect"),
    "replicate": lambda x: functional.pad(x, (2, 2, 2, 2), "replicate"),
    "zeros around": lambda x: functional.pad(x, (1, 1, 1, 1)),
    "to channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "pixel_shuffle": lambda x: functional.pixel_shuffle(x, 2),
    "pixel_unshuffle": lambda x: functional.pixel_unshuffle(x, 2),
    "unfold": lambda x: functional.unfold(x, 3, padding=1),
    "mirror": lambda x: x.flip(3),
    "shift": lambda x: x.roll((1, 1), (2, 3)),
    "crop": lambda x: x[:, :, 1:-1, 1:-1].contiguous(),
    "flatten patches": lambda x: (
        x.unflatten(2, (-1, 2)).unflatten(4, (-1, 2)).permute(0, 2, 4, 1, 3, 5).contiguous()
    ),
}


def moved_images(dtype: torch.dtype, op: str, batch: int, channels: int, size: int) -> Work:
    """Pad, shift or rearrange images."""
    x, call = normal(dtype, batch, channels, size, size), _IMAGES[op]
    return lambda: call(x)
