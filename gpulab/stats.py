"""Statistics of samples: the interval of the median, spread, drift, modes and the steady state.

All are pure functions of numbers: they read no clock and know no units. scipy offers only one of
them, the binomial quantile behind the interval. That is seven lines here, and 140 MB to install
there. The tests compare the ranks with scipy's.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpulab.core.errors import EmptyMeasurementError
from gpulab.core.requirements import SHARE, numbers_of

_Array: TypeAlias = NDArray[np.float64]
Samples: TypeAlias = Sequence[float] | _Array

# The sigma of a normal distribution, divided by its median absolute deviation.
_MAD_TO_SIGMA = 1.4826
# The standard error of a median, divided by that of a mean: sqrt(pi / 2).
_MEDIAN_ERROR = 1.2533
# The steady state starts with this many samples in a row at its level. One alone may be luck.
_ROW = 3
_MIN_FOR_STEADY = 8
# The distance from the level of the steady state that is always allowed, relative to the level.
_TOLERANCE = 0.02
# The share of all later samples that must be at the level. The rest may be outliers.
_STEADY_SHARE = 0.9
_MIN_FOR_MODE = 4
# CUDA returns milliseconds in single precision. Differences below this share are its rounding.
_ROUNDING = 1e-4
# A cluster with a smaller share of the samples consists of outliers and is not a mode.
_MODE_SHARE = 0.1
# The distance of two modes in spreads. If you cut one normal or one uniform distribution in half,
# the halves are less than 3 spreads apart.
_MODE_DISTANCE = 6.0
# The smallest distance of two modes, relative to the lower one. Without it the ticks of a coarse
# clock would be modes.
_LEAST_DISTANCE = 0.05


def median_interval(samples: Samples, confidence: float = 0.95) -> tuple[float, float]:
    """Return an interval that contains the true median with the given chance.

    Its ends are two of the samples. The chance that fewer than k of n samples lie below the
    true median is a binomial sum with p = 1/2, for every distribution. So the chance that the
    median lies between the k-th smallest and the k-th largest sample is known. The function
    returns the narrowest of these pairs whose chance is at least ``confidence``.

    The interval assumes independent samples of one distribution. Samples that drift or come in
    runs are not independent, and their interval is too narrow. It does not say where the next
    sample will be, nor that another clock, cache or machine would give the same median.
    With fewer than 6 samples no pair reaches 95 %; then (smallest, largest) is returned.

    Parameters
    ----------
    samples
        At least one number, in any order.
    confidence
        The chance that you ask for, between 0 and 1. The interval's own chance is at least
        this, if there are enough samples.

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
    """Return how far single samples scatter, in a way that a few outliers do not change.

    It is 1.4826 times the median distance to the median. For a normal distribution this
    estimates the standard deviation. It is not the error of the median.

    Examples
    --------
    >>> robust_spread([1.0, 2.0, 3.0, 4.0, 100.0])
    1.4826
    """
    values = _array(samples)
    return _MAD_TO_SIGMA * float(np.median(np.abs(values - np.median(values))))


def drift(samples: Samples) -> float:
    """Return the relative change from the median of the first third to that of the last.

    0.05 means that the last third is 5 % above the first. It does not say why. Noise alone
    causes some drift, so compare it with the spread. The drift of fewer than three samples is 0.

    Examples
    --------
    >>> drift([1.0, 1.0, 1.1, 1.2, 1.25, 1.25])
    0.25
    """
    values = _array(samples)
    # Medians of thirds, because a few outliers would tilt a fitted line.
    third = len(values) // 3
    if third == 0:
        return 0.0
    first, last = float(np.median(values[:third])), float(np.median(values[-third:]))
    if first == last:
        return 0.0
    return (last - first) / abs(first) if first else math.copysign(math.inf, last)


def modes(samples: Samples) -> tuple[float, ...]:
    """Return the centres of the clusters that the samples form, smallest first.

    One value means that no clear gap was seen. Two values mean that the work ran in two ways
    (two clocks, two algorithms, cache hit or miss), which a single median hides. A cluster
    contains at least a tenth of the samples and at least four. Its distance from the next one
    is at least six of its own spreads and 5 % of the lower one; closer clusters count as one. Up
    to one in twelve small sets (8 to 20 samples) without clusters is split by chance.

    Examples
    --------
    >>> modes([5.0] * 6 + [7.0] * 4)
    (5.0, 7.0)
    """
    ordered = np.sort(_array(samples))
    n_smallest = max(_MIN_FOR_MODE, math.ceil(_MODE_SHARE * len(ordered)))
    return tuple(float(np.median(cluster)) for cluster in _split(ordered, n_smallest))


