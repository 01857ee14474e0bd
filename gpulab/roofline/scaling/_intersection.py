"""Where two curves cross: the size with its interval, or the reason why there is no such size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpulab.roofline.scaling._latency_bandwidth_fit import Array

_SMALLEST_POWER = 2**17  # below it, three digits or the number itself are easier to read
_DIGITS = 3
_CPU_AHEAD, _GPU_AHEAD = 1, -1


@dataclass(frozen=True, slots=True)
class Crossing:
    """The size from which the GPU is faster, or the reason why there is no such size.

    Attributes
    ----------
    kind
        ``"once"``; ``"always"`` and ``"never"``: the GPU is faster at every size, or at none;
        ``"reversed"``: it is faster below the crossing; ``"several"``: they cross more than once;
        ``"undecided"``: the intervals overlap at all sizes.
    size
        Where the curves cross, by a straight line between sizes in both logarithms; None unless
        they cross exactly once.
    low, high
        95 % interval of the size, from the intervals of the points next to it. 0 or infinity if
        the interval is open on that side. It does not allow for curves that bend between sizes.
    sizes
        All crossings, smallest first.
    first, last
        The smallest and the largest size that was compared.
    of
        Which sizes were compared: ``"measured"`` ones, or those ``"of the lines"``.

    Examples
    --------
    >>> from gpulab.roofline.scaling import Crossing
    >>> print(Crossing("once", 210.0, 195.0, 230.0, (210.0,), 64, 8192))
    n = 210 [195, 230]
    >>> Crossing("never", None, None, None, (), 64, 8192).reason
    'no crossing: the GPU is slower at every size up to 8,192'
    """

    kind: str
    size: float | None
    low: float | None
    high: float | None
    sizes: tuple[float, ...]
    first: int
    last: int
    of: str = "measured"

    @property
    def reason(self) -> str:
        """Why there is not exactly one size from which the GPU is faster; empty if there is."""
        first, last = size_text(self.first), size_text(self.last)
        return {
            "once": "",
            "always": f"no crossing: the GPU is faster at every size {self.of} (from {first})",
            "never": f"no crossing: the GPU is slower at every size up to {last}",
            "several": f"crosses more than once: at n = {', '.join(map(size_text, self.sizes))}",
            "reversed": f"the other way round: the GPU is faster below {self._estimate()} only",
            "undecided": f"not decided from {first} to {last}: the intervals overlap everywhere",
        }[self.kind]

    def __str__(self) -> str:
        return self.reason or self._estimate()

    def _estimate(self) -> str:
        if self.size is None or self.low is None or self.high is None:
            return "no size"
        low = size_text(self.low) if self.low > 0 else f"below {size_text(self.first)}"
        high = size_text(self.high) if self.high < math.inf else f"above {size_text(self.last)}"
        return f"n = {size_text(self.size)} [{low}, {high}]"


def size_text(size: float) -> str:
    """Return a size as text: whole, or with three digits; a large power of two as a power.

    >>> size_text(2**26), size_text(212.4), size_text(3.4567), size_text(123456)
    ('2^26', '212', '3.46', '123,456')
    """
    exponent = round(math.log2(size))
    if size >= _SMALLEST_POWER and size == 2**exponent:
        return f"2^{exponent}"
    if float(size).is_integer() and size < 10 * _SMALLEST_POWER:
        return f"{size:,.0f}"
    rounded = float(f"{size:.{_DIGITS}g}")
    return f"{rounded:,.0f}" if rounded >= 10 ** (_DIGITS - 1) else f"{rounded:g}"


def find_crossing(sizes: Sequence[int] | Array, ratio: Array, reach: Array) -> Crossing:
    """Return the size from which the GPU is faster than the CPU.

    Sizes at which the intervals overlap are ignored, because the curves may cross there by noise.
    Sizes ascend. ``ratio`` is the natural logarithm of the GPU's time over the CPU's at each size,
    and ``reach`` how far its 95 % interval goes down and up: two rows, both at least 0.
    """
    at = np.log(np.asarray(sizes, dtype=np.float64))
    low, high = ratio - reach[0], ratio + reach[1]
    # A side is faster only if the whole interval is on that side of zero.
    ahead = np.where(low > 0, _CPU_AHEAD, np.where(high < 0, _GPU_AHEAD, 0))
    decided = _decided(ahead, ratio)
    changes = [
        (sign, start, end) for (sign, start), (other, end) in pairwise(decided) if sign != other
    ]
    crossings = tuple(_middle(at, ratio, start, end) for _, start, end in changes)
    first, last = int(sizes[0]), int(sizes[-1])
    if not decided:
        return Crossing("undecided", None, None, None, (), first, last)
    if not changes:
        kind = "never" if decided[0][0] == _CPU_AHEAD else "always"
        return Crossing(kind, None, None, None, (), first, last)
    if len(changes) > 1:
        return Crossing("several", None, None, None, crossings, first, last)
    ((leader, start, end),) = changes
    falls = leader == _CPU_AHEAD
    # The interval goes from the first size at which the ends of the bands cross to the last.
    early, late = (low, high) if falls else (high, low)
    # An end point that is not certain leaves its side open: the curves may cross further out.
    lowest = math.exp(_zeros(at, early, start, end)[0]) if ahead[start] else 0.0
    highest = math.exp(_zeros(at, late, start, end)[-1]) if ahead[end] else math.inf
    kind = "once" if falls else "reversed"
    return Crossing(kind, crossings[0], lowest, highest, crossings, first, last)


def _decided(ahead: Array, ratio: Array) -> list[tuple[int, int]]:
    """Return the faster side and the index, for each size at which it is certain.

    Both end points always count, also if they are uncertain: if the faster side has changed
    there, the curves cross, and only the end of the interval is open.
    """
    certain = [(int(sign), index) for index, sign in enumerate(ahead) if sign]
    ends = [(_side(ratio[index]), index) for index in (0, len(ratio) - 1)]
    return [ends[0], *certain, ends[1]] if certain else []


def _side(ratio: float) -> int:
    return _CPU_AHEAD if ratio > 0 else _GPU_AHEAD


def _middle(at: Array, ratio: Array, start: int, end: int) -> float:
    """Return the size between two points where the curves cross, the middle one of several."""
    zeros = _zeros(at, ratio, start, end)
    # Noise may make the ratio cross zero an odd number of times between two certain sizes.
    return math.exp((zeros[0] + zeros[-1]) / 2)


def _zeros(at: Array, values: Array, start: int, end: int) -> list[float]:
    """Return where straight lines between the values pass zero, between two indices."""
    zeros = []
    for index in range(start, end):
        left, right = float(values[index]), float(values[index + 1])
        # A ratio of exactly 1 counts as the GPU's, as in _side.
        if (left > 0) != (right > 0):
            share = left / (left - right)
            zeros.append(float(at[index] + share * (at[index + 1] - at[index])))
    return zeros
