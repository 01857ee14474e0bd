"""The hosts of recordings: slower calls, and slower ones still after a wait."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gpulab
from gpulab.core.errors import UnknownNameError
from gpulab.virtual.simulator import MODEL_HOST, recorded_host
from gpulab.virtual.simulator._recorded_host import cold_host

COLD = cold_host()


@given(st.integers(0, 10**10), st.integers(0, 10**10))
def test_a_longer_wait_never_makes_the_next_launch_quicker(first_ns: int, second_ns: int) -> None:
    """The factor grows with the wait, from 1 to the largest that was measured."""
    short_ns, long_ns = sorted((first_ns, second_ns))
    assert 1 <= COLD.slowdown(short_ns) <= COLD.slowdown(long_ns) <= COLD.after_wait[-1]


def test_a_measured_wait_has_its_measured_factor() -> None:
    """At a measured wait the curve gives what was measured there."""
    found = [COLD.slowdown(ns) for ns in COLD.waits_ns]
    assert found == pytest.approx(list(COLD.after_wait))


def times_us(host: str | None, wait_s: float) -> list[float]:
    """Return the host's times of three launches in a row after a wait for the device."""
    with gpulab.virtual_gpu("H100", host=host, first_use=False) as gpu:
        a = torch.ones(64, 64, device="cuda")
        for _ in range(3):
            a @ a
        torch.cuda._sleep(round(wait_s * 1.98e9))
        torch.cuda.synchronize()
        found = [gpu.machine.host.now_ns]
        for _ in range(3):
            a @ a
            found.append(gpu.machine.host.now_ns)
    return [(end - begin) / 1e3 for begin, end in pairwise(found)]


@pytest.mark.parametrize("host", [None, "h100-sxm-2026-11"])
def test_the_first_launch_after_a_wait_takes_longer_and_the_next_ones_hardly(
    host: str | None,
) -> None:
    """After 21 ms the first launch takes 3.8 times as long, the second 1.14 times."""
    first, second, third = times_us(host, 0.021)
    assert first / third == pytest.approx(3.8, abs=0.2)
    assert second / third == pytest.approx(1.14, abs=0.05)


def test_a_host_says_its_pace() -> None:
    """The text has the factor, each call takes so many times as long, and a name must be known."""
    slower = "takes 1.23 times as long for a call as the model's"
    assert str(recorded_host("h100-sxm-2026-11")).endswith(slower)
    assert str(MODEL_HOST) == "the model's host"
    slow, plain = times_us("h200-sxm-2026-11", 0.0)[-1], times_us(None, 0.0)[-1]
    assert slow / plain == pytest.approx(1.23, abs=0.01)
    with pytest.raises(UnknownNameError, match="unknown recorded host 'h100'"):
        gpulab.virtual_gpu("H100", host="h100")


def test_a_sleep_makes_the_next_launch_slow_however_short_it_is() -> None:
    """A launch after ``time.sleep`` takes at least 1.61 times as long."""
    host = gpulab.virtual_gpu("H100", first_use=False).machine.host
    plain_ns = host._launch_ns(10_000)
    host.sleep(1_000)
    assert host._launch_ns(10_000) / plain_ns == pytest.approx(1.61, abs=0.01)


@pytest.mark.parametrize("host", [None, "h100-sxm-2026-11"])
def test_launches_that_are_left_out_take_their_time_and_keep_the_host_warm(
    host: str | None,
) -> None:
    """The rest of a long loop takes as long as its rounds, whatever the host's pace."""
    clock = gpulab.virtual_gpu("H100", host=host, first_use=False).machine.host
    plain_ns = clock._launch_ns(10_000)
    before_ns = clock.now_ns
    clock.skip_launches(1_000_000)
    assert (clock.now_ns - before_ns, clock._launch_ns(10_000)) == (1_000_000, plain_ns)
