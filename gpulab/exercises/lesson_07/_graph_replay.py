"""The judge for a function that captures and replays a CUDA graph, by the values of replays."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gpulab import device
from gpulab.exercises._exercise import is_open
from gpulab.exercises.answers import (
    STUB,
    Diagnosis,
    FunctionJudge,
    raising,
    returning_nothing,
)
from gpulab.tracing.trials import Rule, Trial, WatchedWork, first_fitting, tried

_N_ROUNDS = 4
# First number of the input at the capture, and of two later inputs. The results are small whole
# numbers, which float32 represents exactly, so they can be compared for equality.
# With only one later input, a copy after the replay would look like an input that is never copied.
_STARTS = (1, 100, 1_000)


def _chain(x: torch.Tensor) -> torch.Tensor:
    """Run several kernels: the function that the learner captures."""
    for _ in range(_N_ROUNDS):
        x = torch.relu(x * 2 - 3)
    return x


def _other(x: torch.Tensor) -> torch.Tensor:
    """Run the same kernels with other numbers: a second function for the learner to capture."""
    return torch.relu(x - 5) * 2


@dataclass(frozen=True, slots=True)
class GraphReplays:
    """The call that made a learner's graph, and its replays for the two later inputs.

    The graph is one of ``function``. The first replay may capture it.
    """

    function: Callable[[torch.Tensor], torch.Tensor]
    made: Trial
    replayed: tuple[Trial, ...]

    @property
    def captured(self) -> tuple[int, ...]:
        """The first numbers of the inputs that were captured, in order."""
        trials = zip(_STARTS, (self.made, *self.replayed), strict=True)
        return tuple(
            start for start, trial in trials if any(call.is_captured for call in trial.calls)
        )

    @property
    def results(self) -> tuple[object, ...]:
        """The returned values, on the host."""
        return tuple(trial.value for trial in self.replayed)

    def belong_to(self, *starts: int) -> bool:
        """Return whether the results belong to the inputs that begin with these numbers."""
        wanted = (self.function(_input(start).cpu()) for start in starts)
        pairs = zip(self.results, wanted, strict=True)
        return all(
            isinstance(got, torch.Tensor) and torch.equal(got, right) for got, right in pairs
        )

    @property
    def never_changes(self) -> bool:
        """Whether both results are equal."""
        first, second = self.results
        return torch.equal(first, second)  # type: ignore[arg-type]  # after the rule "no-tensor"


@dataclass(frozen=True, slots=True)
class GraphReplay(FunctionJudge):
    """A judge for a function ``f(function, x)`` that returns a function that replays a graph."""

    why: str
    how: str = (
        "Answer with the function: write def graphed(function, x). It captures "
        "function(x) and returns another function, which takes a new tensor of the same shape "
        "and returns the result by a replay."
    )

    def judge_function(self, function: Callable[..., object]) -> Diagnosis | str:
        """Capture the graph with one input, replay it with two others, and compare the values."""
        with device.active():
            # Kept as long as the graphs, which may read them: else a later input might get the
            # same memory, and a program that never copies its input would seem to be right.
            inputs = [_input(_STARTS[0]) for _ in range(2)]
            made = _made(function, _chain, inputs[0])
            fault = first_fitting(_WITHOUT_REPLAY, made) or _fault(_replays(_chain, made))
            if fault is not None:
                return fault
            # A program may have several graphs: the second one must be right, and the first one
            # must stay right.
            second = _made(function, _other, inputs[1])
            fault = first_fitting(_WITHOUT_SECOND, second) or _fault_of_second(
                _replays(_other, second)
            )
            if fault is not None:
                return fault
            kept = _replays(_chain, made)
        fault = _failing(kept)
        return fault or (self.why if kept.belong_to(*_STARTS[1:]) else _SHARED)


def _made(
    function: Callable[..., object], chain: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor
) -> Trial:
    """Return the call in which a learner's function makes a replaying function."""
    chain(x)  # loads the kernels, which a capture could not
    return tried(function, WatchedWork(chain), x)


def _replays(chain: Callable[[torch.Tensor], torch.Tensor], made: Trial) -> GraphReplays:
    """Replay a graph for the two later inputs."""
    replay: Any = made.value
    replayed = tuple(tried(_replay, replay, _input(start)) for start in _STARTS[1:])
    return GraphReplays(chain, made, replayed)


def _failing(replays: GraphReplays) -> Diagnosis | None:
    faults = (first_fitting((_FAILING,), trial) for trial in replays.replayed)
    return next(filter(None, faults), None)


def _fault(replays: GraphReplays) -> Diagnosis | None:
    return _failing(replays) or first_fitting(_MISTAKES, replays)


