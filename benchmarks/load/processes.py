"""Time the first entry of a virtual GPU in new processes, and timelines on a much used one."""

import json
import os
import statistics
import subprocess
import sys
import time
from tempfile import TemporaryDirectory

import torch

import gpulab
from benchmarks.common.folders import ROOT
from benchmarks.common.markdown import padded_table

now_ns = time.monotonic_ns  # a real clock: the virtual GPU replaces other names of `time`
N_TIMELINES = 15
# Processor time, because on a shared machine wall times depend on the other programs.
_STEPS = """
import json, sys, time
figures = {}
def step(name, do):
    start_s, n_modules = time.process_time(), len(sys.modules)
    do()
    figures[name] = time.process_time() - start_s, len(sys.modules) - n_modules
def torch_alone(): import torch
def entry():
    import gpulab
    with gpulab.virtual_gpu("H200"): pass
def operations():
    import gpulab, torch
    with gpulab.virtual_gpu("H200"):
        x = torch.randn(64, 64, device="cuda")
        torch.relu(x @ x + x).sum().item()
for name, do in (("import torch", torch_alone), ("first entry", entry), ("first sum", operations)):
    step(name, do)
print(json.dumps(figures))
"""


def print_first_entry(n: int) -> None:
    """Print the processor time of each first step, and the modules that it imports."""
    command = [sys.executable, "-c", _STEPS]
    with TemporaryDirectory(prefix="gpulab-load-") as folder:
        # Compiled once, as the modules of an installed package are, also where the environment
        # tells Python to write no compiled modules.
        environment = os.environ | {
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": folder,
        }
        answers = [
            json.loads(subprocess.check_output(command, cwd=ROOT, env=environment))  # noqa: S603 # our own text
            for _ in range(n + 1)
        ][1:]
    rows = []
    for name in answers[0]:
        times_s = sorted(answer[name][0] for answer in answers)
        figures = (times_s[0], statistics.median(times_s), times_s[-1])
        rows.append([name, *(f"{time_s:.2f}" for time_s in figures), str(answers[0][name][1])])
    print(*padded_table(("CPU time, s", "least", "median", "most", "modules"), rows), sep="\n")


def print_timeline_age(n: int) -> None:
    """Print how long a timeline takes before and after ``n`` operations on one virtual GPU."""
    with gpulab.virtual_gpu("H200", first_use=False):
        x = torch.ones(64, device="cuda")
        _timeline_ms(x)  # imports what it needs
        fresh_ms = _timeline_ms(x)
        for _ in range(n):
            x.add_(1)
        torch.cuda.synchronize()
        used_ms = _timeline_ms(x)
    print(f"a timeline on a fresh virtual GPU: {fresh_ms:.2f} ms")
    print(f"after {n:,} operations:            {used_ms:.2f} ms")


def _timeline_ms(x: torch.Tensor) -> float:
    readings = []
    for _ in range(N_TIMELINES):
        start_ns = now_ns()
        gpulab.timeline(lambda: x + x)
        readings.append((now_ns() - start_ns) / 1e6)
    # The least, because on a shared machine the others contain interruptions.
    return min(readings)
