"""The engine that tries functions records what they did, whatever they do, and costs no time."""

import cProfile
import random
import sys
import time
import timeit
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import torch

import gpulab
from gpulab.core.errors import CutOffError
from gpulab.core.torch_private import spin
from gpulab.tracing import trials
from gpulab.tracing.trials import Trial, WatchedWork, number_in, tried

pytestmark = pytest.mark.usefixtures("gpu")


Action = Callable[[Callable[[], object]], object]


def wait_for_event() -> None:
    """Record an event and wait for it."""
    event = torch.cuda.Event()
    event.record()
    event.synchronize()


# What a function may do, with what the trial must record for it.
ACTIONS: dict[str, tuple[Action, Counter[str]]] = {
    "call": (lambda work: work(), Counter(calls=1)),
    "launch": (lambda _: spin(1000), Counter(launches=1)),
    "wait for the device": (
        lambda _: torch.cuda.synchronize(),
        Counter(waits=1, synchronize=1),
    ),
    "wait for a stream": (
        lambda _: torch.cuda.current_stream().synchronize(),
        Counter({"waits": 1, "Stream.synchronize": 1}),
    ),
    "wait for an event": (lambda _: wait_for_event(), Counter(waits=1)),
    "read a value": (lambda _: torch.ones(1, device="cuda").item(), Counter(launches=2, waits=1)),
    "copy to the GPU": (lambda _: torch.ones(4).to("cuda"), Counter(launches=1, waits=1)),
    "order two streams": (
        lambda _: torch.cuda.Stream().wait_stream(torch.cuda.current_stream()),
        Counter({"Stream.wait_stream": 1}),
    ),
}


def program(names: list[str]) -> Callable[[Callable[[], object]], str]:
    """Return a function that does what the names say, one after another."""

    def function(work: Callable[[], object]) -> str:
        for name in names:
            ACTIONS[name][0](work)
        return "done"

    return function


def waiting_work() -> object:
    """Launch a kernel and wait for it, which is the work's own wait and not the function's."""
    spin(1000)
    torch.cuda.synchronize()
    return None


@pytest.mark.parametrize("seed", range(20))
def test_a_trial_records_what_a_random_function_does(seed: int) -> None:
    """Calls, launches and waits are those of the program; those inside the work are separate."""
    draw = random.Random(seed)
    names = draw.choices([*ACTIONS], k=draw.randint(0, 12))
    expected = sum((ACTIONS[name][1] for name in names), Counter[str]())
    trial = tried(program(names), WatchedWork(waiting_work))
    assert (trial.value, trial.error, trial.n_calls) == ("done", None, expected["calls"])
    assert trial.waits is not None
    assert trial.launched is not None
    assert len(trial.waits) == expected["waits"], names
    assert len(trial.launched) == expected["launches"], names
    assert trial.records is not None
    assert trial.records.n_records == expected["launches"] + expected["calls"]
    for asked in ("Stream.synchronize", "Stream.wait_stream"):
        assert trial.asked[asked] == expected[asked], names
    # The counter of functions does not know who asked; the work waits once in each call.
    assert trial.asked["synchronize"] == expected["synchronize"] + expected["calls"]


@pytest.mark.parametrize("seed", range(5))
def test_trying_a_function_costs_no_virtual_time(seed: int) -> None:
    """A function reads the same times whether it is called or tried."""
    draw = random.Random(seed)
    names = draw.choices([*ACTIONS], k=10)

    def timed(work: Callable[[], object]) -> float:
        start_s = time.perf_counter()
        program(names)(work)
        return time.perf_counter() - start_s

    readings_s = []
    for run in (
        lambda: timed(waiting_work),
        lambda: tried(timed, WatchedWork(waiting_work)).value,
        lambda: tried(timed, WatchedWork(waiting_work), races=True, clocks=True).value,
    ):
        with gpulab.device.outside(), gpulab.virtual_gpu("H200", first_use=False):
            readings_s.append(run())
    assert len({*readings_s}) == 1


def test_inputs_that_are_made_inside_must_be_waited_for() -> None:
    """A function races with the kernels that write its inputs, if these are made by ``make``."""

    def on_another_stream(x: torch.Tensor) -> object:
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            total = x.sum()
        side.synchronize()
        return total

    x = torch.zeros(8, device="cuda")
    given = tried(on_another_stream, x, races=True)
    made = tried(on_another_stream, make=lambda: (torch.zeros(8, device="cuda"),), races=True)
    assert given.hazards == ()
    assert [hazard.kind for hazard in made.hazards or ()] == ["read before the write is done"]
    assert made.launched is not None
    assert len(made.launched) == 1  # what makes the inputs is not the function's


