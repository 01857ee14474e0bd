"""PyTorch's profiler shows what the virtual GPU did, in PyTorch's own tables and traces."""

import gzip
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile, record_function, schedule

import gpulab
from gpulab.virtual import VirtualGpu
from gpulab.virtual.dispatch import VirtualMode

inside = pytest.mark.usefixtures("gpu")


def rows(recorded: profile, *, by_shape: bool = False) -> dict[str, Any]:
    """Return the averages of a profile by their names."""
    return {row.key: row for row in recorded.key_averages(by_shape)}


def events(recorded: profile, name: str) -> list[Any]:
    """Return the events of one name."""
    return [event for event in recorded.events() if event.name == name]


def traced(path: Path, category: str) -> list[dict[str, Any]]:
    """Return the events of one category in a trace file."""
    trace = json.loads(path.read_text("utf-8"))
    return [event for event in trace["traceEvents"] if event.get("cat") == category]


@inside
def test_activities_choose_what_is_recorded() -> None:
    """Activities CPU record operators, activities CUDA kernels; both record calls of CUDA."""
    x = torch.ones(8, device="cuda")
    with profile(activities=[ProfilerActivity.CPU]) as host:
        x + x
    assert list(rows(host)) == ["aten::add", "cudaLaunchKernel"]
    with profile(activities=[ProfilerActivity.CUDA]) as device:
        x + x
        x + x
    assert {name: row.count for name, row in rows(device).items()} == {
        "Activity Buffer Request": 1,
        "cudaLaunchKernel": 2,
        "cudaDeviceSynchronize": 1,
        "add": 2,
    }


@inside
def test_a_launch_takes_longer_while_the_device_is_recorded() -> None:
    """A launch takes 4.6 µs longer while the device is recorded, as with an H200.

    The first one takes CUPTI's buffer, too; a record of an event takes neither.
    """

    def host_us(work: Callable[[], object]) -> float:
        start_ns = time.perf_counter_ns()
        work()
        return (time.perf_counter_ns() - start_ns) / 1e3

    x, event = torch.ones(8, device="cuda"), torch.cuda.Event()
    event.record()
    record_us = host_us(event.record)
    launch_us = [host_us(x.exp) for _ in range(3)][-1]
    with profile():
        assert host_us(event.record) == pytest.approx(record_us, abs=0.1)
        first_us, *_, last_us = [host_us(x.exp) for _ in range(3)]
    assert first_us > 2_500
    assert last_us == pytest.approx(launch_us + 4.6, abs=0.1)
    assert [host_us(x.exp) for _ in range(3)][-1] == pytest.approx(launch_us, abs=0.1)


@inside
def test_ranges_of_the_program_are_on_host_and_device() -> None:
    """``record_function`` is a range of the host, and a range of the device around its kernels.

    The nodes of autograd are on a thread of their own.
    """
    x = torch.ones(1 << 20, device="cuda")
    with profile() as recorded:
        with record_function("mine"):
            x.exp()
            x.exp()
        x.sin()
        torch.ones(2, device="cuda", requires_grad=True).sum().backward()
    (node,) = events(recorded, "autograd::engine::evaluate_function: SumBackward0")
    assert (events(recorded, "aten::sin")[0].thread, node.thread) == (1, 2)
    on_host, on_device = sorted(events(recorded, "mine"), key=lambda event: str(event.device_type))
    kernels = events(recorded, "exp")
    assert on_host.cpu_children[0].name == "aten::exp"
    assert on_host.time_range.end < events(recorded, "aten::sin")[0].time_range.start + 1e-6
    assert on_device.time_range.start == kernels[0].time_range.start
    assert on_device.time_range.end == kernels[1].time_range.end


@inside
def test_a_schedule_records_only_its_active_steps() -> None:
    """A schedule records its two active steps, and not those of waiting and warm-up."""
    x = torch.ones(8, device="cuda")
    ready: list[int] = []
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=lambda recorded: ready.append(rows(recorded)["aten::exp"].count),
    ) as recorded:
        for _ in range(6):
            x.exp()
            recorded.step()
    assert ready == [2]


def test_shapes_flops_stacks_and_memory(gpu: VirtualGpu) -> None:
    """Options for shapes, FLOPs, memory and stacks fill their columns."""
    usage, values = gpu.machine.gpu.memory.usage, gpu.machine.values
    before = {*vars(usage)}, {*vars(values)}
    a = torch.ones(64, 32, device="cuda")
    with profile(
        record_shapes=True, with_flops=True, with_stack=True, profile_memory=True
    ) as recorded:
        product = a @ a.T
    row = rows(recorded, by_shape=True)["aten::mm"]
    assert row.input_shapes == [[64, 32], [32, 64]]
    assert row.flops == 2 * 64 * 32 * 64
    assert row.device_memory_usage == product.nbytes
    assert not hasattr(recorded.profiler.kineto_results.events()[0], "a_name_of_a_later_torch")
    stack = events(recorded, "aten::mm")[0].stack
    assert Path(__file__).name in stack[0]
    assert ({*vars(usage)}, {*vars(values)}) == before  # nothing is watched any more


