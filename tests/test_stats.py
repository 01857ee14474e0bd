"""Statistics of samples, checked against exact values and against scipy."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.core.errors import EmptyMeasurementError
from gpulab.stats import (
    _interval_rank,
    _moves,
    drift,
    median_interval,
    modes,
    robust_spread,
    steady_from,
    tick,
)

finite = st.floats(-1e6, 1e6)
samples_of = st.lists(finite, min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("n_samples", "ends"),
    [(1, (1, 1)), (5, (1, 5)), (6, (1, 6)), (9, (2, 8)), (10, (2, 9)), (41, (14, 28))],
)
def test_interval_is_made_of_known_samples(n_samples: int, ends: tuple[int, int]) -> None:
    """The ends have the ranks of the sign test's tables; below 6 samples they are the extremes."""
    assert median_interval([float(rank) for rank in range(n_samples, 0, -1)]) == ends


@pytest.mark.slow
@given(n_samples=st.integers(6, 3000), confidence=st.floats(0.01, 0.96))
def test_interval_is_the_narrowest_that_reaches_its_confidence(
    n_samples: int, confidence: float
) -> None:
    """By scipy's binomial, these ranks reach the confidence and the next ones inside do not."""
    from scipy.stats import binom

    low, high = median_interval(np.arange(n_samples, dtype=float), confidence)
    assert low + high == n_samples - 1
    reached, reached_inside = 1 - 2 * binom.cdf([low, low + 1], n_samples, 0.5)
    assert reached >= confidence - 1e-9
    assert reached_inside < confidence + 1e-9 or low + 1 > high - 1


@pytest.mark.slow
@given(samples=samples_of)
def test_interval_encloses_the_median(samples: list[float]) -> None:
    """For any samples the interval is ordered, consists of samples, and contains the median."""
    low, high = median_interval(samples)
    assert {low, high} <= set(samples)
    assert low <= float(np.median(samples)) <= high


@pytest.mark.parametrize("statistic", [median_interval, robust_spread, drift, modes, steady_from])
def test_no_samples_have_no_statistic(statistic: object) -> None:
    """Every statistic raises an error if there are no samples."""
    with pytest.raises(EmptyMeasurementError) as error:
        statistic([])  # type: ignore[operator] # the five share only this call
    assert str(error.value) == "samples is empty; give at least one sample"


def test_spread_is_blind_to_outliers() -> None:
    """The spread is 1.4826 median deviations, independent of the largest sample."""
    assert robust_spread([1.0, 2.0, 3.0, 4.0, 100.0]) == pytest.approx(1.4826)
    assert robust_spread([7.0]) == 0


@pytest.mark.parametrize(
    ("samples", "change"),
    [
        ([1.0, 1.0, 1.1, 1.2, 1.25, 1.25], 0.25),
        ([2.0, 9.0, 1.0], -0.5),
        ([-2.0, 0.0, -1.0], 0.5),
        ([1.0, 2.0], 0.0),
        ([0.0, 0.0, 0.0], 0.0),
        ([0.0, 0.0, 1.0], math.inf),
        ([0.0, 0.0, -1.0], -math.inf),
    ],
)
def test_drift_compares_first_and_last_third(samples: list[float], change: float) -> None:
    """The change is relative to the first third; a start at zero makes any change infinite."""
    assert drift(samples) == pytest.approx(change)


def test_one_bell_is_one_mode() -> None:
    """Normal, uniform and skewed samples are not split."""
    rng = np.random.default_rng(0)
    for samples in (rng.normal(1, 0.3, 100), rng.uniform(1, 2, 100), rng.exponential(1, 100) + 1):
        assert modes(samples) == (pytest.approx(np.median(samples)),)


@pytest.mark.parametrize(
    ("samples", "centres"),
    [
        ([5.0] * 6 + [7.0] * 4, (5.0, 7.0)),
        ([3.0, 1.0, 2.0] * 4, (1.0, 2.0, 3.0)),
        ([5.0] * 7 + [7.0] * 3, (5.0,)),
        ([5.0] * 60 + [7.0] * 5, (5.0,)),
        ([5.0] * 6 + [5.25] * 4, (5.0,)),
        ([5.0] * 6 + [5.26] * 4, (5.0, 5.26)),
        ([-5.25] * 4 + [-5.0] * 6, (-5.0,)),
        ([1.0], (1.0,)),
    ],
)
def test_clusters_need_members_and_distance(
    samples: list[float], centres: tuple[float, ...]
) -> None:
    """A mode needs four samples, a tenth of all, and more than 5 % of distance to the next."""
    assert modes(samples) == centres


def test_clusters_need_six_spreads() -> None:
    """Clusters are separate if they are at least 6 of their own spreads apart."""
    box = np.linspace(-1, 1, 9)
    spread = robust_spread(box)
    for factor, n_modes in ((5.9, 1), (6.1, 2)):
        assert len(modes(np.concatenate([10 + box, 10 + factor * spread + box]))) == n_modes


