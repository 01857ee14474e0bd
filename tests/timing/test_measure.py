"""``measure`` stops at the right time, keeps its samples, and refuses unusable arguments."""

import gc
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch

import gpulab
import gpulab.device
from gpulab.core.errors import (
    InvalidOptionError,
    StreamLeftOpenError,
)
from gpulab.core.progress import Bar
from gpulab.device.measurement import Measurement
from gpulab.gpus import gpu
from gpulab.timing import Floor, _device_floor, _measure, _run, measure
from gpulab.virtual import VirtualGpu

CYCLES_PER_US = gpu("H200").boost_clock_mhz


def sleep_us(duration_us: int) -> None:
    """Enqueue a kernel of exactly this length."""
    torch.cuda._sleep(duration_us * CYCLES_PER_US)


def kernel() -> None:
    """Enqueue a kernel of 100 µs."""
    sleep_us(100)


def codes(measurement: Measurement) -> list[str]:
    """Return the codes of the findings."""
    return [finding.code for finding in measurement.findings]


class Work:
    """Work that remembers its calls; the length of each kernel is a function of its number."""

    def __init__(self, duration_us: Callable[[int], int] = lambda _: 100) -> None:
        self.n_calls = 0
        self.duration_us = duration_us

    def __call__(self) -> None:
        """Enqueue the next kernel."""
        self.n_calls += 1
        sleep_us(self.duration_us(self.n_calls))


pytestmark = pytest.mark.usefixtures("gpu")


def test_time_limit_ends_what_does_not_get_precise(gpu: VirtualGpu) -> None:
    """Work of two lengths never gets precise and stops soon after `max_time_s`."""
    start_s = gpu.now_s
    measurement = measure(
        Work(lambda n: 100 + 100 * (n % 2)), method="synchronized", n_warmup=0, max_time_s=0.05
    )
    assert measurement.stopped_by == "max_time"
    assert 0.05 <= gpu.now_s - start_s < 0.08


def interrupt_at(n_calls: int, *, length_us: int = 50_000) -> Work:
    """Return work of this length that raises KeyboardInterrupt in call number `n_calls`."""

    def duration_us(n: int) -> int:
        if n == n_calls:
            raise KeyboardInterrupt
        return length_us

    return Work(duration_us)


def test_interrupt_keeps_the_samples() -> None:
    """Ctrl-C in the sixth call keeps the five samples before it."""
    measurement = measure(interrupt_at(6), method="synchronized", n_warmup=0, n_samples=50)
    assert measurement.stopped_by == "interrupt"
    assert measurement.n_samples == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failing", "when"),
    [
        (1, "in warm-up call 1; nothing was measured"),
        (3, "in warm-up call 3; nothing was measured"),
        (4, "while samples 1 to 10 were taken; nothing was measured"),
        (13, "while samples 1 to 10 were taken; nothing was measured"),
        (
            14,
            (
                "while samples 11 to 20 were taken; the 10 samples before are kept in its "
                "attribute `partial`"
            ),
        ),
    ],
)
def test_error_of_the_work_arrives_unchanged(failing: int, when: str) -> None:
    """The user's own exception is raised with a note, and all settings are restored."""
    mine = ZeroDivisionError("mine")
    side = torch.cuda.Stream()

    def duration_us(n: int) -> int:
        if n == failing:
            torch.cuda.set_stream(side)
            torch.set_grad_enabled(False)
            sleep_us(1_000)
            raise mine
        return 100 + 100 * (n % 2)

    with pytest.raises(ZeroDivisionError) as error:
        measure(Work(duration_us), n_warmup=3)
    assert error.value is mine
    assert error.value.__notes__ == [f"gpulab: raised {when}"]
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert torch.is_grad_enabled()
    assert gc.isenabled()
    assert side.query()


@pytest.mark.slow
def test_samples_before_an_error_lose_no_floor_that_they_do_not_contain() -> None:
    """No floor is subtracted from kept samples if plain events replaced the method."""
    x = torch.ones(4, device="cuda")
    numbers = iter(range(10_000))

    def work() -> None:
        n = next(numbers)
        x.sum().item()
        sleep_us(100 + 100 * (n % 2))
        if n == 60:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as error:
        measure(work, n_warmup=3)
    partial = error.value.partial  # type: ignore[attr-defined]  # measure put it there
    assert (partial.method, partial.floor_s, partial.stopped_by) == ("events", 0.0, "error")


@pytest.mark.slow
@pytest.mark.parametrize("n_warmup", [0, 1])
def test_stream_left_open(n_warmup: int) -> None:
    """Work that leaves its stream current is refused, and the first stream is restored."""
    with pytest.raises(StreamLeftOpenError) as error:
        measure(lambda: torch.cuda.set_stream(torch.cuda.Stream()), n_warmup=n_warmup)
    assert str(error.value) == (
        "the work returned with another current stream than it was given; write "
        "`with torch.cuda.stream(s):` in it, which restores the first one"
    )
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_progress_moves_only_before_the_last_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar moves before each batch and not after the last, where it would only flash."""
    told: list[float] = []

    class Seen(Bar):
        def update(self, n: float = 1) -> None:
            told.append(n)
            self.n += n

    monkeypatch.setattr(_measure, "Bar", Seen)
    measure(Work(lambda _: 60_000), method="synchronized", n_warmup=0, n_samples=3)
    assert told == [0, 1, 1]


def test_an_interrupt_ends_the_calls_on_a_cold_cache_too() -> None:
    """After Ctrl-C in the cache test, the work is not called again."""
    work = interrupt_at(12)
    assert measure(work, cache="hot", n_warmup=2).stopped_by == "interrupt"
    assert work.n_calls == 12


@pytest.mark.slow
def test_samples_that_would_take_hours_are_refused_after_the_warm_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The warm-up's own times give the estimate, and no sample is taken."""
    seconds = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))
    calls: list[int] = []
    with pytest.raises(InvalidOptionError, match=r"^n_samples=3601 .* at 1\.00 s each"):
        gpulab.measure(lambda: calls.append(1), n_samples=3601, n_warmup=3)
    assert len(calls) == 3


def test_samples_are_in_ranges_that_nsight_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch of samples is in an NVTX range with the method's name, and warm-up is outside."""
    ranges, calls = [], []

    @contextmanager
    def mark(name: str) -> Iterator[None]:
        ranges.append(name)
        calls.append("begin")
        yield
        calls.append("end")

    monkeypatch.setattr(torch.cuda.nvtx, "range", mark)
    measure(lambda: calls.append("call"), method="events", n_warmup=2, n_samples=3)
    assert set(ranges) == {"gpulab: events"}
    assert calls[:3] == ["call", "call", "begin"]
    inside = "".join({"begin": "(", "end": ")", "call": "."}[each] for each in calls[2:])
    assert inside.count(".") == 3
    assert inside.replace(".", "") == "()" * len(ranges)


@pytest.mark.slow
def test_memory_for_the_floor_is_not_the_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory allocated for the floor after the samples gives no finding about them."""
    n_allocations = 0

    def beside(*_: object, **__: object) -> Floor:
        nonlocal n_allocations
        n_allocations += 1
        return _device_floor.floor()

    monkeypatch.setattr(_device_floor, "device_floor", beside)
    monkeypatch.setattr(_run, "n_device_allocations", lambda: n_allocations)
    assert "allocator-grew" not in codes(measure(kernel))
    assert n_allocations == 2
