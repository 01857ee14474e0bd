"""Whatever runs on the current stream can be measured: CuPy, Triton, compiled, captured, trained.

``python benchmarks/anything.py`` measures each example of ``docs/measuring-anything.md`` and reads
the driver's records before and after; ``--virtual`` tries those that run on the virtual GPU.
``--write docs/measuring-anything.md`` puts the results of the last run into the page.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from benchmarks.accuracy.report import put_between_markers, source
from benchmarks.accuracy.run import described, judged
from benchmarks.accuracy.tools import own_tools
from benchmarks.common.environment import gpu_in_use, provenance
from benchmarks.common.referee import READ, Referee

Work = Callable[[], object]

RESULTS = Path(__file__).parents[1] / "results" / "accuracy-anything-h200.json"

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
    """Make a stream of CuPy's torch's current one, so that the events go to it."""
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    x = cupy.random.default_rng(0).standard_normal(_N, dtype=cupy.float32)
    y = cupy.empty_like(x)
    cupy.cuda.Device().synchronize()
    with stream, torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
        yield lambda: cupy.exp(x, out=y)


@contextmanager
def cupy_torch_stream() -> Iterator[Work]:
    """Make a stream of torch's CuPy's current one."""
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
    """Compile, which happens in the warm-up of ``measure`` and is not timed."""
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
    """Go forward, backward and one step of the optimizer: many kernels, no wait among them."""
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


EXAMPLES: tuple[Callable[[], Any], ...] = (
    cupy_default_stream,
    cupy_own_stream,
    cupy_torch_stream,
    triton_kernel,
    graph_replay,
    training_step,
    compiled_function,
)


def compared(example: Callable[[], Any]) -> dict[str, Any]:
    """Return what ``gpulab.measure`` says of an example, and the referee before and after."""
    tool = next(own_tools())
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
    said = judged(tool, answer, before, after)
    return said | {"n_records": after.n_records, "wall_s": round(wall_s, 4)}


_TITLES = {
    "cupy_default_stream": "CuPy, default stream",
    "cupy_own_stream": "CuPy, a stream of its own",
    "cupy_torch_stream": "CuPy, a stream of torch's",
    "triton_kernel": "a Triton kernel",
    "graph_replay": "a CUDA graph",
    "training_step": "a training step",
    "compiled_function": "a compiled function",
}


def table(found: dict[str, Any]) -> str:
    """Return the results as a table, with where they come from."""
    lines = ["| work | kernels and copies | `gpulab.measure` | the driver's records |"]
    lines.append("|---|---|---|---|")
    for name, title in _TITLES.items():
        said = found.get(name, {"error": "not run"})
        if "error" in said:
            lines.append(f"| {title} | | no answer: {said['error']} | |")
            continue
        interval = f"[{said['low_us']:.2f}, {said['high_us']:.2f}]"
        lines.append(
            f"| {title} | {said['n_records']} | {said['us']:.2f} µs {interval} "
            f"| {said['referee_us']:.2f} µs |"
        )
    return "\n".join([*lines, "", source(found["provenance"])])


def main() -> None:
    """Measure every example, or put the results of a run into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--virtual", action="store_true")
    parser.add_argument("--write", type=Path, default=None, help="page with the two markers")
    options = parser.parse_args()
    if options.write is not None:
        found = json.loads(options.out.read_text("utf-8"))
        put_between_markers(options.write, "anything", table(found))
        return
    with gpu_in_use(virtual=options.virtual):
        found = {"provenance": provenance(virtual=options.virtual)}
        for example in EXAMPLES:
            found[example.__name__] = said = compared(example)
            print(f"{example.__name__}: {said}", flush=True)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
