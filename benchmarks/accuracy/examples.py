"""The examples of docs/measuring-anything.md: each sets up some work and cleans up after it."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from benchmarks.common.environment import gpu_in_use, provenance
from benchmarks.common.markdown import print_or_write, source, table
from benchmarks.common.referee import READ, Referee
from benchmarks.common.tool import default_tool, described, judged
from gpulab.device.work import Work

Example = Callable[[], AbstractContextManager[Work]]

_HEAD = ("work", "kernels and copies", "`gpulab.measure`", "the driver's records")

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
    from benchmarks.accuracy.triton_kernel import doubled_and_added

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


def run(out: Path, write: Path | None, *, virtual: bool) -> None:
    """Measure every example on the GPU in use, and print the table or put it into a page."""
    with gpu_in_use(virtual=virtual):
        results: dict[str, Any] = {"provenance": provenance()}
        for example in EXAMPLES.values():
            results[example.__name__] = row = compared(example)
            print(f"{example.__name__}: {row}", flush=True)
            out.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print_or_write(as_markdown(results), write, "anything")


def compared(example: Example) -> dict[str, Any]:
    """Return the answer of ``gpulab.measure``, with the referee's readings before and after."""
    tool = default_tool()
    try:
        with example() as work:
            referee = Referee(work)
            before = referee.read(READ)
            start_s = time.perf_counter()
            answer = tool.ask(work)
            wall_s = time.perf_counter() - start_s
            after = referee.read(READ)
    except Exception as error:  # noqa: BLE001 # the other examples go on
        return {"error": described(error)}
    row = judged(tool, answer, before, after)
    return row | {"n_records": after.n_records, "wall_s": round(wall_s, 4)}


def as_markdown(results: dict[str, Any]) -> str:
    """Return the table of all examples, and where its figures come from."""
    rows = [
        _cells(title, results.get(example.__name__, {"error": "not run"}))
        for title, example in EXAMPLES.items()
    ]
    return "\n".join([*table(_HEAD, rows), "", source(results["provenance"])])


def _cells(title: str, row: dict[str, Any]) -> list[str]:
    if "error" in row:
        return [title, "", f"no answer: {row['error']}", ""]
    interval = f"[{row['low_us']:.2f}, {row['high_us']:.2f}]"
    return [
        title,
        str(row["n_records"]),
        f"{row['us']:.2f} µs {interval}",
        f"{row['referee_us']:.2f} µs",
    ]
