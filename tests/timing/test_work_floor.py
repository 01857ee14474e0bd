"""The floor of some work from its own records: with made-up records, and on the virtual GPU."""

from collections.abc import Callable

import pytest
import torch

import gpulab
from gpulab.core.errors import ProfilerBusyError, ProfilerUnavailableError
from gpulab.device import Device, _notebook_session
from gpulab.device.clocks import Reading
from gpulab.happens_before.activity import ActivityRecord
from gpulab.timing import Floor, MeasurementOptions, _device_floor, _work_floor, measure
from gpulab.timing._real_time import RealTime
from gpulab.timing._run import MeasurementRun
from gpulab.tracing.profiling import Records
from gpulab.virtual import Gaps
from tests.support.floors import forget_floors

GAPS = Gaps()
FLOOR_S = (GAPS.mark_to_work_ns + GAPS.work_to_mark_ns) * 1e-9
TICK_S = 32e-9
CYCLES_PER_US = gpulab.gpus.gpu("H200").boost_clock_mhz
US = 1e-6

Call = tuple[Records, float]


pytestmark = pytest.mark.usefixtures("no_floor_known")


@pytest.fixture
def recording(gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 # it is entered first
    """Let the virtual GPU's records count as a driver's that leave no trace."""
    monkeypatch.setattr(_work_floor, "can_record", lambda: True)


def sleep_us(duration_us: int) -> None:
    """Enqueue a kernel of exactly this length."""
    torch.cuda._sleep(duration_us * CYCLES_PER_US)


def call(read_us: float, *lasts_us: float, pause_us: float = 1.0, n_missing: int = 0) -> Call:
    """Return a call of kernels with a pause between them, and what events read of it."""
    records, at_ns = [], 0
    for last_us in lasts_us:
        records.append(ActivityRecord("kernel", "work", at_ns, at_ns + round(last_us * 1000), 7))
        at_ns += round((last_us + pause_us) * 1000)
    return Records(tuple(records), (), "measured", "NVIDIA H200", n_missing), read_us * US


@pytest.mark.usefixtures("gpu")
def test_one_kernel_is_what_its_record_says() -> None:
    """The events' reading in the session does not matter: 5 µs without it, minus 2 µs, is 3."""
    found = _work_floor.work_floor([call(5.2, 2.0)] * 12, [5.0 * US] * 9 + [9.0 * US])
    assert found.value_s == pytest.approx(3.0 * US, abs=1e-12)
    assert (found.method, found.device_name, found.n_samples) == ("work", "NVIDIA H200", 12)
    drift_s = 0.005 * 5.0 * US
    aside_s = (drift_s**2 + (0.15 * US) ** 2) ** 0.5
    assert found.high_s - found.value_s == pytest.approx(aside_s, rel=1e-6)
    assert found.value_s - found.low_s == pytest.approx(aside_s, rel=1e-6)


def recorded(monkeypatch: pytest.MonkeyPatch, answer: Callable[[], list[Call]]) -> None:
    """Put some calls, or an error, in the place of the driver's records."""
    monkeypatch.setattr(_work_floor, "read_calls", lambda *_, **__: answer())


@pytest.mark.usefixtures("gpu")
def test_lost_records_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls without all of theirs, or without any, are left out; six are needed."""
    whole, lost, empty = call(5.0, 2.0), call(5.0, 2.0, n_missing=1), call(5.0)
    recorded(monkeypatch, lambda: [whole] * 6 + [lost] * 3 + [empty] * 3)
    assert _work_floor.record_calls(lambda: None) == [whole] * 6
    recorded(monkeypatch, lambda: [whole] * 5 + [lost] * 7)
    with pytest.raises(ProfilerUnavailableError) as error:
        _work_floor.record_calls(lambda: None)
    assert str(error.value) == (
        "the profiler gave complete records of 5 of 12 calls, which is too few; measure without "
        'them: floor="device"'
    )


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose a GPU that passes for a real one, whose records leave no trace."""
    monkeypatch.setattr(_work_floor, "leaves_no_trace", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    _notebook_session.session.device = Device("NVIDIA H200", "measured", "a test made it")


@pytest.mark.usefixtures("real")
def test_a_driver_that_refuses_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """For as long as the process lives; one that is busy is."""

    def busy() -> list[Call]:
        raise ProfilerBusyError("a session is open")

    def refused() -> list[Call]:
        raise ProfilerUnavailableError("forbidden")

    assert _work_floor.can_record()
    recorded(monkeypatch, busy)
    with pytest.raises(ProfilerBusyError):
        _work_floor.record_calls(lambda: None)
    assert _work_floor.can_record()
    recorded(monkeypatch, refused)
    with pytest.raises(ProfilerUnavailableError, match="forbidden"):
        _work_floor.record_calls(lambda: None)
    assert not _work_floor.can_record()
    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "current_device", lambda: 1)
        assert _work_floor.can_record()  # each device refuses for itself
    forget_floors()
    assert _work_floor.can_record()
    monkeypatch.setattr(_work_floor, "leaves_no_trace", lambda: False)
    assert not _work_floor.can_record()


@pytest.mark.slow
@pytest.mark.usefixtures("recording")
def test_long_work_is_not_repeated_for_its_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The floor of work over a millisecond is taken as zero."""
    monkeypatch.setattr(_work_floor, "record_calls", lambda *_, **__: pytest.fail("it was asked"))
    assert measure(lambda: sleep_us(1_001)).floor_s == pytest.approx(FLOOR_S)


@pytest.mark.slow
@pytest.mark.usefixtures("recording")
@pytest.mark.parametrize("error", [ProfilerBusyError("busy"), ProfilerUnavailableError("none")])
def test_the_floor_of_the_device_stands_in(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Where the profiler gives nothing, no sample is lost and nothing is raised."""

    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(_work_floor, "record_calls", refuse)
    found = measure(lambda: sleep_us(20))
    assert (found.floor_s, found.floor_error_s) == (pytest.approx(FLOOR_S, abs=1e-15), 0.0)
    assert (found.n_samples, found.stopped_by) == (10, "precision")


@pytest.mark.slow
@pytest.mark.usefixtures("recording")
def test_an_error_while_the_driver_records_keeps_the_samples() -> None:
    """They hang on the error, which says when it came."""
    n_calls = 0

    def work() -> None:
        nonlocal n_calls
        n_calls += 1
        sleep_us(20 // (n_calls != 12 + 10 + 3))

    with pytest.raises(ZeroDivisionError) as error:
        measure(work)
    assert error.value.__notes__ == [
        (
            "gpulab: raised while the driver recorded calls; the 10 samples before are kept in "
            "its attribute `partial`"
        )
    ]
    partial = error.value.partial  # type: ignore[attr-defined]  # measure put it there
    assert (partial.n_samples, partial.stopped_by) == (10, "error")
    assert partial.median_s == pytest.approx(20 * US, abs=TICK_S)


@pytest.mark.slow
@pytest.mark.usefixtures("recording")
def test_work_beside_the_events_has_the_floor_of_the_device() -> None:
    """Its records last longer than what the events read, which did not bracket them."""
    side = torch.cuda.Stream()

    def work() -> None:
        with torch.cuda.stream(side):
            sleep_us(100)

    found = measure(work)
    assert (found.floor_method, found.floor_s) == ("records", pytest.approx(FLOOR_S, abs=1e-15))
    assert "side-stream" in [finding.code for finding in found.findings]


def aside_us(found: Floor) -> float:
    """Return how far the ends of the interval lie from the value, which must be in its middle."""
    assert found.high_s - found.value_s == pytest.approx(found.value_s - found.low_s)
    return (found.high_s - found.value_s) / US


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("more_us", "floor_us"), [(1.4, 3.0), (1.6, 4.6), (-1.4, 3.0), (-1.6, 1.4)]
)
def test_a_little_slower_is_not_slowed(more_us: float, floor_us: float) -> None:
    """Up to 1.5 µs between session and no session the record counts, and beyond it does not."""
    found = _work_floor.work_floor([call(5.12 + more_us, 2.0)] * 12, [5.0 * US] * 10)
    assert found.value_s == pytest.approx(floor_us * US, abs=1e-12)


@pytest.mark.usefixtures("gpu")
def test_half_the_interval_of_the_records_is_an_error() -> None:
    """The third and the tenth of twelve bracket the median: 0.35 µs to either side."""
    calls = [call(5.2, 2.0 + 0.1 * n) for n in range(12)]
    found = _work_floor.work_floor(calls, [5.0 * US] * 10)
    assert aside_us(found) == pytest.approx((0.35**2 + 0.15**2 + 0.025**2) ** 0.5)


@pytest.mark.usefixtures("gpu")
def test_the_floors_of_several_that_vary_widen_the_interval() -> None:
    """It is those that count there, not the spans, which go up and down with the readings."""
    steady = _work_floor.work_floor(
        [call(9.12 + 0.1 * n, 2.0, 3.0 + 0.1 * n) for n in range(12)], [7.5 * US] * 10
    )
    assert aside_us(steady) == pytest.approx((0.5**2 + 0.0375**2) ** 0.5)
    varying = _work_floor.work_floor(
        [call(9.12 + 0.1 * n, 2.0, 3.0) for n in range(12)], [7.5 * US] * 10
    )
    assert aside_us(varying) == pytest.approx((0.35**2 + 0.5**2 + 0.0375**2) ** 0.5)


@pytest.mark.usefixtures("gpu")
def test_work_of_one_kernel_and_at_times_of_two_counts_as_several() -> None:
    """The records alone would give 3.5 µs, as half of the spans contain a pause."""
    calls = [call(9.12, 2.0, 3.0)] * 6 + [call(5.12, 2.0)] * 6
    found = _work_floor.work_floor(calls, [7.5 * US] * 10)
    assert found.value_s == pytest.approx(3.0 * US, abs=1e-12)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("floor_us", "is_one"), [(0.4, False), (0.6, True), (8.9, True), (9.1, False)]
)
def test_a_floor_lies_between_half_a_microsecond_and_nine(
    floor_us: float,
    is_one: bool,  # noqa: FBT001 # a parameter of the test
) -> None:
    """Outside of it the records are of something else, if only by little."""
    calls, readings_s = [call(20.12 + floor_us, 20.0)] * 12, [(20.0 + floor_us) * US] * 10
    if is_one:
        found = _work_floor.work_floor(calls, readings_s)
        assert found.value_s == pytest.approx(floor_us * US, abs=1e-12)
    else:
        with pytest.raises(ProfilerUnavailableError, match="do not show the work"):
            _work_floor.work_floor(calls, readings_s)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, str]]:
    """Note each question for a floor of the device, with what went ahead; answers grow."""
    questions: list[tuple[object, str]] = []

    def answer(before: object, of: str) -> Floor:
        questions.append((before, of))
        value_s = (1.0 + 0.5 * len(questions)) * US
        return Floor(value_s, value_s, value_s, "timer", "NVIDIA H200", 20)

    monkeypatch.setattr(_device_floor, "floor", lambda *, of="launches": answer("nothing", of))
    monkeypatch.setattr(
        _device_floor, "device_floor", lambda before, *, of="launches": answer(before, of)
    )
    return questions


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("method", "of"), [("calibrated", "launches"), ("graph", "graph")])
def test_the_floor_of_the_device_is_read_before_and_behind(
    asked: list[tuple[object, str]], method: str, of: str
) -> None:
    """Behind what goes ahead of each sample, of the method's kind; the mean is taken off."""
    setup = lambda: None  # noqa: E731 # as short as it is
    found = measure(lambda: sleep_us(20), method=method, cache="hot", setup=setup, n_samples=10)
    assert asked == [(setup, of), (setup, of)]
    assert found.floor_s == pytest.approx(1.75 * US, abs=1e-15)
    assert found.floor_method == "timer"


