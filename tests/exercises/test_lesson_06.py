"""Lesson 06: a learner's flush is judged by its effect, and each mistake gets its diagnosis."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import gpulab
from gpulab.exercises._api import exercise
from gpulab.exercises.lesson_06 import draw_shares, plot_speeds
from gpulab.exercises.lesson_06._flush_choice import explain_flush
from gpulab.exercises.lesson_06._flush_trial import FlushTrial, run
from gpulab.figures import Figure
from gpulab.timing import flusher
from tests.support.judging import judged, right_of

CHOOSE, STAIRCASE = map(exercise, ("06.choose-a-flush", "06.staircase"))
STEPS = right_of("06.staircase")
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "cold-cache-h200.json"
NAMES = {"sum": "sum", "linear layer": "linear, 1 row"}
WAYS = (
    *("hot", "read 2x", "write 256 MiB", "write 1x", "write 256 MiB, wait 1 ms"),
    *("write 256 MiB, read 2x", "rotate 2x"),
)


# The flush


def reading_shares(*shares: float) -> Callable[[], Callable[[], object]]:
    """Return a flush that reads several buffers, given as shares of an L2 of 60 MiB."""

    def make() -> Callable[[], object]:
        buffers = [torch.zeros(round(share * 960), 16384, device="cuda") for share in shares]
        return lambda: [buffer.sum() for buffer in buffers]

    return make


def failing() -> Callable[[], object]:
    """Return a flush that raises IndexError."""
    buffers: list[torch.Tensor] = []
    return lambda: buffers[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "code", "begins"),
    [
        (reading_shares(1), "too-small", "Your flush touches only 1.0 times the L2."),
        (failing, "raised", "Your function raised IndexError: list index"),
    ],
)
def test_each_faulty_flush_gets_its_diagnosis(
    make: Callable[[], Callable[[], object]], code: str, begins: str
) -> None:
    """A flush that is too small and one that fails; the others are among the lessons' answers."""
    with gpulab.virtual_gpu("H200"):
        verdict = judged(CHOOSE, {"flush": make(), "because": "c"})
    assert (verdict.ok, verdict.diagnosis_code) == (False, code)
    assert verdict.message.startswith(begins)


def test_the_verdict_on_a_flush_has_three_times() -> None:
    """The message shows the times after this flush, when hot, and after a flush that writes."""
    fault = explain_flush(FlushTrial(hot_s=7e-6, clean_s=9e-6, dirty_s=11e-6, own_s=10.8e-6))
    assert fault is not None
    assert fault.message == (
        "The layer takes 10.8 µs after your flush, 7.00 µs when it is hot, and 11.0 µs after a "
        "flush that writes. It is cold, but it also waits for your flush: what the flush wrote "
        "goes to memory while the layer runs. Read instead, and read memory that your flush has "
        "not just written."
    )


@pytest.mark.slow
def test_a_right_flush_needs_its_reason() -> None:
    """A clean flush with a wrong reason is wrong, and the message says which part is right."""
    with gpulab.virtual_gpu("H200"):
        verdict = judged(CHOOSE, {"flush": flusher("read"), "because": "a"})
    assert (verdict.ok, verdict.diagnosis_code) == (False, "smaller-is-no-proof")
    praise = "Your flush is right; your reason is not. "
    assert verdict.message.startswith(f"{praise}a: the hot layer takes even less,")


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"flush": ..., "because": "c"}, "incomplete"),
        ({"flush": print}, "incomplete"),
        ({"flush": print, "why": "c"}, "unknown-key"),
        ({"flush": 1, "because": "c"}, "not-a-choice"),
        (print, "not-a-choice"),
    ],
)
def test_an_answer_without_both_parts_is_not_tried(answer: object, code: str) -> None:
    """A missing part, an unknown key and a flush that is no function are refused."""
    verdict = judged(CHOOSE, answer)
    assert (verdict.ok, verdict.diagnosis_code) == (False, code)


@pytest.mark.parametrize(
    ("own_s", "code"),
    [(11.1e-6, "still-hot"), (11.3e-6, ""), (12.9e-6, ""), (13.1e-6, "dirty")],
)
def test_midpoints_separate_the_states(own_s: float, code: str) -> None:
    """A time counts as the nearest of the hot, clean and dirty times."""
    trial = FlushTrial(hot_s=10e-6, clean_s=12.4e-6, dirty_s=13.6e-6, own_s=own_s)
    fault = explain_flush(trial)
    assert (fault.code if fault else "") == code


@pytest.mark.parametrize("own_s", [9e-6, 11e-6])
def test_states_that_do_not_differ_are_not_judged(own_s: float) -> None:
    """On a GPU where flushing hardly changes the time, no flush is wrong."""
    assert explain_flush(FlushTrial(10e-6, 10.4e-6, 10.8e-6, own_s)) is None


