"""Statistics of samples: the interval of the median, spread, drift, modes and the steady state.

All are pure functions of numbers, with no clock and no units. scipy has only one of them, the
binomial quantile behind the interval: seven lines here, for 140 MB to install. The tests compare
the ranks with scipy's.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpulab.errors import EmptyMeasurementError
from gpulab.requirements import NOT_NEGATIVE, SHARE, numbers_of

_Array = NDArray[np.float64]
Samples = Sequence[float] | _Array

_MAD_TO_SIGMA = 1.4826  # median absolute deviation of a normal distribution, as its sigma
_MEDIAN_ERROR = 1.2533  # standard error of a median, against that of a mean: sqrt(pi / 2)
_ROW = 3  # samples in a row that make a start of the steady state believable
_MIN_FOR_STEADY = 8
_STEADY_SHARE = 0.9  # of the samples that follow; the rest may be outliers
_MIN_FOR_MODE = 4
_ROUNDING = 1e-4  # of a time that CUDA gives as a float of single precision, in milliseconds
_MODE_SHARE = 0.1  # of all samples; fewer are outliers, not a mode
_MODE_DISTANCE = 6.0  # in spreads; halves of one bell, or of one box, lie less than 3 apart


def median_interval(samples: Samples, confidence: float = 0.95) -> tuple[float, float]:
    """Return an interval for the median, made of two of the samples.

    The chance that fewer than k of n samples lie below the true median is a binomial sum
    with p = 1/2, whatever the distribution, so the k-th smallest and the k-th largest
    sample enclose the median with a known chance. The interval is the narrowest such pair
    that reaches ``confidence``.

    It assumes independent samples of one distribution. Samples that drift, or that come in
    runs, are not, and their interval is too narrow. It does not say where the next sample
    will lie, nor that other conditions (clock, cache, machine) would give the same median.
    Below 6 samples no pair reaches 95 %, and (smallest, largest) is returned.

    Parameters
    ----------
    samples
        At least one number, in any order.
    confidence
        Chance asked for, between 0 and 1; the interval's own is at least that.

    Raises
    ------
    EmptyMeasurementError
        If there are no samples.
    InvalidOptionError
        If ``confidence`` is not between 0 and 1.

    Examples
    --------
    >>> median_interval([5.0, 1.0, 4.0, 2.0, 6.0, 3.0])
    (1.0, 6.0)
    """
    SHARE.check(confidence=confidence)
    ordered = np.sort(_array(samples))
    rank = _interval_rank(len(ordered), confidence)
    return float(ordered[rank]), float(ordered[-1 - rank])


def robust_spread(samples: Samples) -> float:
    """Return 1.4826 times the median distance to the median.

    For a normal distribution it estimates the standard deviation; a few outliers leave it
    alone. It is the spread of single samples, not the error of their median.

    >>> robust_spread([1.0, 2.0, 3.0, 4.0, 100.0])
    1.4826
    """
    values = _array(samples)
    return _MAD_TO_SIGMA * float(np.median(np.abs(values - np.median(values))))


def drift(samples: Samples) -> float:
    """Return the relative change from the median of the first third to that of the last.

    0.05 says that the last third is 5 % above the first; it does not say why, and noise
    alone gives some: compare it with the spread. Fewer than three samples have no drift.

    >>> drift([1.0, 1.0, 1.1, 1.2, 1.25, 1.25])
    0.25
    """
    values = _array(samples)
    # Medians of thirds, because a line fitted through outliers would find a drift in them.
    third = len(values) // 3
    if third == 0:
        return 0.0
    first, last = float(np.median(values[:third])), float(np.median(values[-third:]))
    if first == last:
        return 0.0
    return (last - first) / abs(first) if first else math.copysign(math.inf, last)


def modes(samples: Samples, *, min_separation: float = 0.05) -> tuple[float, ...]:
    """Return the centres of the clusters that the samples form, smallest first.

    One value means that no clear gap was seen. Two mean that the work ran in two ways (two
    clocks, two algorithms, cache hit or miss), which one median hides. A cluster holds a
    tenth of the samples, and at least four, and is six of its own spreads from the next;
    closer ones are seen as one. Of small sets (8 to 20) without any clusters, up to one in
    twelve is split by chance.

    Parameters
    ----------
    samples
        At least one number, in any order.
    min_separation
        Smallest distance of two clusters, relative to the lower; without it the steps of
        a coarse clock would be taken for clusters.

    Examples
    --------
    >>> modes([5.0] * 6 + [7.0] * 4)
    (5.0, 7.0)
    """
    NOT_NEGATIVE.check(min_separation=min_separation)
    ordered = np.sort(_array(samples))
    n_smallest = max(_MIN_FOR_MODE, math.ceil(_MODE_SHARE * len(ordered)))
    clusters = _split(ordered, n_smallest, min_separation)
    return tuple(float(np.median(cluster)) for cluster in clusters)


def tick(samples: Samples) -> float:
    """Return the smallest distance between two different samples, 0 if all are equal.

    A clock that ticks shows itself so: samples lie on its ticks, and an interval of one tick
    cannot get narrower. Of samples that never repeat it says nothing of the clock. Differences
    below a ten-thousandth of the median are taken for rounding.

    >>> tick([5.0, 5.5, 5.0, 6.5])
    0.5
    """
    values = np.unique(_array(samples))
    steps = np.diff(values)
    steps = steps[steps > _ROUNDING * abs(float(np.median(values)))]
    return float(steps.min()) if steps.size else 0.0


def steady_from(samples: Samples, *, tolerance: float = 0.02) -> int:
    """Return the index from which the samples, in the order taken, are steady.

    The second half sets the level and the noise. The samples are steady from the first
    three in a row that lie at that level, if nine tenths of all later ones do too. If the
    second half itself moves, or there are fewer than 8 samples, the answer is
    ``len(samples)``: not steady yet. Steady so far is not steady for ever: clocks may
    still fall when the device gets hot.

    Parameters
    ----------
    samples
        At least one number, in the order taken.
    tolerance
        Distance from the level that is always allowed, relative to it; noise allows more.

    Examples
    --------
    >>> steady_from([900.0, 12.0, 5.1, 5.0, 5.0, 5.1, 5.0, 5.0])
    2
    """
    NOT_NEGATIVE.check(tolerance=tolerance)
    values = _array(samples)
    if len(values) < _MIN_FOR_STEADY:
        return len(values)
    # The first half may be first-use costs from end to end, so it has no say in the level.
    tail = values[len(values) // 2 :]
    noise = _noise(tail)
    allowed = tolerance * abs(float(np.median(tail)))
    if _moves(tail, noise, allowed):
        return len(values)
    inside = np.abs(values - np.median(tail)) <= max(allowed, 3 * noise)
    return _first_steady(inside)


def _array(samples: Samples) -> _Array:
    values: _Array = numbers_of("samples", samples)
    if values.size == 0:
        raise EmptyMeasurementError("samples is empty; give at least one sample")
    return values


def _interval_rank(n_samples: int, confidence: float) -> int:
    """Return how many samples lie outside the interval at each end."""
    fewer = np.arange(1, n_samples // 2 + 1)
    # Logarithms, because 2**n leaves the range of a float at 1024 samples.
    log_ways = np.concatenate(([0.0], np.cumsum(np.log((n_samples + 1 - fewer) / fewer))))
    # The factor below lets a confidence that is reached exactly count in spite of rounding.
    tail = np.cumsum(np.exp(log_ways - n_samples * math.log(2)))
    n_ends = int(np.searchsorted(tail, (1 - confidence) / 2 * (1 + 1e-12), side="right"))
    return max(n_ends - 1, 0)


def _split(ordered: _Array, n_smallest: int, min_separation: float) -> list[_Array]:
    """Cut at the widest gap, and keep the cut if the clusters beside it are far apart."""
    if len(ordered) < 2 * n_smallest:
        return [ordered]
    cuts = np.arange(n_smallest, len(ordered) - n_smallest + 1)
    widest = int(cuts[np.argmax(ordered[cuts] - ordered[cuts - 1])])
    low = _split(ordered[:widest], n_smallest, min_separation)
    high = _split(ordered[widest:], n_smallest, min_separation)
    return low + high if _are_apart(low[-1], high[0], min_separation) else [ordered]


def _are_apart(low: _Array, high: _Array, min_separation: float) -> bool:
    distance = float(np.median(high) - np.median(low))
    own_spread = max(robust_spread(low), robust_spread(high))
    needed = max(_MODE_DISTANCE * own_spread, min_separation * abs(float(np.median(low))))
    return distance > needed


def _noise(values: _Array) -> float:
    """Return the spread of a sample as seen from its neighbour, which a drift leaves alone."""
    steps = np.abs(np.diff(values))
    return _MAD_TO_SIGMA * float(np.median(steps)) / math.sqrt(2)


def _moves(tail: _Array, noise: float, allowed: float) -> bool:
    half = len(tail) // 2
    change = abs(float(np.median(tail[-half:]) - np.median(tail[:half])))
    return change > max(allowed, 2 * _MEDIAN_ERROR * noise * math.sqrt(2 / half))


def _first_steady(inside: NDArray[np.bool_]) -> int:
    rows = np.convolve(inside, np.ones(_ROW, dtype=int), "valid") == _ROW
    share_from = np.cumsum(inside[::-1])[::-1] / np.arange(len(inside), 0, -1)
    starts = np.flatnonzero(rows & (share_from[: len(rows)] >= _STEADY_SHARE))
    return int(starts[0]) if starts.size else len(inside)
