"""`compare` times two pieces of work in turns and judges their ratio by its interval."""

import math
from dataclasses import replace

import pytest
import torch

from gpulab.core.errors import (
    InvalidOptionError,
    NotComparableError,
    TooSlowError,
)
from gpulab.device.measurement import Measurement
from gpulab.gpus import gpu
from gpulab.timing import Comparison, compare
from tests.support.conditions import HERE

pytestmark = pytest.mark.usefixtures("gpu")


CYCLES_PER_US = gpu("H200").boost_clock_mhz
ONE = Measurement((1.0, 2.0, 3.0, 4.0, 5.0, 6.0), "events", "measured", HERE, label="one")


def kernel(duration_us: float) -> None:
    """Enqueue a kernel of exactly this length."""
    torch.cuda._sleep(round(duration_us * CYCLES_PER_US))


@pytest.mark.slow
def test_drift_falls_on_both_alike() -> None:
    """While every kernel slows down by half, the ratio of equal work stays 1."""
    n_calls = 0

    def growing() -> None:
        nonlocal n_calls
        n_calls += 1
        kernel(100 + n_calls / 4)

    found = compare(growing, growing, n_warmup=0, n_samples=100)
    assert found.first.samples_s[-1] > 1.4 * found.first.samples_s[0]
    assert found.ratio == pytest.approx(1, abs=0.02)


def test_pairs_must_match() -> None:
    """A comparison of records with different numbers of samples is refused."""
    with pytest.raises(InvalidOptionError) as error:
        Comparison(ONE, replace(ONE, samples_s=(1.0,)))
    assert str(error.value) == (
        "first has 6 samples and second has 1 sample; they are compared in pairs, so both must "
        "have the same number"
    )


def test_pairs_in_which_the_first_reads_zero_are_left_out() -> None:
    """Pairs whose first sample is zero have no ratio and are skipped."""
    found = Comparison(replace(ONE, samples_s=(0.0, 2.0)), replace(ONE, samples_s=(1.0, 6.0)))
    assert found.ratio == 3


def times_longer(measurement: Measurement, factor: float) -> Measurement:
    """Return the measurement with all samples multiplied."""
    return replace(
        measurement, samples_s=tuple(factor * time_s for time_s in measurement.samples_s)
    )


# Steady samples, so that the interval of a ratio is narrow.
BASE = replace(ONE, samples_s=(1.0,) * 6 + (1.01,) * 6, label="base")


def test_samples_of_different_times_have_the_widest_interval() -> None:
    """The interval divides the ends of both, and the verdict says that the times differ."""
    now = replace(times_longer(ONE, 10), label="now")
    assert compare(ONE, now).verdict() == (
        "now takes longer: now / one = 10.000 [1.667, 60.000], taken at different times"
    )
    assert compare(ONE, ONE).verdict().startswith("no difference seen: one / one = 1.000 [")
    nothing = replace(ONE, samples_s=(0.0,) * 6)
    assert (
        compare(nothing, ONE).verdict() == "one reads zero each time, so there is no ratio to it"
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"device_name": "NVIDIA A100"}, f"the GPU was {HERE.device_name}, and then NVIDIA A100"),
        ({"source": "virtual"}, "the source was measured, and then virtual"),
        ({"method": "naive"}, "the method was events, and then naive"),
        ({"cache": "cold"}, "the cache was hot, and then cold"),
        ({"inner_loops": 2}, "the number of calls in a sample was 1, and then 2"),
        ({"clock_after_mhz": 2100}, "the clock was 1980 MHz, and then 2100 MHz; time both"),
        ({"device_name": "A", "source": "virtual"}, "and then A; the source was measured"),
    ],
)
def test_what_differs_is_not_compared(change: dict[str, object], reason: str) -> None:
    """Another GPU, clock, source or way of timing is named, and there is no ratio."""
    base = replace(BASE, conditions=replace(HERE, clock_after_mhz=1980))
    fields = base.conditions.__dataclass_fields__
    inside = {name: value for name, value in change.items() if name in fields}
    outside = {name: value for name, value in change.items() if name not in fields}
    now = replace(base, conditions=replace(base.conditions, **inside), **outside)
    found = compare(base, now)
    assert found.verdict().startswith("not comparable, because ")
    assert reason in found.verdict()
    assert (math.isnan(found.ratio), found.differs) == (True, False)
    with pytest.raises(NotComparableError, match="not comparable, because "):
        found.check(at_most=2)


def test_another_model_is_not_compared() -> None:
    """A virtual time of another version of gpulab is not compared; a measured one is."""
    old = replace(BASE, conditions=replace(HERE, gpulab_version="0.1"))
    assert compare(old, BASE).obstacle == ""
    models = [replace(record, source="virtual") for record in (old, BASE)]
    assert "version of gpulab's model was 0.1" in compare(*models).verdict()


@pytest.mark.parametrize("is_paired", [True, False])
def test_a_check_fails_with_the_interval_in_its_words(*, is_paired: bool) -> None:
    """What is shown to be below the limit passes; above it and undecided are two errors."""
    found = Comparison(BASE, replace(times_longer(BASE, 1.05), label="now"), is_paired)
    assert found.check(at_most=1.07) is found
    with pytest.raises(AssertionError) as error:
        found.check(at_most=1.02)
    assert str(error.value) == f"at most 1.02 times is allowed, and {found.verdict()}"
    undecided = Comparison(BASE, replace(ONE, samples_s=(1.0, 1.2) * 6), is_paired)
    with pytest.raises(TooSlowError) as slow:
        undecided.check(at_most=1.05)
    assert str(slow.value).startswith("at most 1.05 times is not shown, because the interval")
    assert undecided.verdict() in str(slow.value)


def test_a_lower_clock_excuses_nothing_that_is_fast_enough() -> None:
    """At a lower clock work that stays below the limit passes; slower work is not comparable."""
    base = replace(BASE, conditions=replace(HERE, clock_after_mhz=1980))
    lower = replace(HERE, clock_after_mhz=1440)
    fast = compare(base, replace(base, conditions=lower))
    assert fast.check(at_most=1.05) is fast
    assert fast.verdict().endswith("; even so it took at most 1.010 times as long")
    assert math.isnan(fast.ratio)
    slow = replace(base, samples_s=tuple(2 * each for each in base.samples_s), conditions=lower)
    with pytest.raises(NotComparableError, match=r"even so it took at most 2\.02. times as long"):
        compare(base, slow).check(at_most=1.05)
    other = replace(base, conditions=replace(lower, device_name="NVIDIA A100"))
    with pytest.raises(NotComparableError, match="the GPU was"):
        compare(base, other).check(at_most=1.05)