@pytest.mark.slow
def test_the_layer_suits_the_cache_of_the_gpu_in_use() -> None:
    """On an A100 the layer is smaller, so hot, clean and dirty times differ there too."""
    with gpulab.virtual_gpu("A100"):
        trial = run(flusher("write"))
    assert trial.error is None
    assert not trial.waits
    assert trial.hot_s * 1.05 < trial.clean_s < trial.dirty_s
    assert trial.own_s == pytest.approx(trial.dirty_s, rel=0.01)


# Readings and figure


def test_recorded_readings_name_their_source() -> None:
    """The frames have columns with the source and the device."""
    for asked in (CHOOSE, STAIRCASE):
        assert asked.readings is not None
        frame = asked.readings()
        assert set(frame["source"]) == {"recorded"}
        assert set(frame["device_name"]) == {"NVIDIA H200"}


def test_recorded_readings_are_those_of_the_results() -> None:
    """The numbers in the exercises are those of the benchmark's results, rounded."""
    results = json.loads(RESULTS.read_text())
    assert STAIRCASE.readings is not None
    for row in STAIRCASE.readings().itertuples():
        name, size = NAMES[str(row.work)], str(row.working_set_mib)
        memory, asked = results["bytes"][name][size], results["halves"][name][size]["hot"]
        assert row.hot_mb == round(memory["hot"][0] / 1e6, 1)
        assert row.cold_mb == round(memory["read 2x"][0] / 1e6, 1)
        assert row.hot_crossing == pytest.approx(asked[2] / asked[0], abs=0.006)
    assert CHOOSE.readings is not None
    works = results["works"]["linear, 1 row"]["times_us"]["30"]
    memory = results["bytes"]["linear, 1 row"]["30"]
    for row, way in zip(CHOOSE.readings().itertuples(), WAYS, strict=True):
        assert row.kernel_s == pytest.approx(works[way][0] * 1e-6, abs=1e-12)
        moved_mb = tuple(round(moved / 1e6, 2) for moved in memory[way])
        assert (row.from_memory_mb, row.to_memory_mb) == moved_mb


def test_recorded_staircase_supports_its_key() -> None:
    """The key follows from the readings: hot is at most 5 % from memory, cold at least 95 %."""
    assert STAIRCASE.readings is not None
    frame = STAIRCASE.readings()
    share = (frame["hot_mb"] / frame["cold_mb"]).groupby(frame["working_set_mib"])
    hot, cold = share.max() <= 0.05, share.min() >= 0.95
    assert str(hot.index[hot].max()) == STEPS["hot up to"]
    assert str(cold.index[cold].min()) == STEPS["cold from"]


def test_recorded_flushes_support_their_key() -> None:
    """Both flushes read the same bytes from memory, and only the writing one writes some."""
    assert CHOOSE.readings is not None
    frame = CHOOSE.readings().set_index("run_ahead")
    read, write = frame.loc["read 2 times the L2"], frame.loc["write 256 MiB"]
    assert read["from_memory_mb"] == write["from_memory_mb"]
    assert (read["to_memory_mb"], write["to_memory_mb"]) == (0.0, 10.42)


def speeds(gpu: str, **bytes_per_s: list[float]) -> Figure:
    """Return the figure of speeds at 24, 36 and 60 MiB on a virtual GPU."""
    with gpulab.virtual_gpu(gpu, first_use=False):
        return plot_speeds([24, 36, 60], bytes_per_s)


def test_speeds_above_the_memory_are_the_title() -> None:
    """The title has the sizes and the series that are faster than the data sheet's memory."""
    figure = speeds("H200", hot=[7e12, 5e12, 4e12], cold=[3e12, 4e12, 4.5e12])
    assert figure.title.startswith(
        "From 24 to 36 MiB, a hot kernel is faster than the memory can be"
    )
    assert figure.caption.splitlines() == [
        "hot: from 4,000 to 7,000 GB/s.",
        "cold: from 3,000 to 4,500 GB/s.",
        "The memory: 4,800 GB/s.",
    ]
    slow = speeds("H200", hot=[4e12] * 3)
    assert slow.title.startswith("Nothing is faster than the memory")


def test_a_share_is_drawn_in_percent_for_each_work() -> None:
    """Each work has a line, the axis names the quantity, and the numbers are recorded ones."""
    assert STAIRCASE.readings is not None
    frame = STAIRCASE.readings()
    shares = frame.assign(from_memory_percent=100 * frame["hot_mb"] / frame["cold_mb"])
    figure = draw_shares(shares, "from_memory_percent", "bytes from memory", title="Shares")
    assert figure.title == "Shares (recorded on NVIDIA H200)"
    words = "sum: from 0 at first to 100 at last."
    assert figure.caption.splitlines()[0] == words
    assert "The y axis shows bytes from memory (%), from 0 to 100." in figure.description