def test_the_current_stream_is_restored() -> None:
    """A function may leave a stream of its own current; the next cell finds the one before."""
    side = torch.cuda.Stream()
    tried(lambda: torch.cuda.set_stream(torch.cuda.Stream()))
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    with torch.cuda.stream(side):
        tried(lambda: torch.cuda.set_stream(torch.cuda.default_stream()))
        assert torch.cuda.current_stream().cuda_stream == side.cuda_stream


def test_a_function_that_calls_its_work_for_ever_is_stopped() -> None:
    """After very many calls the work raises an error, so the trial ends."""

    def function(work: Callable[[], object]) -> None:
        while True:
            work()

    trial = tried(function, WatchedWork(lambda: None, most_calls=100))
    assert isinstance(trial.error, CutOffError)
    assert str(trial.error).startswith("it called the work 100 times and had not returned")


def test_calls_from_a_timer_a_thread_and_a_capture_are_marked() -> None:
    """The record of a call names the finished timer, and says whether it was captured."""
    x = torch.ones(8, device="cuda")
    work = WatchedWork(lambda: x + 1)

    def function(fn: Callable[[], object]) -> None:
        fn()
        timeit.timeit(fn, number=1)
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            fn()

    trial = tried(function, work)
    assert [(call.timer, call.is_captured) for call in trial.calls] == [
        ("", False),
        ("timeit", False),
        ("", True),
    ]
    assert trial.timer == "timeit"
    assert all(call.work is work for call in trial.calls)


def test_a_profiler_of_the_program_goes_on() -> None:
    """A function is tried under cProfile, which still counts calls afterwards."""
    with cProfile.Profile() as profiler:
        assert tried(lambda: 3, clocks=True).value == 3
        assert sys.getprofile() is profiler


def test_an_error_of_queued_work_is_the_functions_error() -> None:
    """A kernel that fails after the function has returned counts, and the GPU works again."""

    def out_of_range() -> object:
        return torch.zeros(4, device="cuda")[torch.tensor([9], device="cuda")]

    with gpulab.device.outside(), gpulab.virtual_gpu("H200", first_use=False):
        trial = tried(out_of_range)
    assert trial.error is not None
    assert trial.value is None
    assert tried(lambda: torch.ones(2, device="cuda").sum().item()).value == 2.0


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_whatever_is_raised_torch_is_restored(error: BaseException) -> None:
    """After an error the work is done and the replaced functions are the originals again."""
    before = [vars(owner).copy() for owner in (torch.cuda.Event, torch.cuda.Stream)]
    synchronize = torch.cuda.synchronize

    def function(work: Callable[[], object]) -> None:
        work()
        raise error

    if isinstance(error, Exception):
        assert tried(function, WatchedWork(lambda: spin(10**6))).error is error
    else:
        with pytest.raises(KeyboardInterrupt):
            tried(function, WatchedWork(lambda: spin(10**6)))
    assert torch.cuda.current_stream().query()
    assert [vars(owner).copy() for owner in (torch.cuda.Event, torch.cuda.Stream)] == before
    assert torch.cuda.synchronize is synchronize
    assert trials._running == []


@pytest.mark.parametrize(
    ("value", "number", "seconds"),
    [
        (2, 2.0, 2.0),
        (True, None, None),
        ("2 s", None, None),
        ((3.5, "spread"), None, 3.5),
        ((), None, None),
        (float("inf"), float("inf"), float("inf")),
        (torch.tensor(2.0), 2.0, 2.0),
        (np.float32(2), 2.0, 2.0),
        (Decimal(2), 2.0, 2.0),
        (np.array([3.5, 1980]), None, 3.5),
        ({"clock_mhz": 1980, "seconds": 3.5}, None, 3.5),
        ({"time": 3.5, "clock": 1980}, None, 3.5),
        ((3.5, 1980, "more"), None, None),
        ("35", None, None),
    ],
)
def test_numbers_are_read(value: Any, number: float | None, seconds: float | None) -> None:  # noqa: ANN401  # any answer
    """A number is a real number and no truth value; a time may be the first of any pair."""
    trial = Trial(value)
    assert (trial.number, trial.seconds, number_in(value)) == (number, seconds, number)
