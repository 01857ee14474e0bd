"""A roof gives ridge, attainable rate and least time from its peaks and bandwidth."""

import pytest

from gpulab import gpus
from gpulab.gpus import Roof, at_clocks

A100 = Roof("data sheet", {"float16": 312e12, "float32": 19.5e12}, 2e12)


def test_the_exercise_of_the_a100() -> None:
    """The A100's roof gives the ridge and the times of a lesson's exercise."""
    d = 4096
    assert A100.ridge("float16") == 156
    assert A100.compute_s(2 * d**3, "float16") == 137_438_953_472 / 312e12
    assert A100.memory_s(6 * d**2) == 5.0331648e-05


def test_a_peak_is_scaled_from_the_clock_at_which_it_is_stated() -> None:
    """A peak is scaled from the clock at which the data sheet states it to the live clock."""
    live = at_clocks(gpus.gpu("H200"), 1980, 3201)
    # The tensor cores of a multiprocessor do 4,096 operations a clock.
    assert live.peak("float16") == pytest.approx(132 * 4096 * 1980e6, rel=1e-3)
    assert live.peak("tf32") == live.peak("float16") / 2
    assert live.peak("float32") == gpus.gpu("H200").peak_flops_per_s["float32"]
    slow = at_clocks(gpus.gpu("H200"), 1980, 3201 / 3)
    assert slow.bandwidth_bytes_per_s == pytest.approx(live.bandwidth_bytes_per_s / 3)
    assert live.bandwidth_bytes_per_s == gpus.gpu("H200").bandwidth_bytes_per_s
