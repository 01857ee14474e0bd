"""The judge for a function that captures and replays a CUDA graph, by the values of replays."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from gpulab import device
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


@dataclass(frozen=True, slots=True)
class GraphReplays:
    """The call that made a learner's graph, and its replays for the two later inputs.

    The first replay may capture the graph.
    """

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
        wanted = (_chain(_input(start).cpu()) for start in starts)
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
            first, *others = map(_input, _STARTS)
            _chain(first)  # loads the kernels, which a capture could not
            made = tried(function, WatchedWork(_chain), first)
            fault = first_fitting(_WITHOUT_REPLAY, made)
            if fault is not None:
                return fault
            replays = GraphReplays(made, tuple(tried(_replay, made.value, new) for new in others))
        faults = (first_fitting((_FAILING,), trial) for trial in replays.replayed)
        fault = next(filter(None, faults), None)
        return fault or first_fitting(_MISTAKES, replays) or self.why


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
