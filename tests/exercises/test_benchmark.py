"""A learner's benchmark times works with known times; the diagnosis names what it lacks."""

import datetime as dt
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

import gpulab
from gpulab.exercises.answers import RUNGS, BenchmarkJudge
from tests.support.benchmarks import BENCHMARKS

Work = Callable[[], object]


def mean_of_events(fn: Work) -> float:
    """Time with pairs of events and take the mean, without a warm-up."""
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(50)]
    for start, end in pairs:
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return statistics.fmean(start.elapsed_time(end) for start, end in pairs) / 1e3


def without_first_wait(fn: Work) -> float:
    """Start the clock while the GPU may still be busy."""
    start_s = time.perf_counter()
    for _ in range(50):
        fn()
    torch.cuda.synchronize()
    return (time.perf_counter() - start_s) / 50


def flush_inside(fn: Work) -> tuple[float, float]:
    """Flush the cache between the two events, so that the flush is timed too."""
    buffer = torch.empty(2**25, device="cuda")
    return BENCHMARKS["clock"](lambda: (buffer.zero_(), fn()))


def old_clock(fn: Work) -> tuple[float, float]:
    """Return a fixed clock instead of one that was read."""
    seconds, _ = BENCHMARKS["sleep"](fn)
    return seconds, 1000.0


MISTAKES: list[tuple[str, Callable[..., Any], str]] = [
    ("stopwatch", lambda fn: 1e3 * BENCHMARKS["wait"](fn), "milliseconds"),
    ("stopwatch", lambda fn: 1e6 * BENCHMARKS["stopwatch"](fn), "microseconds"),
    ("stopwatch", lambda fn: 100 * BENCHMARKS["stopwatch"](fn), "not-divided"),
    ("stopwatch", lambda fn: -BENCHMARKS["stopwatch"](fn), "negative"),
    ("stopwatch", lambda fn: 5 * BENCHMARKS["wait"](fn), "unexplained"),
    ("stopwatch", lambda fn: gpulab.measure(fn).median_s, "ready-made-timer"),
    ("stopwatch", lambda fn: [fn()], "no-number"),
    ("stopwatch", lambda fn: (fn(), None)[1], "nothing-returned"),
    ("stopwatch", lambda _: 3e-6, "work-not-called"),
    ("stopwatch", lambda fn: fn() + 1, "raised"),
    ("wait", BENCHMARKS["stopwatch"], "no-wait"),
    ("wait", without_first_wait, "backlog"),
    ("wait", lambda fn: 0.5 * BENCHMARKS["wait"](fn) + 1.5e-3, "unexplained"),
    ("events", BENCHMARKS["wait"], "no-events"),
    ("events", lambda fn: BENCHMARKS["events"](fn) + 2e-5, "not-between"),
    ("warm-up", mean_of_events, "no-warm-up"),
    ("clock", BENCHMARKS["warm-up"], "no-clock"),
    ("clock", old_clock, "wrong-clock"),
    ("flush", BENCHMARKS["clock"], "hot-cache"),
    ("flush", flush_inside, "not-between"),
    ("sleep", BENCHMARKS["flush"], "gaps"),
]


@pytest.mark.slow
@pytest.mark.parametrize("rung", RUNGS)
def test_each_rung_passes_and_names_the_next_one(rung: str) -> None:
    """The solution of each lesson passes, and the verdict names what the next rung adds."""
    verdict = BenchmarkJudge(rung)(BENCHMARKS[rung])
    assert verdict.ok, verdict
    later = RUNGS[RUNGS.index(rung) + 1 :]
    # With a sleep, which gives the host a head start, the benchmark already has what the last
    # rung, measure, asks for.
    skipped = {"sleep": "", "measure": ""}
    missing = skipped.get(rung, later[0] if later else "")
    agrees = "It agrees with gpulab.measure on every work that was tried."
    assert (f"It still misses one thing ({missing}): " if missing else agrees) in verdict.message


@pytest.mark.slow
@pytest.mark.parametrize("rung", RUNGS[1:-1])
def test_the_solution_of_the_lesson_before_is_not_enough(rung: str) -> None:
    """Each rung fails a benchmark that has only the rungs below it."""
    before = RUNGS[RUNGS.index(rung) - 1]
    assert BenchmarkJudge(rung)(BENCHMARKS[before]).ok is False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rung", "answer", "code"), MISTAKES, ids=[f"{rung}-{code}" for rung, _, code in MISTAKES]
)
def test_each_mistake_gets_its_diagnosis(rung: str, answer: Callable[..., Any], code: str) -> None:
    """Each mistake gets its code and at least a sentence."""
    verdict = BenchmarkJudge(rung)(answer)
    assert (verdict.ok, verdict.diagnosis_code) == (False, code)
    assert len(verdict.message) > 30


@pytest.mark.parametrize("answer", [..., None, lambda _: ..., lambda _: None])
def test_a_stub_is_not_answered(answer: object) -> None:
    """Three dots, None and a function that does nothing count as not answered."""
    judge = BenchmarkJudge("wait")
    assert judge(answer).ok is None
    assert judge(answer).message == judge.how


def test_the_last_benchmark_is_short() -> None:
    """The learner's finished benchmark fits on a screen."""
    import inspect

    n_lines = len(inspect.getsource(BENCHMARKS["measure"]).splitlines())
    assert n_lines <= 28


def test_torch_and_the_gpu_in_use_are_restored() -> None:
    """The judge runs on a GPU of its own, even inside another virtual GPU."""
    before = torch.cuda.Event.elapsed_time
    with gpulab.virtual_gpu("T4", first_use=False) as entered:
        entered_s = entered.now_s
        assert BenchmarkJudge("stopwatch")(BENCHMARKS["stopwatch"]).ok
        assert entered.now_s == pytest.approx(entered_s, abs=1e-3)
        assert torch.cuda.get_device_name() == "Tesla T4"
    assert torch.cuda.Event.elapsed_time is before


def by_date(fn: Work) -> float:
    """Time with the date, which the virtual clock does not reach."""
    torch.cuda.synchronize()
    began = dt.datetime.now(tz=dt.UTC)
    fn()
    torch.cuda.synchronize()
    return (dt.datetime.now(tz=dt.UTC) - began).total_seconds()


def test_a_benchmark_that_reads_the_date_is_told_so() -> None:
    """The diagnosis names the clock, and not a mistake that the learner did not make."""
    verdict = BenchmarkJudge("stopwatch")(by_date)
    assert (verdict.ok, verdict.diagnosis_code) == (False, "other-clock")
    # An error comes first.
    assert BenchmarkJudge("stopwatch")(lambda fn: by_date(fn) + fn()).diagnosis_code == "raised"
    assert verdict.message == (
        "It reads datetime.now(), which shows the real time of this machine. On the virtual GPU "
        "your program runs on a virtual clock: read time.perf_counter(), or record events."
    )


@pytest.mark.parametrize("clock", ["time", "monotonic", "process_time", "thread_time"])
def test_a_benchmark_may_use_any_clock_of_time(clock: str) -> None:
    """Each clock of the module time gives a right answer."""

    def benchmark(fn: Work) -> float:
        read: Callable[[], float] = getattr(time, clock)
        torch.cuda.synchronize()
        start_s = read()
        fn()
        torch.cuda.synchronize()
        for _ in range(2):  # a log with the date is no mistake
            dt.datetime.now(tz=dt.UTC)
        return read() - start_s

    with gpulab.virtual_gpu("H200"):
        assert BenchmarkJudge("wait")(benchmark).ok
