"""Each finding appears for work on the virtual GPU that gives a reason for it."""

import itertools
import time

import pytest
import torch

from gpulab.device.measurement import Measurement
from gpulab.gpus import gpu
from gpulab.timing import measure
from gpulab.timing._warmup import warm_up

pytestmark = pytest.mark.usefixtures("gpu")


CYCLES_PER_US = gpu("H200").boost_clock_mhz


def sleep_us(duration_us: float) -> None:
    """Enqueue a kernel of exactly this length."""
    torch.cuda._sleep(round(duration_us * CYCLES_PER_US))


def codes(measurement: Measurement) -> list[str]:
    """Return the codes of all findings."""
    return [found.code for found in measurement.findings]


def test_a_slow_wait_is_no_side_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine where each wait for the device takes 0.2 ms, work on one stream is ordinary."""
    quick = torch.cuda.synchronize

    def slow(*args: object) -> None:
        quick(*args)
        time.sleep(200e-6)

    monkeypatch.setattr(torch.cuda, "synchronize", slow)
    a = torch.ones(64, 64, device="cuda")
    seen = warm_up(lambda: a @ a, n_calls=12, max_time_s=1.0)
    assert seen.side_s is None


def test_the_records_refute_a_side_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """If only the wait after the work is slow, the driver's records show that it was idle."""
    quick, n_waits = torch.cuda.synchronize, itertools.count()

    def slow(*args: object) -> None:
        quick(*args)
        if next(n_waits) % 3 == 2:  # a call waits three times: before it, idle, and after it
            time.sleep(200e-6)

    monkeypatch.setattr(torch.cuda, "synchronize", slow)
    a = torch.ones(64, 64, device="cuda")
    seen = warm_up(lambda: a @ a, n_calls=None, max_time_s=1.0)
    assert seen.side_s is None


@pytest.mark.slow
def test_side_stream_that_is_joined() -> None:
    """A side stream that starts after and is joined to the current stream is timed in full."""
    side = torch.cuda.Stream()

    def work() -> None:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            sleep_us(400)
        torch.cuda.current_stream().wait_stream(side)

    measurement = measure(work, cache="hot")
    assert codes(measurement) == []
    assert measurement.median_s > 400e-6


def test_setup_runs_ahead_of_each_sample_and_is_not_timed() -> None:
    """The setup restores the inputs before each sample and is not part of the time."""
    a = torch.zeros(4, device="cuda")
    seen = []

    def setup() -> None:
        sleep_us(500)
        a.fill_(1)

    def work() -> None:
        seen.append(a + 1)
        a.add_(1)
        sleep_us(100)

    measurement = measure(work, setup=setup, cache="hot", n_samples=4, n_warmup=0)
    assert measurement.median_s < 150e-6
    assert [values.tolist() for values in seen] == [[2.0] * 4] * 4


@pytest.mark.slow
def test_what_the_setup_touches_is_cold_again() -> None:
    """The flush comes after the setup, so inputs touched by the setup are cold."""
    a = torch.ones(1 << 20, device="cuda")
    plain = measure(lambda: a + a)
    touched = measure(lambda: a + a, setup=lambda: a.mul_(1))
    assert touched.median_s == pytest.approx(plain.median_s, abs=32e-9)


@pytest.mark.slow
def test_inputs_are_given_in_turn() -> None:
    """Each call gets the next tuple of inputs, starting over after the last."""
    given = []
    measure(given.append, inputs=[("a",), ("b",), ("c",)], n_warmup=0, n_samples=7)
    assert "".join(given) == "abcabca"
