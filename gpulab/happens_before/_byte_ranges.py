"""Work out which bytes a strided view covers, and whether two views of one storage share any."""

from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

# An address of no object: NumPy compares addresses, and reads nothing.
_FIRST_ADDRESS = 1 << 40
_MOST_WORK = 100_000  # candidates that NumPy tries, which takes some milliseconds

Axis = tuple[int, int]  # step in bytes, and how many runs there are along it


class Extent:
    """The bytes of a view: runs of ``run_bytes``, repeated along axes.

    ``start`` is the first byte of the storage that it covers, ``stop`` the one after the last. An
    axis has a step in bytes and a count, longest step first; one run has no axes.
    """

    __slots__ = ("axes", "run_bytes", "start", "stop")

    def __init__(self, start: int, run_bytes: int, axes: tuple[Axis, ...] = ()) -> None:
        self.start = start
        self.run_bytes = run_bytes
        self.axes = axes
        reach = sum(step * (n - 1) for step, n in axes)
        self.stop = start + reach + run_bytes

    def meets(self, other: "Extent") -> bool:
        """Return whether the two share a byte.

        The result is exact, with one exception: if NumPy's search takes too long, it is True, so
        that no race is missed.
        """
        if self.stop <= other.start or other.stop <= self.start:
            return False
        # Single runs whose intervals overlap share a byte, and so does any extent with itself.
        if not (self.axes or other.axes) or self is other:
            return True
        return _meet(self, other)

    def covers(self, other: "Extent") -> bool:
        """Return True only if every byte of ``other`` is in this one; False may mean unknown."""
        if self is other:
            return True
        if self.axes:
            # An exact test of two sets of runs is expensive. Unknown only means that the older
            # access stays recorded for longer.
            return (
                self.start == other.start
                and self.run_bytes == other.run_bytes
                and self.axes == other.axes
            )
        return self.start <= other.start and other.stop <= self.stop

    def shifted(self, by_bytes: int) -> "Extent":
        """Return the same runs, beginning ``by_bytes`` later."""
        return Extent(self.start + by_bytes, self.run_bytes, self.axes)

    def clipped(self, start: int, stop: int) -> "Extent":
        """Return the part between two bytes; an extent of several runs is returned whole."""
        if self.axes or (start <= self.start and self.stop <= stop):
            return self
        first, last = max(start, self.start), min(stop, self.stop)
        return Extent(first, last - first) if first < last else _NOTHING


# An extent without bytes. It ends before every other extent starts, so comparisons need no
# special case for it.
_NOTHING = Extent(-(1 << 62), 0)


@lru_cache(maxsize=1 << 14)  # a program has few layouts, and uses each many times
def extent(sizes: tuple[int, ...], strides: tuple[int, ...], offset: int, itemsize: int) -> Extent:
    """Return the bytes that a view of a storage covers.

    All but ``itemsize`` are in elements, as PyTorch returns them; it has no negative strides.
    """
    if 0 in sizes:
        return _NOTHING
    pairs = zip(strides, sizes, strict=True)
    # Sorted by step, so that a transposed view and its base give the same runs. Axes of one
    # element add no bytes, nor do expanded ones: their step of 0 comes first.
    axes = sorted((step * itemsize, n) for step, n in pairs if n > 1)
    run_bytes = itemsize
    while axes and axes[0][0] <= run_bytes:  # neighbours touch, or overlap after Tensor.unfold
        step, n = axes.pop(0)
        run_bytes += step * (n - 1)
    return Extent(offset * itemsize, run_bytes, tuple(_joined(axes)))


def _joined(axes: list[Axis]) -> list[Axis]:
    """Join an axis with the next one if that continues where it ends; longest step first."""
    joined: list[Axis] = []
    for step, n in axes:
        if joined and joined[0][0] * joined[0][1] == step:
            inner, n_inner = joined[0]
            joined[0] = (inner, n_inner * n)
        else:
            joined.insert(0, (step, n))
    return joined


@lru_cache(maxsize=1 << 12)
def _meet(first: Extent, second: Extent) -> bool:
    try:
        return np.shares_memory(_array(first), _array(second), _MOST_WORK)  # type: ignore[arg-type]  # NumPy takes any number
    except np.exceptions.TooHardError:
        return True


def _array(view: Extent) -> NDArray[np.uint8]:
    """Return an array with the same bytes, of which only the addresses are looked at."""
    steps, counts = zip(*view.axes, (1, view.run_bytes), strict=True)

    class Interface:
        __array_interface__: ClassVar = {
            "version": 3,
            "typestr": "|u1",
            "shape": counts,
            "strides": steps,
            "data": (_FIRST_ADDRESS + view.start, True),
        }

    return np.asarray(Interface())