def _fault_of_second(replays: GraphReplays) -> Diagnosis | None:
    # If the second function never ran, what it returned is the first one's graph.
    if not any(trial.calls for trial in (replays.made, *replays.replayed)):
        return _SHARED
    fault = _fault(replays)
    return fault and Diagnosis(fault.code, f"{_SECOND}{fault.message}")


def _replay(replay: Callable[..., object], new: torch.Tensor) -> object:
    return _on_host(replay(new))


def _input(start: int) -> torch.Tensor:
    return torch.arange(start, start + 64, dtype=torch.float32).to("cuda")


def _on_host(result: object) -> object:
    return result.detach().cpu() if isinstance(result, torch.Tensor) else result


def _not_a_function(trial: Trial) -> Diagnosis:
    kind = "Tensor" if isinstance(trial.value, torch.Tensor) else type(trial.value).__name__
    return Diagnosis(
        "no-function",
        f"Your function returned a {kind}; it must return a function that takes "
        "a new input and replays the graph.",
    )


def _no_tensor(replays: GraphReplays) -> Diagnosis:
    value = next(result for result in replays.results if not isinstance(result, torch.Tensor))
    message = f"Your replaying function returned {value!r}; it must return a tensor."
    return Diagnosis("no-tensor", message)


_IN_CAPTURE = Diagnosis(
    "waits-in-capture",
    "The capture failed: something in it waits for the GPU or copies to the host. Put only "
    "function(x) into the with block, and copy and read outside it.",
)
# torch has no exception class for a failed capture; only the message mentions it.
_FAILING = raising((("captur", _IN_CAPTURE),))
_WITHOUT_REPLAY = (
    STUB,
    _FAILING,
    returning_nothing("function(x)"),
    (lambda trial: not callable(trial.value), _not_a_function),
)
_SECOND = "The first graph is right, and the second one, of another function, is not. "
_SHARED = Diagnosis(
    "shared-graph",
    "Your function was called again, for another function, and its two graphs do not work beside "
    "each other. Make a new graph, and tensors of its own, in each call of your function.",
)
_WITHOUT_SECOND = (
    # A capture that worked with the first function fails if both use the same graph.
    raising((("captur", _SHARED),)),
    (
        lambda trial: is_open(trial.value),
        Diagnosis(
            "nothing-returned",
            "Your function was called again, for another function, and returned nothing. Return a "
            "replaying function for each.",
        ),
    ),
    (lambda trial: not callable(trial.value), _not_a_function),
)
_CAPTURES_AGAIN = Diagnosis(
    "captures-again",
    "You capture a new graph in every call. That takes longer than launching the kernels. Capture "
    "once, and replay in the function that you return.",
)
_NO_GRAPH = Diagnosis(
    "no-graph",
    "The values may be right, but no graph is replayed: the function itself ran again, launch by "
    "launch. Call it once inside with torch.cuda.graph(...), and later only replay.",
)
_NOT_COPIED = Diagnosis(
    "input-not-copied",
    "Every result belongs to the input of the capture. The graph reads the memory of x: copy the "
    "new values there with x.copy_(new) before the replay. If you give the name x to another "
    "tensor, the graph does not notice.",
)
_COPIED_TOO_LATE = Diagnosis(
    "copied-too-late",
    "Each result belongs to the previous input. Copy into x before the replay, not after it.",
)
_NOT_REPLAYED = Diagnosis(
    "not-replayed",
    "The result never changes, and nothing has computed it: a capture only records. Call "
    "graph.replay() in the function that you return.",
)
_OTHER_VALUES = Diagnosis(
    "other-values",
    "The results belong neither to the new inputs nor to the captured one. Does the graph contain "
    "function(x) once and nothing else?",
)

_MISTAKES: tuple[Rule[GraphReplays, Diagnosis], ...] = (
    # A graph that the first replay captures is as good, if the second one only replays it.
    (
        lambda replays: any(call.is_captured for call in replays.replayed[-1].calls),
        _CAPTURES_AGAIN,
    ),
    (
        lambda replays: bool(replays.replayed[-1].calls) or not replays.captured,
        _NO_GRAPH,
    ),
    (
        lambda replays: not all(isinstance(result, torch.Tensor) for result in replays.results),
        _no_tensor,
    ),
    (
        lambda replays: replays.belong_to(replays.captured[0], replays.captured[0]),
        _NOT_COPIED,
    ),
    (lambda replays: replays.belong_to(_STARTS[0], _STARTS[1]), _COPIED_TOO_LATE),
    (lambda replays: replays.never_changes, _NOT_REPLAYED),
    (lambda replays: not replays.belong_to(*_STARTS[1:]), _OTHER_VALUES),
)
