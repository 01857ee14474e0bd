"""Probes of CUDA graphs: capture, replay, pools, training steps, random numbers."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from tests.probes.table import Gives, Probe, Raises


def _captured() -> list[object]:
    x = torch.zeros(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2 + 1
    x.fill_(5)
    graph.replay()
    first = y.tolist()
    x.fill_(7)
    graph.replay()
    return [first, y.tolist()]


def _by_hand() -> list[object]:
    x, side, graph = torch.ones(2, device="cuda"), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        graph.capture_begin()
        during = torch.cuda.is_current_stream_capturing()
        y = x + 1
        graph.capture_end()
    graph.replay()
    torch.cuda.synchronize()
    return [during, torch.cuda.is_current_stream_capturing(), y.tolist()]


def _nothing_runs_in_capture() -> list[object]:
    x = torch.zeros(2, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x += 1
    before = x.tolist()
    graph.replay()
    graph.replay()
    return [before, x.tolist()]


def _side_stream_inside() -> list[object]:
    x, side, graph = torch.ones(2, device="cuda"), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x * 3
        torch.cuda.current_stream().wait_stream(side)
        z = y + x
    graph.replay()
    return z.tolist()


def _training_step() -> list[bool]:
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    x, target = torch.randn(16, 4, device="cuda"), torch.ones(16, 1, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            nn.functional.mse_loss(net(x), target).backward()
            optimizer.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = nn.functional.mse_loss(net(x), target)
        loss.backward()
        optimizer.step()
    losses = []
    for _ in range(20):
        graph.replay()
        losses.append(loss.item())
    return [losses[-1] < losses[0], len(set(losses)) == 20]


def _capturable_adam() -> list[bool]:
    weight = nn.Parameter(torch.ones(4, device="cuda"))
    optimizer = torch.optim.Adam([weight], lr=0.1, capturable=True)
    weight.grad = torch.ones_like(weight)
    optimizer.step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        optimizer.step()
    before = weight.tolist()
    graph.replay()
    graph.replay()
    return [before != weight.tolist(), optimizer.state[weight]["step"].item() == 3]


def _graphed_callables() -> list[bool]:
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh()).cuda()
    sample = torch.randn(3, 4, device="cuda", requires_grad=True)
    expected = net(sample).detach().clone()
    graphed = torch.cuda.make_graphed_callables(net, (sample,))
    x = sample.detach().clone().requires_grad_()
    out = graphed(x)
    out.sum().backward()
    return [torch.allclose(out, expected), x.grad is not None]


def _random_numbers() -> list[bool]:
    torch.cuda.manual_seed(4)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x = torch.rand(4, device="cuda")
    graph.replay()
    first = x.tolist()
    graph.replay()
    second = x.tolist()
    torch.cuda.manual_seed(4)
    graph.replay()
    return [first != second, x.tolist() == first]


def _registered_generator() -> bool:
    generator = torch.Generator(device="cuda").manual_seed(1)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        x = torch.rand(4, device="cuda", generator=generator)
    graph.replay()
    first = x.tolist()
    graph.replay()
    return first != x.tolist()


def _shared_pool() -> list[object]:
    x, one, other = torch.ones(4, device="cuda"), torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(one):
        y = x + 1
    with torch.cuda.graph(other, pool=one.pool()):
        z = y * 2
    one.replay()
    other.replay()
    handle = torch.cuda.graph_pool_handle()
    return [z.tolist(), one.pool() == other.pool(), handle == one.pool(), len(handle)]


def _memory_is_kept() -> list[bool]:
    x = torch.ones(1 << 18, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
    address = y.data_ptr()
    others = [torch.ones(1 << 18, device="cuda") for _ in range(4)]
    graph.replay()
    torch.cuda.synchronize()
    return [y.data_ptr() == address, address not in {t.data_ptr() for t in others}]


def _events_around_a_replay() -> bool:
    x, graph = torch.ones(1 << 16, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(20):
            x = x + 1
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return 0.005 < start.elapsed_time(end) < 1


@contextmanager
def _ended_afterwards() -> Iterator[tuple[int, int]]:
    """Yield a memory pool for a capture that fails, and clean up after the failure.

    PyTorch itself stays in the state of a capture: its allocator fills the pool, the capture's
    stream is current, and random numbers are refused until another capture succeeds.
    """
    before, pool = torch.cuda.current_stream(), torch.cuda.graph_pool_handle()
    try:
        yield pool
    finally:
        if torch.cuda.current_stream() != before:
            torch.cuda.set_stream(before)
            torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), pool)
            torch._C._cuda_releasePool(torch.cuda.current_device(), pool)
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                torch.ones(1, device="cuda")


def _in_capture(work: object) -> object:
    def run() -> object:
        x = torch.ones(4, device="cuda")
        with _ended_afterwards() as pool, torch.cuda.graph(torch.cuda.CUDAGraph(), pool=pool):
            return work(x)

    return run


def _works_after_a_failed_capture() -> list[object]:
    x = torch.ones(2, device="cuda")
    with _ended_afterwards() as pool:
        try:
            with torch.cuda.graph(torch.cuda.CUDAGraph(), pool=pool):
                x.sum().item()
        except RuntimeError:
            pass
        torch.cuda.synchronize()
        return [torch.cuda.is_current_stream_capturing(), (x + 1).tolist()]


def _reset() -> list[object]:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.ones(4, device="cuda")
    graph.reset()
    with torch.cuda.graph(graph):
        x = torch.full((2,), 3.0, device="cuda")
    graph.replay()
    return x.tolist()


FAMILIES: dict[str, list[Probe]] = {
    "graphs": [
        Gives("torch.cuda.graph and replay", _captured, [[11.0] * 4, [15.0] * 4]),
        Gives("capture_begin and capture_end", _by_hand, [True, False, [2.0, 2.0]]),
        Gives("nothing runs during capture", _nothing_runs_in_capture, [[0.0] * 2, [2.0] * 2]),
        Gives("a side stream inside", _side_stream_inside, [4.0, 4.0]),
        Gives("a training step", _training_step, [True, True]),
        Gives("Adam, capturable", _capturable_adam, [True, True]),
        Gives("make_graphed_callables", _graphed_callables, [True, True]),
        Gives("random numbers", _random_numbers, [True, True]),
        Gives("a registered generator", _registered_generator),
        Gives("a shared pool", _shared_pool, [[4.0] * 4, True, False, 2]),
        Gives("memory stays with the graph", _memory_is_kept, [True, True]),
        Gives("events around a replay", _events_around_a_replay),
        Gives("reset", _reset, [3.0, 3.0]),
        Gives("after a failed capture", _works_after_a_failed_capture, [False, [2.0, 2.0]]),
        Raises(
            "reading a value during capture",
            _in_capture(lambda x: x.sum().item()),
            RuntimeError,
            r"CUDA error: operation not permitted when stream is capturing.*"
            r"|CUDA error: operation failed due to a previous error during capture.*",
        ),
        Raises(
            "waiting for the device during capture",
            _in_capture(lambda _x: torch.cuda.synchronize()),
            RuntimeError,
            r"CUDA error: operation not permitted when stream is capturing.*"
            r"|CUDA error: operation failed due to a previous error during capture.*",
        ),
        Raises(
            "replay before capture",
            lambda: torch.cuda.CUDAGraph().replay(),
            RuntimeError,
            r"Called CUDAGraph::replay without a preceding successful capture\..*",
        ),
    ]
}
