"""The examples of docs/measuring-anything.md: each sets up some work and cleans up after it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch.nn import functional

from gpulab.device.work import Work

Example = Callable[[], AbstractContextManager[Work]]

_N = 1 << 22
_SIDE = 1024


@contextmanager
def cupy_default_stream() -> Iterator[Work]:
    """Use the default stream, as CuPy and torch both do unless told otherwise."""
    import cupy

    x = cupy.random.default_rng(0).standard_normal(_N, dtype=cupy.float32)
    y = cupy.empty_like(x)
    yield lambda: cupy.exp(x, out=y)


@contextmanager
def cupy_own_stream() -> Iterator[Work]:
    """Make a CuPy stream torch's current stream, so that events are recorded in it."""
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    x = cupy.random.default_rng(0).standard_normal(_N, dtype=cupy.float32)
    y = cupy.empty_like(x)
    cupy.cuda.Device().synchronize()
    # In both libraries: work and events must be on the same stream, and the new one waits for
    # nothing that was enqueued before; hence the wait above.
    with stream, torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
        yield lambda: cupy.exp(x, out=y)


@contextmanager
def cupy_torch_stream() -> Iterator[Work]:
    """Make a torch stream CuPy's current stream."""
    import cupy

    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call] # torch's is untyped
    x = cupy.random.default_rng(0).standard_normal(_N, dtype=cupy.float32)
    y = cupy.empty_like(x)
    cupy.cuda.Device().synchronize()
    with torch.cuda.stream(stream), cupy.cuda.ExternalStream(stream.cuda_stream):
        yield lambda: cupy.exp(x, out=y)


@contextmanager
def triton_kernel() -> Iterator[Work]:
    """Launch with Triton, which uses torch's current stream."""
    from benchmarks.anything.triton_kernel import doubled_and_added

    block = 1024
    x, y = torch.randn(2, _N, device="cuda")
    out = torch.empty_like(x)
    yield lambda: doubled_and_added[(_N // block,)](x, y, out, _N, BLOCK=block)


@contextmanager
def compiled_function() -> Iterator[Work]:
    """Compile a function; that happens in the warm-up of ``measure`` and is not timed."""
    x, y = torch.randn(2, _N, device="cuda")
    compiled = torch.compile(lambda x, y: functional.gelu(x) * y + x)
    yield lambda: compiled(x, y)


@contextmanager
def graph_replay() -> Iterator[Work]:
    """Replay a captured graph, which is work like any other."""
    x = torch.randn(_SIDE, _SIDE, device="cuda")
    (x @ x).softmax(-1)  # libraries are loaded before the capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (x @ x).softmax(-1)
    yield graph.replay


@contextmanager
def training_step() -> Iterator[Work]:
    """Run forward, backward and an optimizer step: many kernels, and no wait between them."""
    model = torch.nn.Sequential(
        torch.nn.Linear(_SIDE, 4 * _SIDE), torch.nn.GELU(), torch.nn.Linear(4 * _SIDE, _SIDE)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x, target = torch.randn(2, 256, _SIDE, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        functional.mse_loss(model(x), target).backward()
        optimizer.step()

    yield step


# By their name in the table, in the order of measuring.
EXAMPLES: dict[str, Example] = {
    "CuPy, default stream": cupy_default_stream,
    "CuPy, a stream of its own": cupy_own_stream,
    "CuPy, a stream of torch's": cupy_torch_stream,
    "a Triton kernel": triton_kernel,
    "a CUDA graph": graph_replay,
    "a training step": training_step,
    "a compiled function": compiled_function,
}
