"""Programs that a CUDA graph can capture or not; an H100 was asked, the virtual GPU answers alike.

On hardware each ran in a process of its own: a failed capture may leave the device unusable.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

Program = Callable[[], torch.Tensor]


def _leaf() -> torch.Tensor:
    return torch.ones(3, device="cuda", requires_grad=True)


@contextlib.contextmanager
def _side_stream() -> Iterator[torch.cuda.Stream]:
    """Run the block on a side stream, as PyTorch's documentation does for a warm-up."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        yield side
    torch.cuda.current_stream().wait_stream(side)


def _grad(y: torch.Tensor, x: torch.Tensor, **options: bool) -> torch.Tensor:
    (gradient,) = torch.autograd.grad(y.sum(), x, **options)
    return gradient


def _captured(work: Program) -> torch.Tensor:
    """Capture ``work``, replay it, and return its result."""
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = work()
    graph.replay()
    torch.cuda.synchronize()
    return result


def forward_on_default() -> torch.Tensor:
    """Run the backward pass of a forward pass on the default stream."""
    x = _leaf()
    y = x * 2
    _grad(y, x, retain_graph=True)
    return _captured(lambda: _grad(y, x, retain_graph=True))


def forward_on_default_without_warm_up() -> torch.Tensor:
    """Run it with nothing before the capture."""
    x = _leaf()
    y = x * 2
    return _captured(lambda: _grad(y, x))


def accumulated_from_default() -> torch.Tensor:
    """Accumulate the gradient of a forward pass on the default stream."""
    x = _leaf()
    loss = (x * 2).sum()

    def work() -> torch.Tensor:
        loss.backward()
        return x

    return _captured(work)


def half_on_default() -> torch.Tensor:
    """Run a forward pass with one operator outside and one inside."""
    x = _leaf()
    y = x * 2
    return _captured(lambda: _grad(y * 3, x))


def forward_on_side_stream() -> torch.Tensor:
    """Run the backward pass of a forward pass on a side stream outside."""
    x = _leaf()
    with _side_stream():
        y = x * 2
    return _captured(lambda: _grad(y, x))


def warm_up_on_side_stream() -> torch.Tensor:
    """Warm up on a side stream, and capture both passes."""
    x = _leaf()
    with _side_stream():
        _grad(x * 2, x)
    return _captured(lambda: _grad(x * 2, x))


def warm_up_on_default() -> torch.Tensor:
    """Warm up on the default stream, and capture both passes."""
    x = _leaf()
    _grad(x * 2, x)
    return _captured(lambda: _grad(x * 2, x))


def _accumulated(x: torch.Tensor) -> torch.Tensor:
    x.grad = None
    loss = (x * 2).sum()
    loss.backward()
    return loss


def _gradient_of(x: torch.Tensor) -> torch.Tensor:
    _accumulated(x)
    if x.grad is None:
        raise RuntimeError("backward() has made no gradient")
    return x.grad


def accumulated_after_default() -> torch.Tensor:
    """Warm backward() up on the default stream, drop the loss, and capture it."""
    x = _leaf()
    _accumulated(x)
    return _captured(lambda: _gradient_of(x))


def loss_kept_from_default() -> torch.Tensor:
    """Warm backward() up on the default stream, and keep the loss."""
    x = _leaf()
    loss = _accumulated(x)
    return _captured(lambda: _gradient_of(x)) + 0 * loss.detach()


def forward_kept_from_default() -> torch.Tensor:
    """Keep a forward pass on the default stream that has not run backward."""
    x = _leaf()
    other = x * 3
    return _captured(lambda: _gradient_of(x)) + 0 * other.detach()


def loss_kept_from_side_stream() -> torch.Tensor:
    """Warm backward() up on a side stream, and keep the loss."""
    x = _leaf()
    with _side_stream():
        loss = _accumulated(x)
    return _captured(lambda: _gradient_of(x)) + 0 * loss.detach()


def gradient_made_on_default() -> torch.Tensor:
    """Add to a gradient that backward() made on the default stream."""
    x = _leaf()
    _accumulated(x)

    def work() -> torch.Tensor:
        (x * 2).sum().backward()
        return x

    _captured(work)
    return x


