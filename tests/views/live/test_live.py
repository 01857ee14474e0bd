"""Loads and series are shown while they run, and keep their results however they end."""

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pandas as pd
import pytest
import torch

import gpulab
from gpulab import clocks, plots
from gpulab.core.errors import ClocksUnavailableError, InvalidOptionError
from gpulab.device.clocks import _read
from gpulab.figures import Figure
from gpulab.timing import _ladder
from gpulab.views.live import _live
from gpulab.views.live._stop import Stop
from tests.support.notebook_display import shown_in

pytestmark = pytest.mark.usefixtures("no_pixels")

CYCLES = 20_000_000  # about ten milliseconds
WATCHED = pytest.mark.parametrize("watched", [False, True])


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    """Enter a virtual H200, and check that the test leaves no work or handler."""
    handler = signal.getsignal(signal.SIGINT)
    with gpulab.virtual_gpu("H200", first_use=False):
        yield
        assert torch.cuda.current_stream().query()
    assert signal.getsignal(signal.SIGINT) is handler


def sleep() -> None:
    """Enqueue a kernel of constant length."""
    torch.cuda._sleep(CYCLES)


def at_call(number: int, event: Callable[[], object]) -> Callable[[], None]:
    """Return work that calls ``event`` at the end of its call with this number."""
    calls: list[None] = []

    def work() -> None:
        calls.append(None)
        sleep()
        if len(calls) == number:
            event()

    return work


def interrupt() -> None:
    """Press Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


def fail() -> None:
    """Raise an error, as a user's work may."""
    raise ValueError("the work is wrong")


def rising(n: int) -> Iterator[dict[str, object]]:
    """Yield n rows with rising times, like a sweep."""
    for number in range(1, n + 1):
        yield {"size": number, "duration_s": number * 1e-6, "series": "a"}


def draw_rising(results: Iterable[object], **options: Any) -> _live.Series:  # noqa: ANN401  # passed on
    """Show rows as a live series."""
    return _live.series(results, plots.scaling, title="Rising", alt="It rises.", **options)


# A load


def test_a_load_is_read_to_its_end() -> None:
    """The first reading is taken before the load, the others every 0.1 s until its end."""
    trace = _live.load(sleep, duration_s=0.5, progress=False)
    frame = trace.to_frame()
    assert frame["time_s"].tolist() == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5], abs=0.02)
    assert frame["utilization"].iloc[0] == 0
    assert frame["utilization"].iloc[-1] == 100
    assert set(frame["source"]) == {"virtual"}
    assert set(frame["device_name"]) == {"NVIDIA H200"}
    assert (trace.stopped_by, trace.stopped, trace.missing) == ("", "", "")
    assert str(trace) == (
        "0.5 s under load, 6 readings (virtual NVIDIA H200);\n"
        "burst: the clock stayed at 1980 of 1980 MHz"
    )
    assert repr(trace) == str(trace)