def tick(samples: Samples) -> float:
    """Return the smallest distance between two different samples, 0 if all are equal.

    With a coarse clock this is one tick: samples lie on the ticks, and an interval of one tick
    cannot get narrower. If no two samples are equal, the result says nothing about the clock.
    Differences below a ten-thousandth of the median count as rounding.

    Examples
    --------
    >>> tick([5.0, 5.5, 5.0, 6.5])
    0.5
    """
    values = np.unique(_array(samples))
    steps = np.diff(values)
    # Without this, two readings of the same tick that differ by rounding would be a tick of their
    # own.
    steps = steps[steps > _ROUNDING * abs(float(np.median(values)))]
    return float(steps.min()) if steps.size else 0.0


def steady_from(samples: Samples) -> int:
    """Return the index of the first sample of the steady state.

    The second half of the samples defines the level and the noise. A sample within 2 % of the
    level is at it, and noise allows more. The steady state begins with the first three samples in
    a row at that level, provided that nine tenths of all later samples are at it too. If the
    second half itself moves, or there are fewer than 8 samples, the result is ``len(samples)``:
    not steady yet. A steady state may end: the clock may still fall when the device gets hot.

    Parameters
    ----------
    samples
        At least one number, in the order in which they were taken.

    Examples
    --------
    >>> steady_from([900.0, 12.0, 5.1, 5.0, 5.0, 5.1, 5.0, 5.0])
    2
    """
    values = _array(samples)
    if len(values) < _MIN_FOR_STEADY:
        return len(values)
    # The first half may consist of first-use costs alone, so it must not influence the level.
    tail = values[len(values) // 2 :]
    noise = _noise(tail)
    allowed = _TOLERANCE * abs(float(np.median(tail)))
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
    # Logarithms, because 2**n overflows a float from 1024 samples on.
    # The logarithm of n over k, for k from 0 on, each from the one before.
    log_ways = np.concatenate(([0.0], np.cumsum(np.log((n_samples + 1 - fewer) / fewer))))
    # Without the factor below, rounding would reject a pair whose chance equals the confidence.
    tail = np.cumsum(np.exp(log_ways - n_samples * math.log(2)))
    n_ends = int(np.searchsorted(tail, (1 - confidence) / 2 * (1 + 1e-12), side="right"))
    return max(n_ends - 1, 0)


def _split(ordered: _Array, n_smallest: int) -> list[_Array]:
    """Split at the widest gap, again and again; undo a split whose sides are too close."""
    if len(ordered) < 2 * n_smallest:
        return [ordered]
    cuts = np.arange(n_smallest, len(ordered) - n_smallest + 1)
    widest = int(cuts[np.argmax(ordered[cuts] - ordered[cuts - 1])])
    # Each side is split further before the gap is judged: with three modes, the side that
    # contains two of them would have a large spread and hide the gap.
    low = _split(ordered[:widest], n_smallest)
    high = _split(ordered[widest:], n_smallest)
    return low + high if _are_apart(low[-1], high[0]) else [ordered]


def _are_apart(low: _Array, high: _Array) -> bool:
    distance = float(np.median(high) - np.median(low))
    own_spread = max(robust_spread(low), robust_spread(high))
    needed = max(_MODE_DISTANCE * own_spread, _LEAST_DISTANCE * abs(float(np.median(low))))
    return distance > needed


def _noise(values: _Array) -> float:
    """Return the spread of single samples, from neighbours only, so that drift adds nothing."""
    steps = np.abs(np.diff(values))
    # The variance of a difference is twice that of a sample.
    return _MAD_TO_SIGMA * float(np.median(steps)) / math.sqrt(2)


def _moves(tail: _Array, noise: float, allowed: float) -> bool:
    half = len(tail) // 2
    # Two standard errors of the difference of two medians of ``half`` samples each.
    change = abs(float(np.median(tail[-half:]) - np.median(tail[:half])))
    return change > max(allowed, 2 * _MEDIAN_ERROR * noise * math.sqrt(2 / half))


def _first_steady(inside: NDArray[np.bool_]) -> int:
    rows = np.convolve(inside, np.ones(_ROW, dtype=int), "valid") == _ROW
    share_from = np.cumsum(inside[::-1])[::-1] / np.arange(len(inside), 0, -1)
    starts = np.flatnonzero(rows & (share_from[: len(rows)] >= _STEADY_SHARE))
    return int(starts[0]) if starts.size else len(inside)