def training_step() -> torch.Tensor:
    """Capture a whole step after the warm-up that PyTorch's documentation shows."""
    model = torch.nn.Linear(3, 1).cuda()
    updates = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.ones(2, 3, device="cuda")

    def work() -> torch.Tensor:
        updates.zero_grad(set_to_none=True)
        loss: torch.Tensor = model(x).sum()
        loss.backward()
        updates.step()
        return loss

    with _side_stream():
        for _ in range(3):
            work()
    return _captured(work) * 0


def backward_after_capture() -> torch.Tensor:
    """Capture a forward pass, and run backward after the capture."""
    x = _leaf()
    y = _captured(lambda: x * 2)
    return _grad(y, x)


def backward_on_default_inside() -> torch.Tensor:
    """Call backward() on the default stream while another stream is captured."""
    x = _leaf()
    y = x * 2

    def work() -> torch.Tensor:
        inside = x.detach() + 1
        with torch.cuda.stream(torch.cuda.default_stream()):
            _grad(y, x)
        return inside

    return _captured(work)


def default_waits() -> torch.Tensor:
    """Let the default stream wait for the captured one."""
    x = torch.ones(3, device="cuda")

    def work() -> torch.Tensor:
        y = x * 2
        torch.cuda.default_stream().wait_stream(torch.cuda.current_stream())
        return y

    return _captured(work)


def default_works() -> torch.Tensor:
    """Launch a kernel on the default stream while another stream is captured."""
    x, other = torch.ones(3, device="cuda"), torch.ones(3, device="cuda")

    def work() -> torch.Tensor:
        y = x * 2
        with torch.cuda.stream(torch.cuda.default_stream()):
            other.add_(1)
        return y

    return _captured(work) + other


def waits_for_default() -> torch.Tensor:
    """Let the captured stream wait for work outside."""
    x = torch.ones(3, device="cuda")

    def work() -> torch.Tensor:
        torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
        return x * 2

    return _captured(work)


def joined() -> torch.Tensor:
    """Let a side stream join the capture, and wait for it."""
    x = torch.ones(3, device="cuda")
    side = torch.cuda.Stream()

    def work() -> torch.Tensor:
        main = torch.cuda.current_stream()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            y = x * 2
        main.wait_stream(side)
        return y

    return _captured(work)


def not_joined() -> torch.Tensor:
    """Let a side stream join the capture, and do not wait for it."""
    x = torch.ones(3, device="cuda")
    side = torch.cuda.Stream()

    def work() -> torch.Tensor:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            return x * 2

    return _captured(work)


def backward_on_joined_stream() -> torch.Tensor:
    """Run forward on a side stream that has joined, and backward on the captured one."""
    x = _leaf()
    side = torch.cuda.Stream()

    def work() -> torch.Tensor:
        main = torch.cuda.current_stream()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            y = x * 2
        main.wait_stream(side)
        return _grad(y, x)

    return _captured(work)


def graphed_callable() -> torch.Tensor:
    """Let PyTorch capture both passes of a module."""
    model = torch.nn.Linear(3, 1).cuda()
    x = torch.ones(2, 3, device="cuda", requires_grad=True)
    graphed: Any = torch.cuda.make_graphed_callables(model, (x,))
    return _grad(graphed(x), x) * 0


PROGRAMS: dict[str, Program] = {
    program.__name__: program
    for program in (
        forward_on_default,
        forward_on_default_without_warm_up,
        accumulated_from_default,
        half_on_default,
        forward_on_side_stream,
        warm_up_on_side_stream,
        warm_up_on_default,
        accumulated_after_default,
        loss_kept_from_default,
        forward_kept_from_default,
        loss_kept_from_side_stream,
        gradient_made_on_default,
        training_step,
        backward_after_capture,
        backward_on_default_inside,
        default_waits,
        default_works,
        waits_for_default,
        joined,
        not_joined,
        backward_on_joined_stream,
        graphed_callable,
    )
}


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and those that were being handled when it was raised, the first one last."""
    while error is not None:
        yield error
        error = error.__context__


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def answer_of(program: Program) -> dict[str, Any]:
    """Run a program; return its result, or its errors.

    The end of a capture raises an error of its own if the capture has failed.
    """
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = program()
            answer: dict[str, Any] = {"values": result.detach().flatten().tolist()}
            if result.is_leaf and result.grad is not None:
                answer["gradient"] = result.grad.tolist()
        except Exception as error:  # noqa: BLE001 # the error is the answer
            answer = {"errors": [_described(each) for each in _chain(error)]}
    return {**answer, "warnings": sorted({str(each.message).partition("\n")[0] for each in seen})}