@pytest.mark.slow
@pytest.mark.usefixtures("recording")
def test_an_interrupted_run_calls_the_work_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C the dozen calls with records would only be a wait."""
    monkeypatch.setattr(_work_floor, "record_calls", lambda *_, **__: pytest.fail("it was asked"))
    n_calls = 0

    def work() -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 3 + 30:
            raise KeyboardInterrupt
        sleep_us(20 + 20 * (n_calls % 2))

    found = measure(work, n_warmup=3)
    assert (found.stopped_by, found.floor_method) == ("interrupt", "records")
    assert n_calls == 3 + 30


@pytest.mark.usefixtures("recording")
def test_samples_behind_the_records_have_the_last_clock() -> None:
    """It was read just before them, and another query of the driver takes time."""
    options = MeasurementOptions(cache="hot")
    run = MeasurementRun.prepare(lambda: sleep_us(20), options, real_time=RealTime(1.0))
    for n_samples, reading in ((8, Reading(0.0, sm_mhz=1980)), (2, Reading(0.1, sm_mhz=1440))):
        run.samples.values_s += [22.6 * US] * n_samples
        run.samples.end_batch(reading)
    run.update_floor(n_more=12)
    assert run.floor is not None
    assert run.floor.method == "work"
    assert run.samples.batch_sizes == [8, 2, 12]
    assert run.samples.readings[2] == Reading(0.1, sm_mhz=1440)
