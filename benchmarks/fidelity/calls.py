"""Host times of calls that launch little or nothing: streams, events, memory and modules."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks.fidelity.bench import (
    Bench,
    host_us,
    median_us,
    new_stream,
    returns_us,
    spin,
    tiny,
)
from gpulab.device.work import Work
from gpulab.timing import new_event

Readings = Iterator[tuple[str, float | None]]

_MIB = 1 << 20


def allocation(bench: Bench) -> Readings:
    """Time allocating and freeing device memory, by size, with nothing cached."""
    # Sizes for each kind of block in PyTorch's caching allocator: blocks of 2 MiB serve tensors of
    # up to 1 MiB, blocks of 20 MiB those of less than 10 MiB, and larger ones get their own.
    for size_bytes in (512, _MIB, 4 * _MIB, 20 * _MIB, 64 * _MIB, 1024 * _MIB):
        times_s: dict[str, list[float]] = {"malloc": [], "cached": [], "free": []}
        for _ in range(min(bench.n_repetitions, 5)):
            torch.cuda.empty_cache()
            torch.cuda.synchronize()
            for name in ("malloc", "cached"):
                start_s = time.perf_counter()
                torch.empty(size_bytes, dtype=torch.uint8, device="cuda")
                times_s[name].append(time.perf_counter() - start_s)
            start_s = time.perf_counter()
            torch.cuda.empty_cache()
            times_s["free"].append(time.perf_counter() - start_s)
        for name, values_s in times_s.items():
            yield f"{name}_{size_bytes}_us", median_us(values_s)


def backward(bench: Bench) -> Readings:
    """Time backward passes through chains of nodes on a tiny tensor: the host time of a node."""
    steps: dict[str, Callable[[Any], Any]] = {
        "add": lambda y: y + 1.0,
        "mul": lambda y: y * 2.0,
        "square": lambda y: y * y,
    }
    for name, step in steps.items():
        totals_us = []
        for n_nodes in (10, 60):
            y = x = tiny().requires_grad_()
            for _ in range(n_nodes):
                y = step(y)
            gradient = torch.ones_like(y)

            def work(y: Any = y, x: Any = x, gradient: Any = gradient) -> None:  # noqa: ANN401 # as torch
                torch.autograd.grad(y, x, gradient, retain_graph=True)

            totals_us.append(returns_us(work, bench.n_repetitions))
        # The difference leaves out what a backward pass costs whatever its length.
        yield f"{name}_per_node_us", (totals_us[1] - totals_us[0]) / 50
        yield f"{name}_10_nodes_us", totals_us[0]


def host_calls(bench: Bench) -> Readings:
    """Time calls that launch little or nothing, enqueued back-to-back on an idle queue."""
    for name, work in _calls():
        try:
            work()
            yield f"{name}_us", host_us(bench, work)
        except Exception as error:  # noqa: BLE001 # whatever fails, the rest goes on
            print(f"{name}: {type(error).__name__}: {error}")
            yield f"{name}_us", None


def _calls() -> Iterator[tuple[str, Work]]:
    yield "empty_python_call", lambda: None
    yield "perf_counter", time.perf_counter
    yield from _event_calls()
    yield from _stream_calls()
    yield from _tensor_calls()
    yield from _module_calls()


def _event_calls() -> Iterator[tuple[str, Work]]:
    stream, event, other = torch.cuda.current_stream(), new_event(), new_event()
    event.record()
    torch.cuda.synchronize()
    other.record()
    torch.cuda.synchronize()
    yield "event_new", new_event
    yield "event_new_and_record", lambda: new_event().record()
    yield "event_record", event.record
    yield "event_record_on_stream", lambda: event.record(stream)
    yield "event_wait", event.wait
    yield "event_query_done", event.query
    yield "event_synchronize_done", event.synchronize
    yield "event_elapsed_time", lambda: event.elapsed_time(event)


def _stream_calls() -> Iterator[tuple[str, Work]]:
    stream, side, event = torch.cuda.current_stream(), new_stream(), new_event()
    event.record()

    def entered() -> None:
        with torch.cuda.stream(side):
            pass

    yield "stream_new", new_stream
    yield "current_stream", torch.cuda.current_stream
    yield "with_stream", entered
    yield "stream_wait_event", lambda: side.wait_event(event)
    yield "stream_wait_stream", lambda: side.wait_stream(stream)
    yield "stream_record_event", stream.record_event
    yield "stream_query_idle", stream.query
    yield "stream_synchronize_idle", stream.synchronize
    yield "synchronize_idle", torch.cuda.synchronize
    yield "current_device", torch.cuda.current_device
    yield "memory_allocated", torch.cuda.memory_allocated
    yield "manual_seed", lambda: torch.cuda.manual_seed(0)
    yield "spin", lambda: spin(100)


def _tensor_calls() -> Iterator[tuple[str, Work]]:
    x, matrix, number = tiny(), torch.zeros(32, 32, device="cuda"), torch.tensor(1.0)
    half, needed = x.half(), tiny().requires_grad_()
    on_device = number.to("cuda")
    pinned = torch.zeros(1024).pin_memory()
    yield "empty_small", lambda: torch.empty(1024, device="cuda")
    yield "empty_64MB_cached", lambda: torch.empty(16 * _MIB, device="cuda")
    yield "empty_like", lambda: torch.empty_like(x)
    yield "zeros_small", lambda: torch.zeros(1024, device="cuda")
    yield "view", lambda: x.view(32, 32)
    yield "slice", lambda: x[:10]
    yield "transpose", matrix.t
    yield "detach", x.detach
    yield "fill_", lambda: x.fill_(1.0)
    yield "add", lambda: x + x
    yield "add_number", lambda: x + 1.0
    yield "add_", lambda: x.add_(1.0)
    yield "add_with_grad", lambda: needed + 1.0
    yield "add_on_host", lambda: number + number
    yield "matmul_32", lambda: matrix @ matrix
    yield "sum", x.sum
    yield "to_same_type", lambda: x.to(torch.float32)
    yield "to_half", lambda: x.to(torch.float16)
    yield "half_to_float", half.float
    yield "item_idle", on_device.item
    yield "cpu_idle", x.cpu
    yield "number_to_device", lambda: number.to("cuda")
    yield "tensor_on_device", lambda: torch.tensor(1.0, device="cuda")
    yield "pinned_to_device", lambda: pinned.to("cuda", non_blocking=True)


def _module_calls() -> Iterator[tuple[str, Work]]:
    x = torch.zeros(32, 32, device="cuda")
    layer, identity = torch.nn.Linear(32, 32).cuda(), torch.nn.Identity()
    weight, bias = layer.weight.detach(), layer.bias.detach()
    parameters = [tiny().requires_grad_() for _ in range(20)]
    optimizer = torch.optim.SGD(parameters, 1e-3)

    def no_grad() -> None:
        with torch.no_grad():
            pass

    def autocast() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            pass

    yield "module_call", lambda: identity(x)
    yield "linear_function", lambda: torch.nn.functional.linear(x, weight, bias)
    yield "linear_module_with_grad", lambda: layer(x)
    yield "zero_grad_20", optimizer.zero_grad
    yield "no_grad", no_grad
    yield "autocast", autocast
