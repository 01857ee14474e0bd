"""Work out which bytes a strided view covers, and whether two views of one storage share any."""

import math
from collections.abc import Iterator
from functools import lru_cache

# ``meets`` tries the runs of the sparser view one by one. With more runs than this it would take
# too long, and the answer is "they overlap", so that no race is missed.
MAX_RUNS = 1 << 16

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

    @property
    def n_runs(self) -> int:
        """Number of runs."""
        return math.prod(n for _, n in self.axes)

    def meets(self, other: "Extent") -> bool:
        """Return whether the two share a byte.

        The result is exact, with one exception: if both have more than ``MAX_RUNS`` runs and no
        common divisor of their steps shows that they are disjoint, the result is True.
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

    All but ``itemsize`` are in elements, as PyTorch returns them; it has no negative strides. Two
    columns of a 3 x 4 matrix of 4-byte numbers lie side by side and share no byte:
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
    if _kept_apart(first, second):
        return False
    # The loop goes over the runs of one view, so it takes the one with fewer runs.
    sparse, dense = sorted((first, second), key=lambda extent: extent.n_runs)
    if sparse.n_runs > MAX_RUNS:
        return True
    start, run_bytes = dense.start, sparse.run_bytes
    return any(
        _covers_any(dense.axes, dense.run_bytes, at - start, run_bytes) for at in _runs(sparse)
    )


def _kept_apart(first: Extent, second: Extent) -> bool:
    """Return whether the two are disjoint modulo the greatest common divisor of all steps.

    Two columns of a matrix are the usual case: no loop over their rows is needed.
    """
    # Modulo this number, all runs of a view start at the same place.
    period = math.gcd(*(step for step, _ in (*first.axes, *second.axes)))
    gap = (second.start - first.start) % period
    return first.run_bytes <= gap and second.run_bytes <= period - gap


def _runs(view: Extent) -> Iterator[int]:
    """Yield where each run starts."""

    def walk(at: int, axes: tuple[Axis, ...]) -> Iterator[int]:
        if not axes:
            yield at
            return
        step, n = axes[0]
        for index in range(n):
            yield from walk(at + index * step, axes[1:])

    return walk(view.start, view.axes)


def _covers_any(axes: tuple[Axis, ...], run_bytes: int, at: int, n_bytes: int) -> bool:
    """Return whether a view that starts at 0 has a byte in ``[at, at + n_bytes)``."""
    if not axes:
        return True
    (step, n), inner = axes[0], axes[1:]
    # Only the steps whose bytes reach into the range are tried, so most of the view is never
    # looked at, and a single run that is reached has a byte there.
    reach = sum(length * (count - 1) for length, count in inner) + run_bytes
    first = max(0, -((reach - 1 - at) // step))
    last = min(n - 1, (at + n_bytes - 1) // step)
    return any(
        _covers_any(inner, run_bytes, at - index * step, n_bytes)
        for index in range(first, last + 1)
    )
