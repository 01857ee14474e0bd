"""CUDA graphs on the virtual GPU capture, replay and fail as with CUDA."""

from collections.abc import Callable

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import gpulab
from gpulab.virtual import VirtualGpu

NOT_PERMITTED = "CUDA error: operation not permitted when stream is capturing"
FAILED = "CUDA error: operation failed due to a previous error during capture"
LEGACY = "CUDA error: operation would make the legacy stream depend on a capturing blocking stream"
NOT_ON_DEFAULT_STREAM = (
    "CUDA graphs must be captured on a non-default stream. "
    "(However, after capture, it's ok to replay them on the default stream.)"
)


def capture(work: Callable[[], object]) -> torch.cuda.CUDAGraph:
    """Capture a function's work as a graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


FORBIDDEN: dict[str, tuple[Callable[[torch.Tensor], object], str]] = {
    "item": (lambda x: x.sum().item(), NOT_PERMITTED),
    "nonzero": (lambda x: x.nonzero(), NOT_PERMITTED),
    "synchronize": (lambda _: torch.cuda.synchronize(), NOT_PERMITTED),
    "stream.synchronize": (lambda _: torch.cuda.current_stream().synchronize(), NOT_PERMITTED),
    "stream.query": (lambda _: torch.cuda.current_stream().query(), NOT_PERMITTED),
    "event.query": (
        lambda _: torch.cuda.current_stream().record_event().query(),
        "CUDA error: operation not permitted on an event last recorded in a capturing stream",
    ),
    "wait for what was not captured": (
        lambda x: torch.cuda.current_stream().wait_event(x.before),  # type: ignore[attr-defined] # set below
        "CUDA error: dependency created on uncaptured work in another stream",
    ),
    "a wait of the default stream": (
        lambda _: torch.cuda.default_stream().wait_stream(torch.cuda.current_stream()),
        LEGACY,
    ),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_forbidden_call_fails_the_capture_and_leaves_nothing_behind(
    gpu: VirtualGpu, name: str
) -> None:
    """A call that a capture forbids raises CUDA's error; then stream and device work as before."""
    work, message = FORBIDDEN[name]
    x = torch.ones(3, device="cuda")
    x.before = torch.cuda.current_stream().record_event()  # type: ignore[attr-defined] # as above
    stream = torch.cuda.current_stream()
    with pytest.raises(torch.AcceleratorError) as error:
        capture(lambda: work(x))
    assert str(error.value).splitlines()[0] == FAILED
    assert str(error.value.__context__).splitlines()[0] == message
    assert torch.cuda.current_stream() == stream
    assert gpu.machine.capture is None
    assert not torch.cuda.is_current_stream_capturing()
    assert (x + 1).tolist() == [2.0] * 3


@pytest.mark.usefixtures("gpu")
@pytest.mark.skipif(
    not hasattr(torch.autograd.graph, "set_override_stale_capture_stream"),
    reason="torch 2.13 introduced the switch",
)
def test_pytorchs_switch_lets_backward_leave_the_default_stream() -> None:
    """With PyTorch's switch a node of the default stream runs on the captured stream."""
    x = torch.ones(3, device="cuda", requires_grad=True)
    made = x * 2
    results: list[torch.Tensor] = []
    torch.autograd.graph.set_override_stale_capture_stream(enabled=True)
    try:
        graph = capture(lambda: results.extend(torch.autograd.grad(made.sum(), x)))
    finally:
        torch.autograd.graph.set_override_stale_capture_stream(enabled=False)
    graph.replay()
    assert results[0].tolist() == [2.0] * 3


def _on(stream: torch.cuda.Stream, work: Callable[[], object]) -> None:
    with torch.cuda.stream(stream):
        work()


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda: torch.cuda.CUDAGraph().capture_begin(),
            NOT_ON_DEFAULT_STREAM,
        ),
        (
            lambda: torch.cuda.CUDAGraph().replay(),
            "Called CUDAGraph::replay without a preceding successful capture.",
        ),
        (
            lambda: torch.cuda.CUDAGraph().pool(),
            "Called CUDAGraph::pool() without a preceding successful capture.",
        ),
    ],
)
def test_wrong_uses_of_a_graph_raise_in_pytorchs_words(
    use: Callable[[], object], message: str
) -> None:
    """A graph that is captured or replayed wrongly raises PyTorch's message."""
    with pytest.raises(RuntimeError) as error:
        use()
    assert str(error.value) == message


