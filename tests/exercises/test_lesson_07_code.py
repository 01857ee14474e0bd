"""How sleeps and graphs of learners are tried; most mistakes are in test_function_answers.py."""

import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import torch

import gpulab
from gpulab.exercises._exercise import Exercise, Verdict
from gpulab.exercises.lesson_07 import _exercises as lesson
from gpulab.exercises.lesson_07 import _host_lead

Work = Callable[[], object]
Function = Callable[[torch.Tensor], torch.Tensor]

CYCLES_PER_S = 1.98e9  # of the virtual H200


def check(exercise: Exercise, answer: object) -> Verdict:
    """Judge an answer as ``exercises.check`` does."""
    return exercise.judge(answer, None)


def expect(verdict: Verdict, code: str) -> None:
    """Require a diagnosis, or a right answer if the code is empty."""
    assert (verdict.diagnosis_code, verdict.ok) == (code, code == ""), verdict.message


# The sleep


def head_start(work: Work, *, n_samples: int = 40, margin: float = 2.0) -> float:
    """Time a batch of samples on the host, and return the time with a margin in cycles."""
    torch.cuda.synchronize()
    start, end = torch.cuda.Event(), torch.cuda.Event()
    begin_s = time.perf_counter()
    for _ in range(n_samples):
        start.record()
        work()
        end.record()
    host_s = time.perf_counter() - begin_s
    torch.cuda.synchronize()
    return margin * host_s * CYCLES_PER_S


def called(value: object) -> Callable[[Work], object]:
    """Return an answer that calls the work and then returns a value."""
    return lambda work: (work(), value)[1]


SLEEPS: list[tuple[Any, str, str]] = [
    (lambda work: int(head_start(work, margin=1.1)), "", ""),
    (lambda work: head_start(work, margin=0.5), "too-short", "ahead in 28 of 40 samples"),
    (lambda work: head_start(work, n_samples=1), "one-sample", "ahead in 2 of 40 samples"),
    (lambda work: -head_start(work), "one-sample", ""),
    (called(2_000_000), "only-light", "for one of 16: there the host was ahead in 25 of 40"),
    (lambda work: head_start(work, margin=50), "too-long", "is 49 times as long as the host"),
    (called(None), "nothing-returned", ""),
    (called("2 ms"), "no-number", "returned '2 ms'; it must return a number of clock cycles."),
    (called(True), "no-number", ""),  # noqa: FBT003  # the wrong value itself
    (called(float("inf")), "no-number", ""),
]


@pytest.mark.parametrize(("answer", "code", "part"), SLEEPS)
def test_each_sleep_gets_its_verdict(answer: object, code: str, part: str) -> None:
    """A sleep that lets the host be ahead in every sample passes; each other is diagnosed."""
    verdict = check(lesson.LONG_ENOUGH, answer)
    expect(verdict, code)
    assert part in verdict.message


def test_a_host_that_was_delayed_once_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge tries a sleep three times, and the best try counts."""
    found, real = count(), _host_lead._lead
    # Calls 0 and 4 are the judge's own look at each work; after each come its tries, of which
    # the first two are delayed here.
    delayed = (1, 2, 5, 6)

    def lead(work: Work, n_cycles: int) -> tuple[int, float]:
        n_ahead, host_s = real(work, n_cycles)
        return (7 if next(found) in delayed else n_ahead), host_s

    monkeypatch.setattr(_host_lead, "_lead", lead)
    expect(check(lesson.LONG_ENOUGH, head_start), "")


def test_a_sleep_far_too_long_is_diagnosed_without_running_it() -> None:
    """The verdict on a sleep of eight minutes takes less than a second of the GPU's time."""
    with gpulab.virtual_gpu("H200") as entered:
        before_s = entered.now_s
        expect(check(lesson.LONG_ENOUGH, called(10**12)), "too-long")
        assert entered.now_s - before_s < 1


# The graph


def graphed(function: Function, x: torch.Tensor, *, late: bool = False) -> Function:
    """Capture once; the returned function copies the input, replays, and clones the result."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function(x)

    def replay(new: torch.Tensor) -> torch.Tensor:
        if not late:
            x.copy_(new)
        graph.replay()
        copied = result.clone()
        x.copy_(new)
        return copied

    return replay


def captured(function: Function, x: torch.Tensor, *, replayed: bool = True) -> Function:
    """Capture once, and ignore new inputs."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function(x)
    if replayed:
        graph.replay()
    return lambda _: result


def waits_inside(function: Function, x: torch.Tensor) -> Function:
    """Copy to the host inside the capture."""
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        values = function(x).cpu()
    return lambda _: values


def calls_before(function: Function, x: torch.Tensor) -> Function:
    """Call the function once, without a graph."""
    first = function(x)
    return lambda new: first + new


def stays_on_a_side_stream(function: Function, x: torch.Tensor) -> Function:
    """Leave a side stream current, as a failed capture does on a real GPU."""
    torch.cuda.set_stream(torch.cuda.Stream())
    return graphed(function, x)


def changed(change: Callable[[torch.Tensor], object]) -> Callable[..., object]:
    """Return an answer that changes the result of a right graph."""

    def answer(function: Function, x: torch.Tensor) -> Callable[[torch.Tensor], object]:
        replay = graphed(function, x)
        return lambda new: change(replay(new))

    return answer


GRAPHS: list[tuple[Any, str, str]] = [
    (changed(lambda result: result.cpu()), "", ""),
    (lambda function, x: graphed(function, x, late=True), "copied-too-late", ""),
    (lambda function, x: captured(function, x, replayed=False), "not-replayed", ""),
    (changed(lambda result: result + 1), "other-values", ""),
    (calls_before, "no-graph", ""),
    (lambda function, x: (graphed(function, x), function)[1], "no-graph", ""),
    (stays_on_a_side_stream, "", ""),
    (lambda _, x: lambda new: x + new, "no-graph", ""),
    (waits_inside, "waits-in-capture", ""),
    (lambda _, x: x, "no-function", "returned a Tensor; it must return a function"),
    (lambda *_: 3, "no-function", "returned a int; it must return a function"),
    (lambda function, x: (captured(function, x), None)[1], "nothing-returned", ""),
    (changed(lambda _: None), "no-tensor", "replaying function returned None; it must return"),
    (lambda function, x: function(x).no_such_name, "raised", ""),
]


@pytest.mark.parametrize(("answer", "code", "part"), GRAPHS)
def test_each_graph_gets_its_verdict(answer: object, code: str, part: str) -> None:
    """A graph that uses new inputs passes, others are diagnosed, and the stream is restored."""
    with gpulab.virtual_gpu("H200"):
        stream = torch.cuda.current_stream()
        verdict = check(lesson.GRAPH_IT, answer)
        expect(verdict, code)
        assert torch.cuda.current_stream() == stream
        assert not torch.cuda.is_current_stream_capturing()
    assert part in verdict.message
