"""Fit a straight line to the times of a curve: a fixed cost plus size over bandwidth.

scipy has Student's t and a least-squares solver for this, but it needs 140 MB and half a second
to import, and would save fifty lines here. The tests compare the results with scipy's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpulab.core.requirements import numbers_of
from gpulab.core.units import format_estimate, format_percent, format_rate, format_time

Array: TypeAlias = NDArray[np.float64]
_Samples: TypeAlias = Sequence[float] | Array

_N_PARAMETERS = 2
_N_STEPS = 50
_LEAST = 1e-9  # a share of a step, a gain or a part of the line that counts as nothing
_ROUNDING = 1e-12  # rounding error of a sum of squared logarithms
# Student's t for a two-sided 95 % interval, for 1 to 10 degrees of freedom.
_T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
_Z95 = 1.959964
_MANY = 10  # from this ratio on, digits after the point do not matter
# Near the largest exponent of e that a float can have (709); such a wide band means nothing.
_HIGHEST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True)
class Fit:
    """A line fitted to times: ``fixed + slope * amount``, with FLOPs or bytes as the amount.

    The fit minimizes the logarithms of the ratios of time to line, so all points have the same
    weight. The intervals show how well points with this scatter determine the line. They do not
    show that a line is the right model: real curves bend where a cache ends or an algorithm
    changes. The fixed cost is the line's value at no work, not the time of a call without work.

    Attributes
    ----------
    fixed_s
        Seconds that every call costs, at any size; never negative.
    slope_s
        Seconds for one more FLOP or byte; never negative.
    unit
        Unit of the amount, ``"FLOP"`` or ``"B"``, whichever fits better.
    error_s
        Standard errors of the fixed cost and of the slope.
    together
        Covariance of the fixed cost and the slope.
    typical, worst
        Distance of the points from the line, as ratio minus one: root mean square, and largest.
        0.1 means 10 % above or below.
    n_points
        Number of points.

    Examples
    --------
    >>> import gpulab
    >>> fit = gpulab.crossover("add", source="h200-sxm-2026-11").gpu.fit
    >>> bool(fit.time_s([0])[0] == fit.fixed_s)
    True
    """

    fixed_s: float
    slope_s: float
    unit: str
    error_s: tuple[float, float]
    together: float
    typical: float
    worst: float
    n_points: int

    @property
    def fixed_interval_s(self) -> tuple[float, float]:
        """95 % interval of the fixed cost; up to infinity with fewer than three points."""
        return self._interval(self.fixed_s, self.error_s[0])

    @property
    def slope_interval_s(self) -> tuple[float, float]:
        """95 % interval of the slope; up to infinity with fewer than three points."""
        return self._interval(self.slope_s, self.error_s[1])

    @property
    def quantile(self) -> float:
        """Half the width of the 95 % intervals, in standard errors."""
        return student_quantile(self.n_points - _N_PARAMETERS)

    def time_s(self, amounts: _Samples) -> Array:
        """Return the line at some amounts, in seconds."""
        return self.fixed_s + self.slope_s * numbers_of("amounts", amounts)

    def spread(self, amounts: _Samples) -> Array:
        """Return half the width of the line's 95 % band, as a natural logarithm of a ratio."""
        x = numbers_of("amounts", amounts)
        fixed_s, slope_s = self.error_s
        variance = fixed_s**2 + 2 * x * self.together + (x * slope_s) ** 2
        if not math.isfinite(self.quantile):
            return np.full(x.shape, _HIGHEST_EXPONENT)
        reach = self.quantile * np.sqrt(np.maximum(variance, 0.0)) / self.time_s(x)
        return np.minimum(reach, _HIGHEST_EXPONENT)

    def _interval(self, value: float, error: float) -> tuple[float, float]:
        if not math.isfinite(self.quantile):
            return 0.0, math.inf
        return max(0.0, value - self.quantile * error), value + self.quantile * error

    def __str__(self) -> str:
        return f"{self._start}, {self._growth}; farthest point {self._farthest} off"

    __repr__ = __str__

    @property
    def _start(self) -> str:
        if not self.fixed_s:
            return "no fixed cost"
        if self.n_points <= _N_PARAMETERS:
            return f"{format_time(self.fixed_s)} fixed"
        return f"{format_estimate(self.fixed_s, *self.fixed_interval_s)} fixed"

    @property
    def _farthest(self) -> str:
        if self.worst < 1:
            return format_percent(self.worst)
        times = self.worst + 1
        return f"{times:.2g} times" if times < _MANY else f"{times:,.0f} times"

    @property
    def _growth(self) -> str:
        if not self.slope_s:
            return "no growth with size"
        rate = format_rate(1 / self.slope_s, self.unit)
        low_s, high_s = self.slope_interval_s
        if not (low_s and math.isfinite(high_s)):
            return f"then {rate}"
        ends = (format_rate(1 / end_s, self.unit) for end_s in (high_s, low_s))
        return f"then {rate} [{', '.join(ends)}]"


