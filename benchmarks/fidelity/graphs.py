"""Time capturing, uploading and replaying CUDA graphs."""

import time

import torch

from benchmarks.common.device_records import busy_us
from benchmarks.common.wall_time import wall_s
from benchmarks.fidelity.bench import (
    MOST_PENDING,
    Bench,
    event_us,
    host_us,
    returns_us,
    tiny,
)
from benchmarks.fidelity.calls import Readings
from gpulab.device.work import Work

# Powers of ten, so that the fixed cost of a replay and the cost of a node can be told apart.
_NODE_COUNTS = (1, 10, 100, 1000)


def graphs(bench: Bench) -> Readings:
    """Time capturing and replaying graphs of tiny kernels, on the host and with events.

    The time of a capture includes emptying PyTorch's cache of memory.
    """
    for n_nodes in _NODE_COUNTS:
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        replay = _graph(n_nodes)
        yield f"{n_nodes}_capture_us", (time.perf_counter() - start_s) * 1e6
        yield f"{n_nodes}_first_replay_us", wall_s(replay) * 1e6  # it uploads the graph
        replay()
        yield f"{n_nodes}_replay_returns_us", returns_us(replay, bench.n_repetitions)
        n = min(bench.n_repetitions, MOST_PENDING // n_nodes or 1)
        yield f"{n_nodes}_replay_back_to_back_us", host_us(bench, replay, n)
        yield f"{n_nodes}_event_us", event_us(replay, n, n_nodes * 2e-6)


def graphs_on_device(bench: Bench) -> Readings:
    """Time replays of graphs of tiny kernels by the driver's records."""
    for n_nodes in _NODE_COUNTS:
        replay = _graph(n_nodes)
        for _ in range(2):
            replay()
        found = bench.records(replay)
        yield f"{n_nodes}_kernels", len(found)
        yield f"{n_nodes}_busy_us", busy_us(found)
        yield f"{n_nodes}_span_us", (found[-1].end_ns - found[0].start_ns) / 1e3


def _graph(n_nodes: int) -> Work:
    """Return the replay of a graph of tiny kernels."""
    x = tiny()
    x.add_(1.0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(n_nodes):
            x.add_(1.0)

    def replay(_kept: torch.Tensor = x) -> None:
        graph.replay()

    return replay
