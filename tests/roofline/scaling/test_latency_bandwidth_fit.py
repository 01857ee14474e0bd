"""The line through a curve is exact for exact lines, and says how far others are off."""

import math
import re

import numpy as np
import pytest

from gpulab.roofline.scaling._latency_bandwidth_fit import fit_line, student_quantile

BYTES = np.array([2.0**exponent for exponent in range(10, 29, 2)])
LINE_S = 12e-6 + BYTES / 4e12
NOISY_S = LINE_S * np.exp(np.random.default_rng(1).normal(0, 0.1, len(BYTES)))


def test_an_exact_line_is_found() -> None:
    """Times on a line give fixed cost and slope exactly, and no point is off."""
    fit = fit_line(BYTES, LINE_S, "B")
    assert fit.fixed_s == pytest.approx(12e-6, rel=1e-6)
    assert fit.slope_s == pytest.approx(1 / 4e12, rel=1e-6)
    assert fit.worst < 1e-6
    assert fit.fixed_interval_s == pytest.approx((12e-6, 12e-6), rel=1e-5)


@pytest.mark.slow
def test_the_squared_logarithms_are_least() -> None:
    """An optimizer finds the same line as the least sum of squared logarithms."""
    from scipy import optimize

    fit = fit_line(BYTES, NOISY_S, "B")

    def off(line: tuple[float, float]) -> float:
        return float(np.sum(np.log(NOISY_S / (line[0] * 1e-6 + line[1] * 1e-12 * BYTES)) ** 2))

    best = optimize.minimize(off, (10.0, 0.2), method="Nelder-Mead", tol=1e-12).x
    assert (fit.fixed_s * 1e6, fit.slope_s * 1e12) == pytest.approx(tuple(best), rel=1e-4)


@pytest.mark.slow
def test_intervals_are_those_of_an_ordinary_fit() -> None:
    """The intervals are scipy's standard errors times Student's t at 95 %."""
    from scipy import optimize, stats

    fit = fit_line(BYTES, NOISY_S, "B")
    _, covariance = optimize.curve_fit(
        lambda x, fixed, slope: np.log(fixed * 1e-6 + slope * 1e-12 * x),
        BYTES,
        np.log(NOISY_S),
        p0=(12, 0.25),
    )
    reach_s = stats.t.ppf(0.975, len(BYTES) - 2) * math.sqrt(covariance[0, 0]) * 1e-6
    low_s, high_s = fit.fixed_interval_s
    assert (high_s - low_s) / 2 == pytest.approx(reach_s, rel=1e-3)
    low, high = fit.slope_interval_s
    reach = stats.t.ppf(0.975, len(BYTES) - 2) * math.sqrt(covariance[1, 1]) * 1e-12
    assert (high - low) / 2 == pytest.approx(reach, rel=1e-3)


def test_the_band_includes_the_covariance() -> None:
    """The band uses the covariance, so the line is known best in the middle."""
    fit = fit_line(BYTES, NOISY_S, "B")
    middle = fit.fixed_s / fit.slope_s
    ends = np.array([fit.error_s[0], fit.error_s[1] * middle])
    joint = np.array(
        [[ends[0] ** 2, fit.together * middle], [fit.together * middle, ends[1] ** 2]]
    )
    expected = fit.quantile * math.sqrt(joint.sum()) / (2 * fit.fixed_s)
    assert fit.spread([middle])[0] == pytest.approx(expected)
    assert fit.together < 0


@pytest.mark.slow
@pytest.mark.parametrize("freedom", [*range(1, 21), 50, 500])
def test_student_quantiles_are_right(freedom: int) -> None:
    """The quantiles agree with scipy's within a thousandth."""
    from scipy import stats

    assert student_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-3)


def test_no_part_is_negative() -> None:
    """Neither fixed cost nor slope is negative: the fit sets it to 0 instead."""
    assert fit_line([1, 2, 4], [1.0, 4.0, 16.0], "B").fixed_s == 0.0
    falling = fit_line([1, 2, 4], [3.0, 2.0, 1.0], "B")
    assert falling.slope_s == 0.0
    assert falling.fixed_s == pytest.approx(6 ** (1 / 3))


def test_two_points_have_a_line_and_no_interval() -> None:
    """Two points give an exact line, and intervals without limits."""
    fit = fit_line([1, 3], [3.0, 4.0], "B")
    assert (fit.fixed_s, fit.slope_s) == pytest.approx((2.5, 0.5))
    assert fit.fixed_interval_s == (0.0, math.inf)
    assert fit.slope_interval_s == (0.0, math.inf)
    assert fit.spread([1, 3]).tolist() == [700.0, 700.0]
    assert str(fit) == "2.50 s fixed, then 2.00 B/s; farthest point 0 % off"


def test_equal_amounts_are_a_constant() -> None:
    """Points of one size give a constant."""
    fit = fit_line([8, 8, 8], [1.0, 2.0, 4.0], "B")
    assert (fit.fixed_s, fit.slope_s) == pytest.approx((2.0, 0.0))


@pytest.mark.parametrize(
    ("times_s", "text"),
    [
        (
            LINE_S,
            r"12.0 µs fixed, then 4.00 TB/s \[4.00 TB/s, 4.00 TB/s\]; .* 0 % off",
        ),
        (BYTES / 4e12, r"no fixed cost, then 4.00 TB/s .*"),
        (12e-6 + 0 * BYTES, r"12.0 µs fixed, no growth with size; .*"),
        ([1e-6] * 9 + [1e-5], r".*; farthest point 2\.1 times off"),
        ([1e-6] * 9 + [1.0], r".*; farthest point [\d,]+ times off"),
    ],
)
def test_a_line_reads_as_a_sentence(times_s: list[float], text: str) -> None:
    """The text gives fixed cost, rate, intervals and the farthest point."""
    assert re.fullmatch(text, str(fit_line(BYTES, times_s, "B")))
