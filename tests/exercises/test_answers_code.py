"""How a learner's timer is tried: its clock, its units, the GPU in use, and readings by luck.

The mistakes of the lessons are in test_lesson_answers.py.
"""

import datetime as dt
import time
import timeit
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.benchmark import Timer

import gpulab
from gpulab import exercises

Work = Callable[[], object]


def timed(work: Work) -> float:
    """Time the work correctly: wait for the GPU before both readings of the clock."""
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start_s


def twice(work: Work) -> float:
    """Call the work twice in one interval."""
    return timed(lambda: (work(), work()))


def raises(work: Work) -> float:
    """Index the work's result, which is None."""
    return work()["time"]  # type: ignore[index]  # the mistake under test


def pair(work: Work) -> float:
    """Time the work with a pair of events around it."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


def pair_and_host(work: Work) -> float:
    """Record a pair of events, but return the host's time without waiting first."""
    start_s = time.perf_counter()
    pair(work)
    return time.perf_counter() - start_s


def by_date(work: Work) -> float:
    """Time with the date, which the virtual clock does not reach."""
    torch.cuda.synchronize()
    began = dt.datetime.now(tz=dt.UTC)
    work()
    torch.cuda.synchronize()
    return (dt.datetime.now(tz=dt.UTC) - began).total_seconds()


STOPWATCHES: list[tuple[Any, str]] = [
    (lambda work: timed(work) * 1e6, "microseconds"),
    (lambda work: -timed(work), "negative"),
    (lambda work: timed(work) * float("nan"), "unexplained"),
    (twice, "called-several-times"),
    (lambda work: twice(work) / 2, ""),
    (lambda work: timed(work) and None, "nothing-returned"),
    (lambda work: f"{timed(work)} s", "no-number"),
    (lambda work: [timed(work)], "no-number"),
    (lambda work: timed(work) > 0, "no-number"),
    (lambda _: 2e-3, "work-not-called"),
    (by_date, "other-clock"),
    (lambda work: by_date(work) and timed(work), ""),
    (lambda work: by_date(work) and 8 * timed(work), "unexplained"),
    (lambda work: (dt.datetime.now(tz=dt.UTC), -timed(work))[1], "negative"),
    (
        lambda work: time.time() - (work(), dt.datetime.now(tz=dt.UTC).timestamp())[1],
        "other-clock",
    ),
    (raises, "raised"),
]
READY_MADE: dict[str, Callable[[Work], float]] = {
    "gpulab.measure": lambda work: gpulab.measure(work, method="events").median_s,
    "torch.utils.benchmark.Timer": lambda work: (
        Timer("work()", globals={"work": work}).timeit(3).median
    ),
    "timeit": lambda work: timeit.timeit(work, torch.cuda.synchronize, number=1),
}


@pytest.mark.parametrize(
    ("exercise_id", "function", "code"),
    [
        *(("02.time-it-right", *case) for case in STOPWATCHES),
        ("03.event-time", pair_and_host, "unexplained"),
    ],
)
def test_each_timer_gets_its_verdict(exercise_id: str, function: object, code: str) -> None:
    """The right one passes on an idle and on a busy GPU; each wrong one is named."""
    verdict = exercises.check(exercise_id, function)
    assert (verdict.diagnosis_code, verdict.ok) == (code, code == "")


@pytest.mark.parametrize("name", READY_MADE)
def test_ready_made_timers_are_refused(name: str) -> None:
    """A ready-made timer is refused, because learners must write their own; it is named."""
    verdict = exercises.check("02.time-it-right", READY_MADE[name])
    assert (verdict.ok, verdict.diagnosis_code) == (False, "ready-made-timer")
    assert verdict.message.startswith(f"Your function lets {name} time the work. ")


def test_an_error_on_a_busy_gpu_is_named() -> None:
    """A timer may raise an error only with other work in the queue."""

    def on_an_idle_gpu(work: Work) -> float:
        if not torch.cuda.current_stream().query():
            raise RuntimeError("the GPU is busy")
        return timed(work)

    verdict = exercises.check("02.time-it-right", on_an_idle_gpu)
    assert verdict.message.startswith("Your function raised RuntimeError: the GPU is busy")


def test_an_unknown_mistake_is_described_by_its_numbers() -> None:
    """If no diagnosis fits, the message shows both readings as ratios."""
    message = exercises.check("02.time-it-right", lambda work: timed(work) * 4).message
    assert message == (
        "On an idle GPU your reading is 4 times what the work takes; with other work in the queue "
        "it is 4 times what the work takes. Both should be close to 1."
    )


@pytest.mark.parametrize("factors", [(4.0, 1.0), (1.0, 4.0)])
def test_both_readings_must_be_right(factors: tuple[float, float]) -> None:
    """A function that is right on an idle GPU only, or on a busy one only, is wrong."""
    left = [*factors, *factors]
    for exercise_id, timer in (("02.time-it-right", timed), ("03.event-time", pair)):
        verdict = exercises.check(exercise_id, lambda work, timer=timer: timer(work) * left.pop(0))
        assert verdict.diagnosis_code == "unexplained"