@pytest.mark.usefixtures("gpu")
def test_a_replay_writes_nothing_of_later_tensors() -> None:
    """After a capture its stream allocates outside of the graph's pool."""
    x, stream, graph = torch.ones(3, device="cuda"), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        doubled = (x + 1) * 2  # the sum has memory of the pool, which is free again
    with torch.cuda.stream(stream):
        later = torch.full((3,), 7.0, device="cuda")
        graph.replay()
        assert (later.tolist(), doubled.tolist()) == ([7.0] * 3, [4.0] * 3)


@pytest.mark.usefixtures("gpu")
def test_a_graph_is_captured_once() -> None:
    """A second capture into one graph raises PyTorch's message."""
    x = torch.ones(3, device="cuda")
    graph = capture(lambda: x.add_(1))
    with pytest.raises(RuntimeError) as error, torch.cuda.graph(graph):
        x.add_(1)
    assert str(error.value) == (
        "This CUDAGraph instance already owns a captured graph. "
        "To capture a new graph, create a new instance."
    )


def _checkpointed(x: torch.Tensor, *, use_reentrant: bool) -> list[torch.Tensor]:
    """Return a checkpoint's result, the random numbers after it, and its gradient."""
    x.grad = None
    result = checkpoint(
        lambda y: torch.nn.functional.dropout(y * 2), x, use_reentrant=use_reentrant
    )
    further = torch.rand(64, device="cuda")
    result.sum().backward()
    assert x.grad is not None
    return [result, further, x.grad]


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_replay_draws_the_same_numbers_as_the_work_without_a_graph(
    *, use_reentrant: bool
) -> None:
    """Replays of work with a checkpoint draw the same random numbers as without a graph."""
    with gpulab.virtual_gpu("H200", first_use=False):
        x = torch.ones(64, device="cuda", requires_grad=True)

        def work() -> list[torch.Tensor]:
            return _checkpointed(x, use_reentrant=use_reentrant)

        torch.cuda.manual_seed(3)
        plain = [[item.tolist() for item in work()] for _ in range(2)]
        end = torch.cuda.get_rng_state()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = work()
        torch.cuda.manual_seed(3)
        replayed = []
        for _ in range(2):
            graph.replay()
            replayed.append([item.tolist() for item in captured])
        assert replayed == plain
        assert torch.equal(torch.cuda.get_rng_state(), end)
        # The recomputed dropout must use the mask of the forward pass.
        assert [value != 0 for value in plain[0][0]] == [value != 0 for value in plain[0][2]]


def test_a_capture_leaves_the_generators_as_they_were() -> None:
    """After a capture, also a failed one, the generator's state is that of before."""
    with gpulab.virtual_gpu("H200", first_use=False):
        before = torch.cuda.get_rng_state()
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.rand(4, device="cuda")
            generator = torch.cuda.default_generators[0]
            assert generator.manual_seed(generator.initial_seed()) is generator
            assert not torch.equal(torch.cuda.get_rng_state(), before)
        assert torch.equal(torch.cuda.get_rng_state(), before)
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.rand(4, device="cuda")
            with pytest.raises(RuntimeError) as error:
                torch.cuda.manual_seed(99)
        assert str(error.value) == (
            "CUDAGeneratorImpl::set_current_seed can be called during stream capture only if new "
            "seed is the same as the original seed."
        )
        assert torch.equal(torch.cuda.get_rng_state(), before)


def test_an_error_of_the_program_ends_the_capture(gpu: VirtualGpu) -> None:
    """An error of the program ends the capture and is raised, with PyTorch's warning."""
    with (
        pytest.warns(UserWarning, match=r"^The CUDA Graph is empty\. This usually means that"),
        pytest.raises(ZeroDivisionError),
    ):
        capture(lambda: 1 / 0)
    assert gpu.machine.capture is None


def test_a_capture_that_is_left_open_ends_with_the_context() -> None:
    """The next context of the GPU, such as the next cell of a notebook, can launch and capture."""
    gpu = gpulab.virtual_gpu("H200", first_use=False)
    with gpu, torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.CUDAGraph().capture_begin()
    with gpu:
        x = torch.ones(3, device="cuda")
        capture(lambda: x.add_(1)).replay()
        assert x.tolist() == [2.0] * 3
