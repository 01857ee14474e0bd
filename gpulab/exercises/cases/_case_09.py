"""Case 09: a CUDA graph whose replays all read the input of the capture."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from gpulab.core.units import format_time
from gpulab.exercises._claims import Claim
from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import (
    ANY_RACE,
    Choice,
    Diagnosis,
    HiddenWork,
    Mended,
    MendedTrial,
    like,
)
from gpulab.tracing.trials import Trial

_N_LAYERS = 10
_LEAST_GAIN = 2  # a loop without a graph takes several times as long as replays

RequestModel = Callable[[Any], Any]
Requests = Sequence[Any]


def small_model(n_layers: int = _N_LAYERS) -> RequestModel:
    """Return a model of many small kernels, called once so that its kernels are loaded."""
    import torch

    def model(x: Any) -> Any:  # noqa: ANN401  # tensors
        for _ in range(n_layers):
            x = torch.relu(x * 2 - 3)
        return x

    model(torch.ones(64, device="cuda"))
    torch.cuda.synchronize()
    return model


def requests(n_requests: int = 6) -> list[Any]:
    """Return inputs on the GPU, each with different numbers."""
    import torch

    return [torch.arange(k, k + 64.0, device="cuda") for k in range(3, 3 + n_requests)]


def _right(model: RequestModel, inputs: Requests) -> tuple[float, list[Any]]:
    import torch

    # A clone, because copying requests into the first one would overwrite it.
    static = inputs[0].clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = model(static)
    outputs = []
    torch.cuda.synchronize()
    start = time.perf_counter()
    for x in inputs:
        static.copy_(x)
        graph.replay()
        outputs.append(result.clone())
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / len(inputs), outputs


def _in_all(model: RequestModel, inputs: Requests) -> tuple[float, list[Any]]:
    """Return the time of all requests instead of one."""
    seconds, outputs = _right(model, inputs)
    return seconds * len(inputs), outputs


def _outputs(trial: MendedTrial) -> list[list[Any]]:
    """Return the outputs for each work as lists of numbers; None for one that is no tensor."""
    import torch

    return [
        [each.tolist() if isinstance(each, torch.Tensor) else None for each in outputs]
        if isinstance(outputs, list | tuple)
        else []
        for outputs in trial.part(1)
    ]


def _wanted(trial: MendedTrial) -> list[list[Any]]:
    return [[each.tolist() for each in value[1]] for value in trial.expected]  # type: ignore[index]  # pairs


def _all_are(trial: MendedTrial, number: int) -> bool:
    """Return whether every output is the right output of one request, that with ``number``."""
    pairs = zip(_outputs(trial), _wanted(trial), strict=True)
    return all(got == [wanted[number]] * len(wanted) for got, wanted in pairs)


def _one_behind(trial: MendedTrial) -> bool:
    pairs = zip(_outputs(trial), _wanted(trial), strict=True)
    return all(got[1:] == wanted[:-1] for got, wanted in pairs)


def _replays(trial: Trial) -> bool:
    """Return whether a program replayed a graph at least once for each request."""
    calls = trial.records.calls if trial.records else ()
    n_replays = sum(call.name == "cudaGraphLaunch" for call in calls)
    outputs = trial.value[1] if isinstance(trial.value, tuple | list) else ()
    return n_replays >= len(outputs)


EXERCISES = (
    Exercise(
        "case-09.flaw",
        "Why are all answers the same?",
        Choice(
            right="d",
            why="The graph stores addresses, not names. It reads the memory of the first "
            "request and writes to the memory of y, whatever tensor x names in Python.",
            wrong={
                "a": Diagnosis(
                    "it-does-compute",
                    "The replay runs all kernels: see the timeline. On which numbers?",
                ),
                "b": Diagnosis(
                    "it-waits",
                    "There is a synchronize after the loop, and the answers are read after that. "
                    "Every kernel is done.",
                ),
                "c": Diagnosis(
                    "model-is-right",
                    "Without a graph the same model gives six different answers, as you saw.",
                ),
            },
        ),
        hints=(
            "What does for x in requests: do to the tensor that the graph reads?",
            "Print x.data_ptr() in the loop, and compare it with that of the capture.",
        ),
        choices={
            "a": "replay does not compute, it only repeats the stored result",
            "b": "the answers are read before the GPU is done",
            "c": "the model gives the same answer for every request",
            "d": "the graph reads the memory of the first request each time",
        },
    ),
    Exercise(
        "case-09.mend",
        "Mend the program: write mended(model, requests). Every request must get its own answer, "
        "by a replay. It is tried with another model and other requests.",
        Mended(
            signature="mended(model, requests)",
            returns="a pair: seconds for each request, and the list of answers",
            why="Every request has its own answer, by a replay, and it takes far less than "
            "without a graph.",
            works=(
                HiddenWork("3 requests", lambda: (small_model(), requests(3))),
                HiddenWork(
                    "12 requests to a deeper model", lambda: (small_model(16), requests(12))
                ),
            ),
            right=_right,
            mistakes=(
                (
                    lambda trial: _all_are(trial, 0),
                    Diagnosis(
                        "stale-input",
                        "All answers belong to the first request. Copy each request into the "
                        "tensor of the capture, with copy_, before the replay.",
                    ),
                ),
                (
                    lambda trial: _all_are(trial, -1),
                    Diagnosis(
                        "aliased-output",
                        "All answers are those of the last request: the list contains the same "
                        "tensor each time. Append a clone of it.",
                    ),
                ),
                (
                    _one_behind,
                    Diagnosis(
                        "one-behind",
                        "Each answer belongs to the request before. Copy the request before the "
                        "replay.",
                    ),
                ),
                (
                    like(_in_all),
                    Diagnosis("not-divided", "Divide the time by the number of requests."),
                ),
                (
                    lambda trial: (
                        trial.part_is_right(1)
                        and trial.is_slower_in(0, _LEAST_GAIN)
                        and not trial.is_in_unit(1e3)
                    ),
                    Diagnosis(
                        "slow",
                        "The answers are right, but the time is too long. Capture once, before "
                        "the clock starts, and replay in the loop. And wait once at the end, not "
                        "for each request.",
                    ),
                ),
            ),
            hidden_mistakes=(
                (
                    lambda trial: trial.part_is_right(1) and not all(map(_replays, trial.trials)),
                    Diagnosis(
                        "no-graph",
                        "The answers are right, but there is not one replay for each request. "
                        "Capture once, before the clock starts, and replay in the loop.",
                    ),
                ),
                ANY_RACE,
            ),
            show=lambda value: f"{format_time(value[0])} for each of {len(value[1])} requests",
            # The answers decide here. The time must only show that there is a graph: a loop
            # without one takes more than six times as long.
            tolerance=0.4,
        ),
        hints=(
            "static = requests[0].clone() before the capture, static.copy_(x) in the loop.",
            "The graph writes to the same output each time. Keep a clone of it.",
        ),
    ),
)

CLAIMS = (
    Claim(
        "case-09.wrong-answers",
        "The posted program gives wrong answers",
        unit="wrong answers",
        holds=lambda n_wrong: n_wrong > 0,
        because="all requests may be the same",
    ),
)