def fit_line(amounts: _Samples, times_s: _Samples, unit: str) -> Fit:
    """Return the line with the smallest sum of squared logarithms of the ratios of time to line.

    The points, at least two, have FLOPs or bytes and a time. Neither the fixed cost nor the slope
    is negative: if the best line has one below zero, the result is the best line in which it is
    zero.
    """
    x, t = np.asarray(amounts, dtype=np.float64), np.asarray(times_s, dtype=np.float64)
    scale = float(x.max())  # FLOPs reach 1e12; without scaling the equations lose precision
    columns = np.stack([np.ones_like(x), x / scale], axis=1)
    line = _closest(columns, t)
    # Near the line a logarithm is the relative distance, so errors follow as in any linear fit.
    off = np.log(t / (columns @ line))
    slopes = columns / (columns @ line)[:, None]
    # If all amounts are equal, fixed cost and slope cannot be separated; the matrix is singular
    # then, hence the pseudo-inverse.
    covariance = np.linalg.pinv(slopes.T @ slopes) * (off @ off) / max(len(t) - _N_PARAMETERS, 1)
    return Fit(
        fixed_s=float(line[0]),
        slope_s=float(line[1]) / scale,
        unit=unit,
        error_s=(math.sqrt(covariance[0, 0]), math.sqrt(covariance[1, 1]) / scale),
        together=float(covariance[0, 1]) / scale,
        typical=math.expm1(math.sqrt(off @ off / len(t))),
        worst=math.expm1(float(np.abs(off).max())),
        n_points=len(t),
    )


def _closest(columns: Array, times_s: Array) -> Array:
    """Return the best line with fixed cost and slope, or with one of them if that fits as well."""
    best = _descended(columns, times_s)
    least = _cost(columns, times_s, best) + _ROUNDING
    for column, part in zip(columns.T, np.eye(_N_PARAMETERS), strict=True):
        alone: Array = part * math.exp(float(np.mean(np.log(times_s / column))))
        # Preferred if it fits as well: a tiny fixed cost or slope would only be rounding.
        if _cost(columns, times_s, alone) <= least:
            return alone
    return best


def _descended(columns: Array, times_s: Array) -> Array:
    """Return the line found by Gauss-Newton steps, starting from the best in relative distance.

    Steps are shortened so that neither part becomes negative; a part may approach zero.
    """
    # Minimizing relative distances is a linear problem, and its solution is near the answer.
    start = _solved(columns / times_s[:, None], np.ones_like(times_s))
    # Strictly positive, so that every step of the search has a logarithm.
    line: Array = np.maximum(start, _LEAST * np.abs(start).max())
    for _ in range(_N_STEPS):
        now_s = columns @ line
        step = _solved(columns / now_s[:, None], np.log(times_s / now_s))
        share = 1.0
        # A full Gauss-Newton step may overshoot, or make a part negative.
        while share > _LEAST and not _is_better(columns, times_s, line, line + share * step):
            share /= 2
        if share <= _LEAST:
            break
        line = line + share * step
    return line


def _solved(matrix: Array, wanted: Array) -> Array:
    return np.asarray(np.linalg.lstsq(matrix, wanted, rcond=None)[0], dtype=np.float64)


def _is_better(columns: Array, times_s: Array, line: Array, other: Array) -> bool:
    return bool((other > 0).all()) and (
        _cost(columns, times_s, other) < _cost(columns, times_s, line) * (1 - _LEAST)
    )


def _cost(columns: Array, times_s: Array, line: Array) -> float:
    off = np.log(times_s / (columns @ line))
    return float(off @ off)


def student_quantile(freedom: int) -> float:
    """Return Student's t for a two-sided 95 % interval; infinity for no degrees of freedom.

    Above ten degrees it uses the series of Fisher and Cornish, which is accurate to a thousandth.

    >>> student_quantile(1), student_quantile(6)
    (12.706, 2.447)
    """
    if freedom < 1:
        return math.inf
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    z = _Z95
    first = (z**3 + z) / (4 * freedom)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return z + first + second
