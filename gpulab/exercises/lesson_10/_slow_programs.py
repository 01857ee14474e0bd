"""Three programs that take at least three times as long as the plain roofline predicts."""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import torch

from gpulab.core.errors import UnknownNameError

_GROWN = 16  # factor by which `grown` multiplies the number of elements
# Few enough that the shortest kernel time dominates, many enough that it does not, and a matrix
# side that is no multiple of the tiles of a matmul.
_FEW, _MANY, _SIDE = 1 << 17, 1 << 23, 2047


@dataclass(frozen=True, slots=True)
class SlowProgram:
    """A program, with the least FLOPs and bytes that it needs.

    Attributes
    ----------
    work
        A function that enqueues the program once.
    flops, size_bytes
        Floating-point operations, and bytes of the inputs and the result.
    arithmetic
        Data type of the arithmetic, for example ``"float16"``.
    """

    work: Callable[[], object]
    flops: int
    size_bytes: int
    arithmetic: str


def slow_program(letter: str, *, grown: bool = False, rounded: bool = False) -> SlowProgram:
    """Return one of the programs of the exercise ``10.three-gaps``.

    Parameters
    ----------
    letter
        ``"a"``, ``"b"`` or ``"c"``.
    grown
        Whether its tensors have 16 times as many elements.
    rounded
        Whether the sides of its tensors are rounded up to a multiple of 64.

    Raises
    ------
    UnknownNameError
        If no program has this letter.

    Examples
    --------
    >>> from gpulab import virtual
    >>> from gpulab.exercises import lesson_10 as lab
    >>> with virtual.virtual_gpu("H200", first_use=False):
    ...     lab.slow_program("a").arithmetic
    'float32'
    """
    if letter not in _PROGRAMS:
        raise UnknownNameError("program", letter, tuple(_PROGRAMS))
    return _PROGRAMS[letter](grown, rounded)


def _rounded(n: int) -> int:
    return -(-n // 64) * 64


def _addition(grown: bool, rounded: bool) -> SlowProgram:  # noqa: FBT001 # two switches, as of a panel
    n = _FEW * (_GROWN if grown else 1)
    n = _rounded(n) if rounded else n
    x, y = (torch.randn(n, device="cuda") for _ in range(2))
    return SlowProgram(lambda: x + y, n, 3 * n * x.itemsize, "float32")


def _chain(grown: bool, rounded: bool) -> SlowProgram:  # noqa: FBT001 # as above
    n = _MANY * (_GROWN if grown else 1)
    n = _rounded(n) if rounded else n
    x = torch.randn(n, device="cuda", dtype=torch.half)
    return SlowProgram(lambda: x.sub(0.5).mul(2.0).add(1.0), 3 * n, 2 * n * x.itemsize, "float16")


def _matmul(grown: bool, rounded: bool) -> SlowProgram:  # noqa: FBT001 # as above
    # 8191: sixteen times as many elements, and still odd.
    side = (_SIDE + 1) * 4 - 1 if grown else _SIDE
    side = _rounded(side) if rounded else side
    x, y = (torch.randn(side, side, device="cuda", dtype=torch.half) for _ in range(2))
    return SlowProgram(lambda: x @ y, 2 * side**3, 3 * side**2 * x.itemsize, "float16")


_PROGRAMS = MappingProxyType({"a": _addition, "b": _chain, "c": _matmul})
