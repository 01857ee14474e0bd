"""Sleeps and graphs of learners run on the virtual GPU, and each mistake gets its diagnosis."""

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


def raises(work: Work) -> float:
    """Index the work's result, which is None."""
    seconds: float = work()["time"]  # type: ignore[index]  # the mistake under test
    return seconds


def stub(*_: object) -> None:
    """Do nothing, like the placeholder in the notebook."""


SLEEPS: list[tuple[Any, str]] = [
    (head_start, ""),
    (lambda work: int(head_start(work, margin=1.1)), ""),
    (lambda work: torch.tensor(head_start(work)).double().numpy()[()], ""),
    (lambda work: head_start(work, margin=0.5), "too-short"),
    (lambda work: head_start(work, n_samples=1), "one-sample"),
    (lambda work: -head_start(work), "one-sample"),
    (lambda work: head_start(work) / CYCLES_PER_S, "forgot-cycles"),
    (called(2_000_000), "only-light"),
    (lambda work: head_start(work, margin=25), "too-long"),
    (called(10**12), "too-long"),
    (lambda _: 20_000_000, "guess"),
    (called(None), "nothing-returned"),
    (called("2 ms"), "no-number"),
    (called(True), "no-number"),  # noqa: FBT003  # the wrong value itself
    (called(float("inf")), "no-number"),
    (raises, "raised"),
    (20_000_000, "not-a-choice"),
]


@pytest.mark.parametrize(("answer", "code"), SLEEPS)
def test_each_sleep_gets_its_verdict(answer: object, code: str) -> None:
    """A sleep that lets the host be ahead in every sample passes; each other is diagnosed."""
    expect(check(lesson.LONG_ENOUGH, answer), code)


@pytest.mark.parametrize("answer", [..., None, stub])
def test_placeholders_count_as_not_answered(answer: object) -> None:
    """For a placeholder or a stub, the verdict says how to answer."""
    for exercise in (lesson.LONG_ENOUGH, lesson.GRAPH_IT):
        verdict = check(exercise, answer)
        assert (verdict.ok, verdict.message) == (None, exercise.judge.how)


TOO_SHORT = (
    "The host was ahead in 28 of 40 samples. work() is not all: the host also needs time for two "
    "records and the loop. Time a whole batch on the host, and add a margin."
)
ONE_SAMPLE = (
    "The host was ahead in 2 of 40 samples. There is one sleep for all of them. It must last as "
    "long as the host needs for 40 samples."
)
ONLY_LIGHT = (
    "Your sleep is long enough for a work of one launch, but too short for one of 16: there the "
    "host was ahead in 25 of 40 samples. Measure the work that you are given."
)
TOO_LONG = (
    "Your sleep is 49 times as long as the host needs. The readings would be right, but you wait "
    "for every cycle. Twice the host's time is enough. (Cycles are seconds times cycles per "
    "second.)"
)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda work: head_start(work, margin=0.5), TOO_SHORT),
        (lambda work: head_start(work, n_samples=1), ONE_SAMPLE),
        (called(2_000_000), ONLY_LIGHT),
        (lambda work: head_start(work, margin=50), TOO_LONG),
        (
            called("2 ms"),
            "Your function returned '2 ms'; it must return a number of clock cycles.",
        ),
        (
            raises,
            (
                "Your function raised TypeError: 'NoneType' object is not subscriptable\n\n"
                "Call it yourself in a cell to see the line."
            ),
        ),
    ],
)
def test_sleeps_are_described_by_their_numbers(
    answer: Callable[..., object], message: str
) -> None:
    """The message says in how many samples the host was ahead, or how much too long it is."""
    assert check(lesson.LONG_ENOUGH, answer).message == message


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


def captures_again(function: Function, x: torch.Tensor) -> Function:
    """Make a new graph for each input."""
    return lambda new: captured(function, x.copy_(new))(new)


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


GRAPHS: list[tuple[Any, str]] = [
    (graphed, ""),
    (lambda function, x: (function(x), graphed(function, x))[1], ""),
    (changed(lambda result: result.cpu()), ""),
    (lambda function, x: graphed(function, x, late=True), "copied-too-late"),
    (captured, "input-not-copied"),
    (lambda function, x: captured(function, x, replayed=False), "not-replayed"),
    (changed(lambda result: result + 1), "other-values"),
    (captures_again, "captures-again"),
    (lambda function, _: function, "no-graph"),
    (calls_before, "no-graph"),
    (lambda function, x: (graphed(function, x), function)[1], "no-graph"),
    (stays_on_a_side_stream, ""),
    (lambda _, x: lambda new: x + new, "no-graph"),
    (waits_inside, "waits-in-capture"),
    (lambda function, x: graphed(function, x)(x), "no-function"),
    (lambda function, x: (captured(function, x), None)[1], "nothing-returned"),
    (changed(lambda result: result.tolist()), "no-tensor"),
    (lambda function, x: function(x).no_such_name, "raised"),
    (3, "not-a-choice"),
]


@pytest.mark.parametrize(("answer", "code"), GRAPHS)
def test_each_graph_gets_its_verdict(answer: object, code: str) -> None:
    """A graph that uses new inputs passes, others are diagnosed, and the stream is restored."""
    with gpulab.virtual_gpu("H200"):
        stream = torch.cuda.current_stream()
        expect(check(lesson.GRAPH_IT, answer), code)
        assert torch.cuda.current_stream() == stream
        assert not torch.cuda.is_current_stream_capturing()


A_TENSOR = (
    "Your function returned a Tensor; it must return a function that takes a new input and "
    "replays the graph."
)
A_NUMBER = A_TENSOR.replace("Tensor", "int")
RAISED = "Your function raised ZeroDivisionError: division by zero"
WHERE = "Call it yourself in a cell to see the line."


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda _, x: x, A_TENSOR),
        (lambda *_: 3, A_NUMBER),
        (changed(stub), "Your replaying function returned None; it must return a tensor."),
        (lambda *_: 1 / 0, f"{RAISED}\n\n{WHERE}"),
    ],
)
def test_strange_answers_about_a_graph_are_shown(
    answer: Callable[..., object], message: str
) -> None:
    """The message names the returned type or the error."""
    assert check(lesson.GRAPH_IT, answer).message == message
