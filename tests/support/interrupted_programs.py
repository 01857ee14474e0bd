"""The programs to interrupt."""

import io
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import torch

import gpulab
from gpulab import live
from gpulab.roofline.scaling import crossover
from gpulab.workloads.sweeps import tasks_of

Program = Callable[[], Any]


def programs() -> dict[str, Program]:
    """Return the programs that run on the GPU in use."""
    return {
        "measure": _measure,
        "compare": _compare,
        "ladder": lambda: gpulab.ladder(_work(), progress=False, max_time_s=0.005),
        "timeline": lambda: gpulab.timeline(_work()),
        "sweep": _sweep,
        "crossover": lambda: crossover("add", [1 << 10, 1 << 12], max_time_s=0.01, progress=False),
        "hazards": _hazards,
        "live": lambda: live.load(_work(), duration_s=0.05, period_s=0.02, progress=False),
        "training": _training,
        "graphs": _graphs,
        "streams": _streams,
    }


def notebook_programs() -> dict[str, Program]:
    """Return the programs that consist of notebook cells, which use the notebook's GPU."""
    return {
        "%%cudatime": lambda: cells("%%cudatime -n 20\na + 1"),
        "cells": lambda: cells("b = a * 2; b.sum().item()", "(b @ b[:8]).sum().item()"),
        "use": lambda: cells("gpulab.use('A100'); torch.ones(3, device='cuda').sum().item()"),
    }


def cells(*sources: str) -> None:
    """Run cells of a notebook one after the other, with nothing shown."""
    shell = _shell()
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        for source in sources:
            shell.run_cell(source)


def set_up_notebook() -> None:
    """Choose a new virtual GPU for the notebook, and create the tensor that its cells use."""
    cells(
        "import torch, gpulab",
        "%load_ext gpulab",
        "gpulab.use('H200')",
        "a = torch.ones(8, 8, device='cuda')",
    )


def leave_notebook() -> None:
    """Leave the notebook's virtual GPU: let gpulab choose the GPU again."""
    cells("import gpulab; gpulab.use('auto')")


def use_in_notebook() -> tuple[list[str], dict[str, Any]]:
    """Return what a cell finds left on the notebook's GPU, and the results of using it."""
    shell = _shell()
    shell.user_ns["found"] = (["the cell has failed"], {})
    cells(
        "from tests.support import condition\n"
        "found = condition.left_on(gpulab.device.current().virtual), condition.use()"
    )
    found: tuple[list[str], dict[str, Any]] = shell.user_ns["found"]
    return found


def _shell() -> Any:  # noqa: ANN401 # IPython is untyped
    from IPython.core.interactiveshell import InteractiveShell

    return InteractiveShell.instance()


def _work() -> Callable[[], Any]:
    a = torch.ones(64, 64, device="cuda")
    return lambda: (a @ a).relu_()  # noqa: PLW0108 # the product is part of the work


def _measure() -> None:
    # With and without a capture: both leave something behind if they are not ended well.
    for method in ("calibrated", "graph"):
        gpulab.measure(_work(), method=method, n_samples=20)


def _compare() -> None:
    a = torch.ones(64, 64, device="cuda")
    gpulab.compare(lambda: a @ a, lambda: a + a, max_time_s=0.02)


def _sweep() -> None:
    tasks = tasks_of(["add", "matmul"], [64, 128])
    gpulab.sweep(tasks, max_time_s=0.01, progress=False)


def _hazards() -> None:
    with gpulab.hazards() as found:
        side = torch.cuda.Stream()
        x = torch.ones(1024, device="cuda")
        with torch.cuda.stream(side):
            y = x * 2
        del y
    len(found)


def _training() -> None:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    model.cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(torch.randn(8, 16, device="cuda")).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    loss.item()


def _graphs() -> None:
    x, graph = torch.zeros(64, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.add_(1).mul_(2)
    for _ in range(5):
        graph.replay()
    x.sum().item()


def _streams() -> None:
    streams = [torch.cuda.Stream() for _ in range(3)]
    x = torch.ones(256, device="cuda")
    for stream in streams:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            y = x * 2
            y.record_stream(torch.cuda.current_stream())
    host = torch.empty(256, pin_memory=True)
    host.copy_(x, non_blocking=True)
    torch.cuda.synchronize()
