"""Each finding appears for work on the virtual GPU that gives a reason for it."""

import itertools
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from gpulab.device.measurement import Finding, Measurement
from gpulab.device.work import Work
from gpulab.gpus import gpu
from gpulab.timing import METHODS, _profiler, measure
from gpulab.timing._warmup import warm_up

pytestmark = pytest.mark.usefixtures("gpu")


CYCLES_PER_US = gpu("H200").boost_clock_mhz


def sleep_us(duration_us: float) -> None:
    """Enqueue a kernel of exactly this length."""
    torch.cuda._sleep(round(duration_us * CYCLES_PER_US))


def finding(measurement: Measurement, code: str) -> Finding:
    """Return the finding of this code; it must be there."""
    return {found.code: found for found in measurement.findings}[code]


def codes(measurement: Measurement) -> list[str]:
    """Return the codes of all findings."""
    return [found.code for found in measurement.findings]


@pytest.mark.slow
def test_work_on_a_side_stream() -> None:
    """Work on a side stream is outside the events, and the finding says how long it took."""
    side = torch.cuda.Stream()

    def work() -> None:
        with torch.cuda.stream(side):
            sleep_us(400)

    message = finding(measure(work), "side-stream").message
    (busy_us,) = re.findall("busy for another ([0-9]+) µs", message)
    assert 385 < int(busy_us) < 400  # less the host's way from the launch to the end of the work


def test_an_index_of_zero_is_no_result_of_zeros() -> None:
    """The place of the largest number may be 0; a sum of 0 is still a doubt."""
    a = torch.ones(64, device="cuda")
    found = [warm_up(work, n_calls=3, max_time_s=1.0) for work in (a.argmax, (a - a).sum)]
    assert [seen.is_zero for seen in found] == [False, True]


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


@pytest.mark.slow
def test_work_that_overfills_the_queue_without_a_warm_up() -> None:
    """Without a warm-up to detect waits, all samples are still marked as starved."""

    def many() -> None:
        for _ in range(1_500):
            sleep_us(1)

    measurement = measure(many, n_warmup=0, n_samples=6)
    assert finding(measurement, "starved").message.startswith("in 6 of 6 samples")


@pytest.mark.slow
def test_small_work_is_bound_to_the_pace_of_the_host() -> None:
    """For a tiny kernel, plain events are launch-bound and the calibrated method is not."""
    a = torch.ones(64, 64, device="cuda")
    assert measure(lambda: a + a).launch_s > 0
    assert codes(measure(lambda: a + a)) == []
    assert codes(measure(lambda: a + a, method="events")) == ["launch-bound"]


@pytest.mark.slow
def test_hot_inputs() -> None:
    """Inputs of 8 MiB in the cache are read faster than from memory, and the finding says so."""
    a = torch.ones(1 << 21, device="cuda")
    measurement = measure(lambda: a + a, cache="hot")
    assert "with a cold cache a call takes" in finding(measurement, "cache-hot").message
    cold = measure(lambda: a + a)
    assert "cache-hot" not in codes(cold)
    assert cold.median_s > 1.2 * measurement.median_s


def test_clock_that_falls() -> None:
    """A long run of large matmuls reaches the power limit and is reported as throttled."""
    a = torch.empty(8192, 8192, device="cuda", dtype=torch.float16)
    measurement = measure(lambda: a @ a, cache="hot", n_samples=300, n_warmup=0)
    message = finding(measurement, "throttled").message
    assert "power cap held the clock at 14" in message
    assert message.endswith("; in 1 of 300 samples the clock regime differs from that of most")
    assert measurement.conditions.regime == "settled"
    assert measurement.conditions.throttle_reasons == ("power cap",)
    assert measurement.flagged == (0,)


@pytest.mark.slow
def test_memory_that_grows() -> None:
    """Results that are kept force a cudaMalloc in each sample, and the finding counts them."""
    kept = []
    measurement = measure(lambda: kept.append(torch.empty(1 << 23, device="cuda")), n_samples=5)
    assert "5 times while samples were taken" in finding(measurement, "allocator-grew").message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "limit"),
    [({"flops": 1e12}, "1e+12 floating-point operations"), ({"size_bytes": 1e9}, "954 MiB")],
)
def test_reading_below_the_data_sheet(options: dict[str, float], limit: str) -> None:
    """Counts that no GPU could do in a microsecond give a finding with the limit."""
    a = torch.ones(64, 64, device="cuda")
    measurement = measure(lambda: a + a, **options)  # type: ignore[arg-type]  # both are floats
    assert limit in finding(measurement, "faster-than-roofline").message


@pytest.mark.slow
def test_records_that_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The finding appears only if the profiler lost records."""
    take_calls = _profiler.take_calls

    def losing(work: Work, receive: Callable[[Any], object], **options: Any) -> None:  # noqa: ANN401  # handed on as they came
        def less(calls: Any) -> None:  # noqa: ANN401  # as above
            (first, reading_s), *others = calls
            receive([(replace(first, n_missing=1), reading_s), *others])

        take_calls(work, less, **options)

    assert codes(measure(lambda: sleep_us(100), method="profiler", n_samples=10)) == []
    monkeypatch.setattr(_profiler, "take_calls", losing)
    measurement = measure(lambda: sleep_us(100), method="profiler", n_samples=10)
    message = finding(measurement, "profiler-dropped-records").message
    assert message.startswith("records are missing in 1 of 10 samples")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_notices_work_that_enqueues_nothing(method: str) -> None:
    """Work on the host has the finding with every method, and the least kernel with none."""
    a, least = torch.ones(4), torch.ones(1, device="cuda")
    assert "nothing-launched" in codes(measure(lambda: a @ a, method=method))
    if method != "naive":
        assert "nothing-launched" not in codes(measure(least.neg, method=method))


def test_work_on_another_stream_is_not_called_empty() -> None:
    """Work that puts nothing into the current stream but uses the GPU has its own finding."""
    side = torch.cuda.Stream()

    def work() -> None:
        with torch.cuda.stream(side):
            sleep_us(500)

    assert "nothing-launched" not in codes(measure(work, method="synchronized"))
    assert "nothing-launched" not in codes(measure(work, method="profiler"))
    assert "side-stream" in codes(measure(work, method="synchronized"))


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


@pytest.mark.slow
def test_bytes_that_fit_into_the_cache_set_no_limit() -> None:
    """Bytes that fit into the L2 cache may come from there, so they set no limit."""
    a = torch.ones(64, 64, device="cuda")
    assert "faster-than-roofline" not in codes(measure(lambda: a + a, size_bytes=3e7))