@inside
def test_a_trace_opens_in_perfetto(tmp_path: Path) -> None:
    """A trace has operators, kernels, ranges, and an arrow from each launch to its kernel."""
    x = torch.ones(1 << 20, device="cuda")
    with profile() as recorded:
        with record_function("mine"):
            x.exp()
        x.clone().cpu()
    path = tmp_path / "trace.json"
    recorded.export_chrome_trace(str(path))
    (kernel,) = traced(path, "kernel")
    assert kernel["name"] == "exp"
    assert [event["name"] for event in traced(path, "gpu_memcpy")] == [
        "Memcpy DtoD (Device -> Device)",
        "Memcpy DtoH (Device -> Pageable)",
    ]
    assert [event["name"] for event in traced(path, "gpu_user_annotation")] == ["mine"]
    assert "aten::exp" in [event["name"] for event in traced(path, "cpu_op")]
    arrows = [
        event for event in traced(path, "ac2g") if event["id"] == kernel["args"]["correlation"]
    ]
    assert [arrow["ph"] for arrow in arrows] == ["s", "f"]
    assert arrows[1]["ts"] == kernel["ts"]
    assert arrows[0]["ts"] < kernel["ts"]
    packed = tmp_path / "trace.json.gz"
    recorded.export_chrome_trace(str(packed))
    assert json.loads(gzip.decompress(packed.read_bytes()))["otherData"]["source"] == "virtual"


def test_an_open_profiler_ends_with_the_virtual_gpu() -> None:
    """A profiler that was not stopped ends with the context, and the next one starts empty."""
    own = vars(VirtualMode)["__torch_dispatch__"]
    with gpulab.virtual_gpu("T4", first_use=False) as gpu:
        left_open = profile()
        left_open.start()
        assert vars(VirtualMode)["__torch_dispatch__"] is not own
        assert "launch" in vars(gpu.machine.host)  # replaced, to be recorded
    assert vars(VirtualMode)["__torch_dispatch__"] is own
    assert "launch" not in vars(gpu.machine.host)
    with gpulab.virtual_gpu("T4", first_use=False), profile() as recorded:
        torch.ones(8, device="cuda").exp()
    assert rows(recorded)["aten::exp"].count == 1


@pytest.mark.slow
def test_the_compiler_is_not_imported(warm_python: list[str]) -> None:
    """Profiling does not import PyTorch's compiler, which would take seconds."""
    script = (
        "import sys, torch, gpulab\n"
        "with gpulab.virtual_gpu('H200'):\n"
        "    with torch.profiler.profile(): torch.ones(8, device='cuda')\n"
        "assert 'torch._inductor' not in sys.modules\n"
        "assert hasattr(torch, '_inductor')\n"
    )
    subprocess.run([*warm_python, "-c", script], check=True)


def random_work(random: Random, depth: int = 0) -> Callable[[], None]:
    """Return a random program with ranges, streams, backward passes, graphs and copies."""
    x = torch.ones(64, 64, device="cuda", requires_grad=True)
    y, host = torch.ones(64, 64, device="cuda"), torch.ones(64, 64)
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y.sinh_().cosh_()
    parts: list[Callable[[], object]] = [
        lambda: (x @ y).relu().sum().backward(),
        lambda: torch.nn.functional.layer_norm(x, (64,)).square().mean().backward(),
        lambda: y.add_(1).exp(),
        lambda: y.view(-1).unsqueeze(0).expand(2, -1),
        lambda: host.cuda() + y,
        lambda: y.cpu() + host,
        lambda: y.sum().item(),
        lambda: torch.zeros(8, device="cuda").clone(),
        lambda: torch.cat([y, y])[y.sum(1).argmax()],
        torch.cuda.synchronize,
        graph.replay,
    ]

    def on_side() -> None:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y.sin()
        torch.cuda.current_stream().wait_stream(side)

    chosen = random.choices([*parts, on_side], k=random.randint(1, 5))
    if depth < 3:
        chosen += [random_work(random, depth + 1) for _ in range(random.randint(0, 2))]
    random.shuffle(chosen)

    def work() -> None:
        with record_function(f"range {random.randrange(3)}"):
            for part in chosen:
                part()

    return work


def kernels_in(event: FunctionEvent) -> float:
    """Return the times of all kernels of an event and of the events inside it."""
    own = sum(kernel.duration for kernel in event.kernels)
    return own + sum(map(kernels_in, event.cpu_children))
