"""The kernels to time with a cold cache, each for any size of its working set."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt

import torch
from torch.nn import functional

Tensors = tuple[torch.Tensor, ...]

_WIDTH = 1024  # of a row of softmax and layer norm
_TABLE_WIDTH = 128  # of a row of the gathered table
_TILE = 64  # sides of matrices are multiples of it
_HEAD = 64


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel with its tensors, which can be cloned to rotate through them.

    Attributes
    ----------
    run
        Takes the tensors and enqueues the kernel.
    read_bytes, written_bytes
        Bytes that it must read from memory and write to it, if the cache is empty at first and
        large enough.
    n_outputs
        How many of the tensors, at the end, are only written.
    """

    tensors: Tensors
    run: Callable[..., object]
    read_bytes: int
    written_bytes: int
    n_outputs: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes that it reads and writes, together."""
        return self.read_bytes + self.written_bytes


@dataclass(frozen=True, slots=True)
class Work:
    """A kernel, with its name in the tables.

    Attributes
    ----------
    make
        Takes the size of the working set in bytes and returns the case.
    counted
        Whether hardware counters can watch it: they see kernels, but not the driver's copies.
    """

    name: str
    make: Callable[[int], Case]
    counted: bool = True


def _floats(*shape: int, half: bool = False) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=torch.float16 if half else torch.float32)


def _case(run: Callable[..., object], reads: Tensors, writes: Tensors) -> Case:
    """Return a case whose kernel reads all of some tensors and writes all of others."""
    read_bytes, written_bytes = (sum(item.nbytes for item in part) for part in (reads, writes))
    return Case((*reads, *writes), run, read_bytes, written_bytes, len(writes))


# The divisors below are the bytes that one element takes in all tensors together: 4 in each
# float32 tensor, 2 in each of half precision.
def _add(size_bytes: int) -> Case:
    x, y, out = (_floats(size_bytes // 12) for _ in range(3))
    return _case(lambda x, y, out: torch.add(x, y, out=out), (x, y), (out,))


def _negate(size_bytes: int) -> Case:
    x, out = (_floats(size_bytes // 8) for _ in range(2))
    return _case(lambda x, out: torch.neg(x, out=out), (x,), (out,))


def _copy(size_bytes: int) -> Case:
    x, out = (_floats(size_bytes // 8) for _ in range(2))
    return _case(lambda x, out: out.copy_(x), (x,), (out,))


def _scale(size_bytes: int) -> Case:
    x = _floats(size_bytes // 4)
    return Case((x,), lambda x: x.mul_(-1.0), x.nbytes, x.nbytes)


def _fill(size_bytes: int) -> Case:
    return _case(lambda out: out.fill_(1.5), (), (_floats(size_bytes // 4),))


def _sum(size_bytes: int) -> Case:
    x, out = _floats(size_bytes // 4), _floats(1)[0]
    return _case(lambda x, out: torch.sum(x, dim=0, out=out), (x,), (out,))


def _softmax(size_bytes: int) -> Case:
    x, out = (_floats(size_bytes // 8 // _WIDTH, _WIDTH) for _ in range(2))
    return _case(lambda x, out: torch.softmax(x, 1, out=out), (x,), (out,))


def _layer_norm(size_bytes: int) -> Case:
    x = _floats(size_bytes // 4 // _WIDTH, _WIDTH, half=True)
    weight, bias = (_floats(_WIDTH, half=True) for _ in range(2))
    return Case(
        (x, weight, bias),
        lambda x, weight, bias: functional.layer_norm(x, (_WIDTH,), weight, bias),
        x.nbytes,
        x.nbytes,
    )


def _side(n_elements: int) -> int:
    return max(1, isqrt(n_elements) // _TILE) * _TILE


def _product(size_bytes: int) -> Case:
    side = _side(size_bytes // 6)
    a, b, out = (_floats(side, side, half=True) for _ in range(3))
    return _case(lambda a, b, out: torch.mm(a, b, out=out), (a, b), (out,))


def _linear(size_bytes: int) -> Case:
    side = _side(size_bytes // 2)
    weight, row, out = (_floats(n, side, half=True) for n in (side, 1, 1))
    return _case(lambda w, row, out: torch.mm(row, w.t(), out=out), (weight, row), (out,))


def _gather(size_bytes: int) -> Case:
    n_rows = size_bytes // (2 * 4 * _TABLE_WIDTH)
    table, out = _floats(4 * n_rows, _TABLE_WIDTH), _floats(n_rows, _TABLE_WIDTH)
    index = torch.randint(0, 4 * n_rows, (n_rows,), device="cuda")
    return Case(
        (table, index, out),
        lambda table, index, out: torch.index_select(table, 0, index, out=out),
        # Only the chosen rows of the table are read, as many bytes as the output has.
        out.nbytes + index.nbytes,
        out.nbytes,
        1,
    )


def _transpose(size_bytes: int) -> Case:
    side = _side(size_bytes // 8)
    x, out = (_floats(side, side) for _ in range(2))
    return _case(lambda x, out: out.copy_(x.t()), (x,), (out,))


def _attention(size_bytes: int) -> Case:
    n_heads = max(1, size_bytes // (4 * 2 * _WIDTH * _HEAD))
    q, k, v = (_floats(1, n_heads, _WIDTH, _HEAD, half=True) for _ in range(3))
    return Case((q, k, v), functional.scaled_dot_product_attention, 3 * q.nbytes, q.nbytes)


def _convolution(size_bytes: int) -> Case:
    n_images = max(1, size_bytes // (2 * 2 * 64 * 56 * 56))
    x = _floats(n_images, 64, 56, 56, half=True).to(memory_format=torch.channels_last)
    weight = _floats(64, 64, 3, 3, half=True).to(memory_format=torch.channels_last)
    return Case(
        (x, weight),
        lambda x, weight: functional.conv2d(x, weight, padding=1),
        x.nbytes + weight.nbytes,
        x.nbytes,
    )


WORKS = (
    Work("add", _add),
    Work("negate", _negate),
    Work("copy", _copy, counted=False),
    Work("scale in place", _scale),
    Work("fill", _fill),
    Work("sum", _sum),
    Work("softmax", _softmax),
    Work("layer norm", _layer_norm),
    Work("matrix product", _product),
    Work("linear, 1 row", _linear),
    Work("gather", _gather),
    Work("transpose", _transpose),
    Work("attention", _attention),
    Work("convolution", _convolution),
)
