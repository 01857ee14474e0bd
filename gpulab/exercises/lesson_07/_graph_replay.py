"""The judge for a function that captures and replays a CUDA graph, by the values of replays."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from gpulab import device
from gpulab.exercises._exercise import Verdict, is_open
from gpulab.exercises.answers import Diagnosis, no_function, raised, unanswered

_N_ROUNDS = 4
# First number of the input at the capture, and of two later inputs. The results are small whole
# numbers, which float32 represents exactly, so they can be compared for equality.
# With only one later input, a copy after the replay would look like an input that is never copied.
_STARTS = (1, 100, 1_000)


@dataclass(slots=True)
class _Chain:
    """The function that the learner captures: several kernels, and a record of each call."""

    was_capturing: list[bool] = field(default_factory=list)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Return the result, and record whether this call was captured."""
        self.was_capturing.append(torch.cuda.is_current_stream_capturing())
        return _chain(x)


def _chain(x: torch.Tensor) -> torch.Tensor:
    for _ in range(_N_ROUNDS):
        x = torch.relu(x * 2 - 3)
    return x


@dataclass(frozen=True, slots=True)
class _Replays:
    """The results of a learner's graph.

    Attributes
    ----------
    results
        The returned values for the two new inputs.
    was_capturing
        For each call of the function after the graph was made, whether it was captured.
    n_captured
        Number of captured calls of the function while the graph was made.
    """

    results: tuple[object, ...]
    was_capturing: tuple[bool, ...]
    n_captured: int


@dataclass(frozen=True, slots=True)
class GraphReplay:
    """A judge for a function ``f(function, x)`` that returns a function that replays a graph.

    Attributes
    ----------
    name
        Name of the function in the question.
    why
        The message for a right answer.
    """

    name: str
    why: str

    @property
    def how(self) -> str:
        """How to write the answer."""
        return (
            f"Answer with the function: write def {self.name}(function, x). It captures "
            "function(x) and returns another function, which takes a new tensor of the same shape "
            "and returns the result by a replay."
        )

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Capture the graph with one input, replay it with two others, and compare the values."""
        if not callable(answer):
            return no_function(answer, self.how)
        with device.active(), torch.cuda.stream(torch.cuda.current_stream()):
            # A failed capture may leave another stream current; this context restores it.
            found = _replay(answer)
            if found is None:
                return unanswered(self.how)
            diagnosis = found if isinstance(found, Diagnosis) else _explain(found)
        return diagnosis.verdict() if diagnosis else Verdict(ok=True, message=self.why)


def _replay(answer: Callable[..., object]) -> _Replays | Diagnosis | None:
    """Return the results of a learner's graph, a diagnosis, or None if the function is a stub."""
    chain, (first, *others) = _Chain(), (_input(start) for start in _STARTS)
    chain(first)  # loads the kernels, which a capture could not
    chain.was_capturing.clear()
    try:
        replay = answer(chain, first)
        n_captured = sum(chain.was_capturing)
        if is_open(replay):
            return None if not chain.was_capturing else _NOTHING_RETURNED
        if not callable(replay):
            return _not_a_function(replay)
        chain.was_capturing.clear()
        results = tuple(_on_host(replay(new)) for new in others)
        torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001  # a learner's function may raise anything
        # torch has no exception class for a failed capture; only the message mentions it.
        return _IN_CAPTURE if "captur" in str(error) else raised(error)
    return _Replays(results, tuple(chain.was_capturing), n_captured)


def _input(start: int) -> torch.Tensor:
    return torch.arange(start, start + 64, dtype=torch.float32).to("cuda")


def _on_host(result: object) -> object:
    return result.detach().cpu() if isinstance(result, torch.Tensor) else result


def _explain(replays: _Replays) -> Diagnosis | None:
    """Return the diagnosis of a graph that was not replayed or gave wrong results, or None."""
    if any(replays.was_capturing):
        return _CAPTURES_AGAIN
    if replays.was_capturing or not replays.n_captured:
        return _NO_GRAPH
    strange = [result for result in replays.results if not isinstance(result, torch.Tensor)]
    if strange:
        message = f"Your replaying function returned {strange[0]!r}; it must return a tensor."
        return Diagnosis("no-tensor", message)
    return _compared([result for result in replays.results if isinstance(result, torch.Tensor)])


def _compared(got: list[torch.Tensor]) -> Diagnosis | None:
    captured, *wanted = (_chain(_input(start).cpu()) for start in _STARTS)
    if all(map(torch.equal, got, wanted)):
        return None
    if all(torch.equal(result, captured) for result in got):
        return _NOT_COPIED
    if torch.equal(got[1], wanted[0]):
        return _COPIED_TOO_LATE
    return _NOT_REPLAYED if torch.equal(*got) else _OTHER_VALUES


def _not_a_function(replay: object) -> Diagnosis:
    kind = "Tensor" if isinstance(replay, torch.Tensor) else type(replay).__name__
    return Diagnosis(
        "no-function",
        f"Your function returned a {kind}; it must return a function that takes "
        "a new input and replays the graph.",
    )


_NOTHING_RETURNED = Diagnosis(
    "nothing-returned",
    "Your function called function(x) but returned nothing; end it with return.",
)
_IN_CAPTURE = Diagnosis(
    "waits-in-capture",
    "The capture failed: something in it waits for the GPU or copies to the host. Put only "
    "function(x) into the with block, and copy and read outside it.",
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