def swallowed() -> None:
    """Press Ctrl-C, and catch it, as measure() does."""
    with pytest.raises(KeyboardInterrupt):
        interrupt()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("watched", "press"), [(False, interrupt), (True, interrupt), (True, swallowed)]
)
def test_an_interrupt_keeps_the_readings_so_far(
    *, watched: bool, press: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends the load, also if the work catches it; trace and picture say so."""
    shown = shown_in(monkeypatch, watched=watched)
    trace = _live.load(at_call(40, press), duration_s=2)
    assert trace.stopped_by == "interrupt"
    assert 0.2 <= trace.duration_s < 0.5
    words = f"stopped by an interrupt after {trace.duration_s:.1f} of 2 s"
    assert str(trace).startswith(f"{words}, {len(trace.readings)} readings (")
    (outputs,) = shown.outputs
    assert isinstance(outputs[-1], Figure)
    assert outputs[-1].title.endswith(f" MHz, {words} (virtual NVIDIA H200)")


def test_an_interrupt_before_the_first_reading_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C before the first reading is raised to the caller, and a note is shown."""

    def look(_device: object, parts: tuple[str, ...] = ()) -> _read.Reading:
        if parts:
            interrupt()
        return _read.Reading(0.0)

    monkeypatch.setattr(_read, "read", look)
    shown = shown_in(monkeypatch, watched=False)
    with pytest.raises(KeyboardInterrupt):
        _live.load(sleep)
    note = "stopped before there was anything to show"
    assert shown.outputs == [[{"text/plain": note, "text/html": f"<p>{note}</p>"}]]


@pytest.mark.slow
@WATCHED
def test_a_load_that_raises(*, watched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the work is raised with the readings so far, and their picture stays."""
    shown = shown_in(monkeypatch, watched=watched)
    with pytest.raises(ValueError, match="the work is wrong") as error:
        _live.load(at_call(40, fail), duration_s=2)
    partial = error.value.partial  # type: ignore[attr-defined]  # load put it there
    assert partial.stopped_by == "error"
    kept = f"the {len(partial.readings)} readings before the error are in its attribute `partial`"
    assert error.value.__notes__ == [f"gpulab: {kept}"]
    assert "stopped by an error after" in shown.outputs[-1][-1].title


def test_settings_that_the_work_changes_are_restored() -> None:
    """If the work changes the current stream and fails, the old stream is current again."""
    before = torch.cuda.current_stream()

    def work() -> None:
        torch.cuda.set_stream(torch.cuda.Stream())
        fail()

    with pytest.raises(ValueError, match="the work is wrong"):
        _live.load(work, progress=False)
    assert torch.cuda.current_stream() == before


@pytest.mark.slow
@WATCHED
def test_without_nvml_the_load_runs_and_says_why_it_is_empty(
    *, watched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without NVML the readings have only times, and trace and picture say why."""

    def refuse(*_: object) -> _read.Reading:
        raise ClocksUnavailableError("the clocks cannot be read: no NVML here")

    monkeypatch.setattr(_read, "read", refuse)
    monkeypatch.setattr(clocks, "read", refuse)
    shown = shown_in(monkeypatch, watched=watched)
    trace = _live.load(sleep, duration_s=0.2)
    assert trace.missing == "the clocks cannot be read: no NVML here"
    assert str(trace) == (
        "0.2 s under load, 3 readings (virtual NVIDIA H200);\n"
        "the clocks cannot be read: no NVML here"
    )
    assert trace.to_frame()["sm_mhz"].isna().all()
    assert shown.outputs[-1][-1].caption == "The clocks cannot be read: no NVML here."


def test_a_load_shorter_than_its_period() -> None:
    """A load shorter than its period has one reading, which can be drawn."""
    trace = _live.load(sleep, duration_s=1e-6, progress=False)
    assert str(trace).startswith("0.0 s under load, 1 reading (")
    assert _live.draw(trace).title.endswith("MHz (virtual NVIDIA H200)")


@pytest.mark.slow
def test_drawing_costs_no_virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The readings have the same times to the nanosecond with and without a picture."""
    times = []
    for watched in (False, True):
        with monkeypatch.context() as patch, another_virtual_gpu():
            shown_in(patch, watched=watched)
            readings = _live.load(sleep, duration_s=0.3).readings
            times.append([reading.at_s for reading in readings])
    assert times[0] == times[1]


class another_virtual_gpu:  # noqa: N801  # reads as a context
    """Replace the virtual GPU in use by a new one inside the context."""

    def __enter__(self) -> None:
        self.before = gpulab.device.current().virtual
        assert self.before is not None
        self.before.__exit__(None, None, None)
        self.now = gpulab.virtual_gpu("H200", first_use=False).__enter__()

    def __exit__(self, *_: object) -> None:
        self.now.__exit__(None, None, None)
        assert self.before is not None
        self.before.__enter__()


@WATCHED
def test_a_virtual_load_runs_in_real_time_if_watched(
    *, watched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a front end a virtual load lasts as long as it says; without one nothing waits."""
    waited: list[float] = []
    monkeypatch.setattr(Stop, "wait", lambda _, duration_s: bool(waited.append(duration_s)))
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    shown_in(monkeypatch, watched=watched)
    _live.load(sleep, duration_s=0.2)
    assert waited == pytest.approx([0, 0.1, 0.2] if watched else [0, 0, 0], abs=0.02)


# A series


def test_results_are_drawn_and_returned() -> None:
    """Rows become one frame, in their order of arrival."""
    shown = draw_rising(rising(4), n_expected=4)
    assert [row["size"] for row in shown.results] == [1, 2, 3, 4]  # type: ignore[index]  # rows
    pd.testing.assert_frame_equal(shown.to_frame(), pd.DataFrame(rising(4)))
    assert (str(shown), repr(shown)) == ("4 of 4 results", "4 of 4 results")


@pytest.mark.slow
def test_measurements_stay_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurements stay a list, whose length and source the picture uses."""
    shown = shown_in(monkeypatch, watched=False)
    found = [gpulab.measure(sleep, n_samples=6, label=name) for name in ("a", "b")]
    made = _live.series(found, plots.compare_methods, title="Two", alt="Two dots.")
    assert made.record == found
    assert str(made) == "2 of 2 results"
    assert shown.outputs[0][-1].title == "Two (virtual NVIDIA H200)"


def test_a_title_may_say_what_came_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The title may be a function of what is drawn; text and functions alone are titles."""
    shown = shown_in(monkeypatch, watched=False)

    def highest(record: pd.DataFrame) -> str:
        return f"The last size is {record['size'].max()}"

    _live.series(rising(4), plots.scaling, title=highest, alt="It rises.")
    assert shown.outputs[0][-1].title.startswith("The last size is 4 (")
    with pytest.raises(InvalidOptionError, match="title=7"):
        _live.series(rising(4), plots.scaling, title=7, alt="It rises.")  # type: ignore[arg-type]  # the mistake


@pytest.mark.slow
@WATCHED
def test_an_interrupted_series_keeps_what_came(
    *, watched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends a series, closes the generator, and title and caption say it is partial."""
    cleaned = []

    def results() -> Iterator[dict[str, object]]:
        try:
            yield from rising(2)
            sleep()
            interrupt()
        finally:
            cleaned.append(True)

    shown = shown_in(monkeypatch, watched=watched)
    made = draw_rising(results(), n_expected=9)
    assert cleaned == [True]
    assert str(made) == "stopped by an interrupt after 2 of 9 results"
    assert len(made.to_frame()) == 2
    figure = shown.outputs[0][-1]
    assert figure.title == f"Rising, {made} (virtual NVIDIA H200)"
    assert figure.caption == "It rises. Stopped by an interrupt after 2 of 9 results."


def test_a_result_that_caught_the_interrupt_is_left_out() -> None:
    """The result during which Ctrl-C came may have too few samples, so it is left out."""
    cleaned = []

    def results() -> Iterator[dict[str, object]]:
        try:
            for row in rising(5):
                if row["size"] == 3:
                    with pytest.raises(KeyboardInterrupt):
                        interrupt()
                yield row
        finally:
            cleaned.append(True)

    rows = results()
    made = draw_rising(rows)
    assert str(made) == "stopped by an interrupt after 2 results"
    assert cleaned == [True]
    assert next(rows, None) is None


def test_the_button_ends_a_series_after_the_running_result() -> None:
    """The Stop button lets the running result finish, and keeps it."""
    stop_of = Stop.__enter__
    pressed: list[Stop] = []

    def results() -> Iterator[dict[str, object]]:
        for row in rising(5):
            if row["size"] == 3:
                pressed[0].ask("stop")
            yield row

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stop, "__enter__", lambda stop: (pressed.append(stop), stop_of(stop))[1])
        made = draw_rising(results())
    assert str(made) == "stopped by the Stop button after 3 results"


@pytest.mark.slow
def test_a_series_whose_results_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error is raised with the results so far, and their picture stays."""
    shown = shown_in(monkeypatch, watched=True)

    def results() -> Iterator[dict[str, object]]:
        yield from rising(3)
        fail()

    with pytest.raises(ValueError, match="the work is wrong") as error:
        draw_rising(results())
    assert str(error.value.partial) == "stopped by an error after 3 results"  # type: ignore[attr-defined]  # as above
    kept = "the 3 results before the error are in its attribute `partial`"
    assert error.value.__notes__ == [f"gpulab: {kept}"]
    assert shown.outputs[0][-1].title.startswith("Rising, stopped by an error after 3 results")


def test_a_series_without_results() -> None:
    """A series without results has no record and no frame, and raises an interrupt."""
    made = draw_rising(iter(()))
    assert (str(made), made.record) == ("0 results", None)
    with pytest.raises(InvalidOptionError) as error:
        made.to_frame()
    assert str(error.value) == "there are no results; run it again and let one come"
    with pytest.raises(KeyboardInterrupt):
        draw_rising(interrupt() for _ in range(2))


def test_a_failure_before_the_first_result() -> None:
    """If the first result fails, the note says that nothing was kept."""
    with pytest.raises(ValueError, match="the work is wrong") as error:
        draw_rising(fail() for _ in range(2))
    assert error.value.__notes__ == [
        "gpulab: nothing was kept; the error came before the first of the results"
    ]


def test_a_series_must_be_described() -> None:
    """An empty text alternative is refused before anything is measured."""
    with pytest.raises(InvalidOptionError) as error:
        _live.series(rising(2), plots.scaling, title="Rising", alt=" ")
    assert str(error.value) == "alt=' '; say in a sentence what the plot shows"


# A ladder


@pytest.mark.slow
def test_a_ladder_that_is_stopped_keeps_its_rungs(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted ladder returns the finished rungs and shows them."""
    shown = shown_in(monkeypatch, watched=True)
    took: list[object] = []

    def climbed(*_: object, **options: object) -> Iterator[_ladder.Ladder]:
        for ladder in whole:
            took.append(options)
            if len(took) == 4:
                interrupt()
            yield ladder

    whole = list(_ladder.run_ladder(sleep, max_time_s=0.01))
    monkeypatch.setattr(_live, "run_ladder", climbed)
    rungs = _live.ladder(sleep, label="a sleep", max_time_s=0.01).rungs
    assert rungs == whole[2].rungs
    assert took[0] == {"label": "a sleep", "max_time_s": 0.01}
    assert shown.outputs[0][-1].title == (
        "a sleep, stopped by an interrupt after 3 of 12 results, by every method "
        "(virtual NVIDIA H200)"
    )
