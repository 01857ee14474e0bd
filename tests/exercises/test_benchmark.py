"""A learner's benchmark times works with known times; the diagnosis names what it lacks."""

import datetime as dt
import statistics
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import torch

import gpulab
from gpulab.exercises.answers import BenchmarkJudge
from gpulab.exercises.answers._benchmark import RUNGS
from tests.support.benchmarks import BENCHMARKS

Work = Callable[[], object]


def asking_again_and_again(fn: Work) -> float:
    """Wait by asking an event, and not before the clock starts."""
    times_s = []
    for _ in range(5):
        done = torch.cuda.Event()
        start_s = time.perf_counter()
        fn()
        done.record()
        while not done.query():
            time.sleep(1e-5)
        times_s.append(time.perf_counter() - start_s)
    return max(times_s)


def at_every_second_work(fail: Callable[[Work], Any]) -> Callable[[Work], Any]:
    """Return a benchmark that does something else at every second work."""
    tries = count()
    return lambda fn: fail(fn) if next(tries) % 2 else BENCHMARKS["stopwatch"](fn)


def fails(_fn: Work) -> None:
    """Raise an error."""
    raise RuntimeError("tried again")


def raising_on_a_hot_gpu(fn: Work) -> tuple[float, float]:
    """Raise an error if the clock has fallen."""
    if torch.cuda.clock_rate() < 1900:
        raise RuntimeError("too hot")
    return BENCHMARKS["clock"](fn)


def clocks_in_each_round(fn: Work) -> float:
    """Read the clock several times in a loop that is timed as a whole."""
    start_s = time.perf_counter()
    times_s = [(fn(), [time.perf_counter() for _ in range(8)]) for _ in range(20)]
    return (time.perf_counter() - start_s) / len(times_s)


def wait_before_the_launch(fn: Work) -> float:
    """Wait in each interval, when the GPU is idle, and not for the work."""
    times_s = []
    for _ in range(20):
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        torch.cuda.synchronize()
        fn()
        times_s.append(time.perf_counter() - start_s)
    return statistics.median(times_s)


# Those that the answers of the lessons do not have.
MISTAKES: list[tuple[str, Callable[..., Any], str]] = [
    ("stopwatch", lambda fn: 1e3 * BENCHMARKS["wait"](fn), "milliseconds"),
    ("stopwatch", lambda fn: 1e6 * BENCHMARKS["stopwatch"](fn), "microseconds"),
    ("stopwatch", lambda fn: -BENCHMARKS["stopwatch"](fn), "negative"),
    ("stopwatch", lambda fn: 5 * BENCHMARKS["wait"](fn), "unexplained"),
    ("stopwatch", lambda fn: BENCHMARKS["wait"](fn) / 5, "unexplained"),
    ("stopwatch", at_every_second_work(fails), "raised"),
    ("stopwatch", at_every_second_work(lambda fn: fn()), "nothing-returned"),
    ("stopwatch", at_every_second_work(lambda fn: (fn(), float("nan"))[1]), "no-number"),
    ("stopwatch", at_every_second_work(lambda _: None), "not-again"),
    ("clock", raising_on_a_hot_gpu, "raised"),
    ("stopwatch", lambda fn: gpulab.measure(fn).median_s, "ready-made-timer"),
    ("stopwatch", lambda fn: [fn()], "no-number"),
    ("stopwatch", lambda fn: (fn(), None)[1], "nothing-returned"),
    ("stopwatch", lambda _: 3e-6, "work-not-called"),
    ("stopwatch", lambda fn: fn() + 1, "raised"),
    ("wait", asking_again_and_again, "backlog"),
    ("events", lambda fn: BENCHMARKS["events"](fn) + 5e-5, "not-between"),
]


@pytest.mark.slow
@pytest.mark.parametrize("rung", ["stopwatch", "events", "clock", "measure"])
def test_each_rung_passes_and_names_the_next_one(rung: str) -> None:
    """A lesson's solution passes, and the verdict names what the next rung adds."""
    judge = BenchmarkJudge(rung)
    is_pair = RUNGS.index(rung) >= RUNGS.index("clock")
    assert ("the SM clock in MHz." in judge.how, "a number." in judge.how) == (
        is_pair,
        not is_pair,
    )
    verdict = judge(BENCHMARKS[rung])
    assert verdict.ok, verdict
    later = RUNGS[RUNGS.index(rung) + 1 :]
    missing = later[0] if later else ""
    agrees = "It agrees with gpulab.measure on every work that was tried."
    assert (f"It still misses one thing ({missing}): " if missing else agrees) in verdict.message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rung", "answer", "code"), MISTAKES, ids=[f"{rung}-{code}" for rung, _, code in MISTAKES]
)
def test_each_mistake_gets_its_diagnosis(rung: str, answer: Callable[..., Any], code: str) -> None:
    """Each mistake gets its code and at least a sentence."""
    verdict = BenchmarkJudge(rung)(answer)
    assert (verdict.ok, verdict.diagnosis_code) == (False, code)
    assert len(verdict.message) > 30


@pytest.mark.parametrize("answer", [clocks_in_each_round, wait_before_the_launch])
def test_a_stopwatch_may_do_more_in_its_rounds(answer: Callable[[Work], float]) -> None:
    """The time from one call to the next is one call's, too, and so is a launch after a wait."""
    verdict = BenchmarkJudge("stopwatch")(answer)
    assert verdict.ok, verdict
    assert "one thing (wait): " in verdict.message


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