@pytest.mark.parametrize(
    ("samples", "index"),
    [
        ([900.0, 12.0, 5.1, 5.0, 5.0, 5.1, 5.0, 5.0], 2),
        ([5.0] * 8, 0),
        ([5.0] * 7, 7),
        ([5.0, 90.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0], 2),
        ([1.43] * 50 + [1.67] * 51, 50),
        ([2.0**-step for step in range(20)], 20),
        ([1.0 + step / 100 for step in range(40)], 40),
        ([5.0] * 20 + [9.0] + [5.0] * 20, 0),
        ([5.0, 9.0] * 10, 0),
        ([5.0] * 2 + [90.0] + [5.0] * 10, 3),
        ([5.0] * 3 + [90.0] + [5.0] * 10, 0),
        ([5.0] * 3 + [90.0] + [5.0] * 6, 0),
        ([5.0] * 3 + [90.0] * 3 + [5.0] * 10, 6),
    ],
)
def test_steady_state_is_found(samples: list[float], index: int) -> None:
    """The steady state starts after first uses and level changes, never during a drift.

    An outlier or noise does not change it.
    """
    assert steady_from(samples) == index


def test_steady_within_a_tolerance() -> None:
    """Quiet samples 3 % above the level are not steady, and those 1.9 % above it are."""
    for sign in (1, -1):
        assert steady_from([1.03 * sign] * 4 + [1.0 * sign] * 8) == 4
        assert steady_from([1.019 * sign] * 4 + [1.0 * sign] * 8) == 0
    assert steady_from([1.0] * 12 + [1.01] * 4) == 0
    assert steady_from([0.0] * 12) == 0


@pytest.mark.parametrize(("first", "index"), [(17.2, 0), (17.4, 4)])
def test_steady_within_the_noise(first: float, index: int) -> None:
    """Steps of 2 are noise of 1.4826 * sqrt(2); up to three times that, 6.29, is no new level."""
    assert steady_from([first] * 4 + [10.0, 12.0] * 6) == index


@pytest.mark.slow
@given(samples=samples_of)
def test_statistics_take_any_numbers(samples: list[float]) -> None:
    """No finite samples break a statistic, and each answer lies in its range."""
    assert 0 <= steady_from(samples) <= len(samples)
    assert robust_spread(samples) >= 0
    assert list(modes(samples)) == sorted(modes(samples))
    assert not math.isnan(drift(samples))


def test_tick_is_the_smallest_step_that_is_no_rounding() -> None:
    """The tick is the smallest difference of samples that is more than rounding."""
    assert tick([5.0, 5.5, 5.0, 6.5]) == 0.5
    assert tick([5.0, 5.000_01, 5.5, 6.5]) == pytest.approx(0.5, abs=1e-4)
    assert tick([5.0, 5.0]) == 0.0
    assert tick([19_998.0, 20_000.0, 20_002.0]) == 0.0
    assert tick([5e-6, 5.5e-6, 6.5e-6]) == pytest.approx(0.5e-6)


def test_a_confidence_that_is_reached_exactly_counts() -> None:
    """If a confidence is reached exactly, rounding does not change the rank."""
    for n_samples in range(2, 60):
        tail = Fraction(0)
        for n_ends in range(1, n_samples // 2 + 1):
            tail += Fraction(math.comb(n_samples, n_ends - 1), 2**n_samples)
            if tail < 1e-3:  # where the confidence itself, near one, is a rounded number
                continue
            reached = float(1 - 2 * tail)
            rank = _interval_rank(n_samples, reached)
            assert rank == max(n_ends - 1, 0), (n_samples, n_ends)
            rank = _interval_rank(n_samples, reached + 1e-9)
            assert rank == max(n_ends - 2, 0), (n_samples, n_ends)


@pytest.mark.parametrize(
    ("change", "allowed", "moves"),
    [
        (1.0, 1.0, False),  # exactly what is allowed
        (1.01, 1.0, True),
        (1.26, 0.0, True),  # 1.253 is what two medians of 8 samples differ by, from noise
        (1.25, 0.0, False),
        (1.26, 1.3, False),
    ],
)
def test_a_tail_moves_by_more_than_noise_and_what_is_allowed(
    change: float, allowed: float, *, moves: bool
) -> None:
    """A tail moves if its halves differ by more than is allowed and more than twice the error."""
    tail = np.repeat([0.0, change], 8)
    assert _moves(tail, 0.0 if allowed == 1.0 else 1.0, allowed) is moves


def test_the_middle_sample_belongs_to_neither_half() -> None:
    """With an odd number of samples, the middle one is in neither half of the comparison."""
    assert steady_from([1.03, 1.0, 1.03, 1.0, 1.05, 1.05, 1.03, 1.03, 1.0]) == 9


def test_a_cut_is_kept_only_if_its_neighbours_are_apart() -> None:
    """The clusters next to the widest gap decide, not the first ones of each side."""
    samples = [8.0] * 3 + [18.0] * 3 + [19.0] * 2 + [24.0] * 2 + [25.0] + [26.0] * 2
    assert modes(samples) == (19.0,)
