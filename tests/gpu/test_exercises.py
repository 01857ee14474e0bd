"""The judges that run answers on the GPU in use give the same verdicts on CUDA and without."""

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch

import gpulab
from gpulab import exercises
from gpulab.core.torch_private import spin
from gpulab.tracing.trials import WatchedWork, tried
from tests.exercises.test_answers_code import pair, timed
from tests.exercises.test_lesson_08 import buffered

pytestmark = pytest.mark.gpu

Function = Callable[[torch.Tensor], torch.Tensor]
Work = Callable[[], object]


def no_wait(work: Work) -> float:
    """Read the clock before and after the launch."""
    start_s = time.perf_counter()
    work()
    return time.perf_counter() - start_s


def no_wait_before(work: Work) -> float:
    """Start the clock while the queue still contains other work."""
    start_s = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start_s


def pair_before(work: Work) -> float:
    """Record both events before the work."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    end.record()
    work()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3


def graphed(function: Function, x: torch.Tensor) -> Function:
    """Capture once; the returned function copies the input, replays, and clones the result."""
    inner = torch.cuda.make_graphed_callables(function, (x,))  # type: ignore[no-untyped-call] # torch's
    return lambda new: inner(new).clone()


def captured(function: Function, x: torch.Tensor) -> Function:
    """Capture once, and ignore new inputs."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function(x)
    graph.replay()
    return lambda _: result


@pytest.fixture(params=["real", "virtual"])
def gpu(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test on the GPU of this machine, if there is one, and on the virtual H200."""
    if request.param == "real" and not torch.cuda.is_available():
        pytest.skip("no CUDA GPU: only the virtual one runs here")
    with nullcontext() if request.param == "real" else gpulab.virtual_gpu("H200"):
        yield request.param


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("exercise_id", "answer", "code"),
    [
        ("02.time-it-right", timed, ""),
        ("02.time-it-right", no_wait, "launch-only"),
        ("02.time-it-right", no_wait_before, "backlog-charged"),
        ("03.event-time", pair, ""),
        ("03.event-time", pair_before, "nothing-between"),
        ("03.event-time", timed, "host-clock"),
        ("07.graph-it", graphed, ""),
        ("07.graph-it", captured, "input-not-copied"),
        ("08.double-buffer", buffered(), ""),
        ("08.double-buffer", buffered(host=False, device=False), "both-races"),
        ("08.double-buffer", buffered(device_sync=True), "speed"),
    ],
)
def test_verdicts_are_the_same_on_cuda(
    exercise_id: str, answer: Callable[..., Any], code: str
) -> None:
    """Right answers pass, and typical mistakes get the diagnosis that the virtual GPU gives."""
    verdict = exercises.check(exercise_id, answer)
    assert (verdict.diagnosis_code, bool(verdict)) == (code, not code), verdict.message


def test_a_trial_says_what_it_could_record(gpu: str) -> None:
    """Calls and explicit waits are recorded everywhere; records need the virtual GPU."""

    def function(work: Callable[[], object]) -> float:
        work()
        torch.cuda.synchronize()
        return 2.0

    trial = tried(function, WatchedWork(lambda: spin(10_000)))
    assert (trial.value, trial.n_calls, trial.asked["synchronize"]) == (2.0, 1, 1)
    assert (trial.records is None) == (gpu == "real")
    side = torch.cuda.Stream()
    x = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()

    def unordered() -> object:
        with torch.cuda.stream(side):
            x.add_(1)
        return x.sum()

    races = tried(unordered, races=True).hazards
    assert [hazard.kind for hazard in races or ()] == ["read before the write is done"]
