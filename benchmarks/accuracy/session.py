"""A whole run within a time limit: the cases, the magic, fresh processes, and NVBench."""

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import gpulab
from benchmarks.accuracy import magic, nvbench, processes
from benchmarks.accuracy.cases import CASES
from benchmarks.accuracy.run import Deadline, Record, Results, run_cases
from benchmarks.accuracy.tools import cupti_tool, tools
from benchmarks.accuracy.worker import Worker
from benchmarks.common.command_line import python_command
from benchmarks.common.environment import clock_mhz, gpu_in_use, provenance
from benchmarks.common.folders import ROOT
from benchmarks.common.tool import Tool, described

SCHEMA = "gpulab.accuracy/1"

# Seconds that the cases leave for what comes after them: for each process, and for each case of
# NVBench.
_PROCESS_S, _NVBENCH_S = 3.0, 7.0


def run(  # noqa: PLR0913 # each is an option of the command
    out: Path,
    *,
    virtual: bool,
    limit_s: float,
    n_cases: int | None,
    n_processes: int,
    n_nvbench: int,
    beginnings: tuple[str, ...],
) -> None:
    """Compare every tool with the referee on every case, and write the results after each.

    Only the tools whose names begin with one of ``beginnings`` take part.
    """
    deadline = Deadline(limit_s)
    known, own_process = (
        [tool for tool in listed if tool.name.startswith(beginnings)]
        for listed in (tools(), (cupti_tool(), *nvbench.tools()))
    )
    not_run = _not_run([*known, *own_process])
    if virtual:
        not_run |= {tool.name: "it needs a real GPU" for tool in own_process}
    apart = {tool.name for tool in own_process} - set(not_run)
    worker = Worker() if cupti_tool().name in apart else None
    with gpu_in_use(virtual=virtual):
        results = Results(out, _opened(not_run))
        results.content["tools"] = _described([*known, *own_process])
        later_s = _PROCESS_S * n_processes + _NVBENCH_S * n_nvbench
        # The cases come first and may take all the time but what the later parts need.
        in_time = Deadline(deadline.left_s - (0 if virtual else later_s))
        if worker is not None:
            worker.wait_until_ready()
        run_cases(CASES[:n_cases], known, results, in_time, worker)
        if worker is not None:
            worker.close()
        results.content["provenance"]["clock_after_mhz"] = clock_mhz()
        results.content["magic"] = _guarded(magic.overhead)
        results.save()
    if n_processes and deadline.left_s > 0:
        results.content["processes"] = _guarded(
            lambda: processes.run(n_processes, virtual=virtual, limit_s=deadline.left_s)
        )
        results.save()
    if n_nvbench and nvbench.COLD in apart:
        _run_nvbench(n_nvbench, results, min(_NVBENCH_S * n_nvbench + 10, deadline.left_s))
    results.save()
    print(f"{out}: {out.stat().st_size / 1024:.0f} kB")


def _opened(not_run: dict[str, str]) -> Record:
    return {
        "schema": SCHEMA,
        "provenance": provenance(),
        "first_answer_s": _first_answer_s(),
        "not_run": not_run,
        "left_out": [],
        "magic": {},
        "processes": {},
        "cases": [],
    }


def _first_answer_s() -> float:
    """Return how long the first ``measure`` of a process takes; it also finds the floor."""
    # Before the clock starts, because this creates the CUDA context, which every program pays for
    # anyway.
    x = torch.zeros(1 << 20, device="cuda")
    start_s = time.perf_counter()
    gpulab.measure(lambda: x + 1, progress=False)
    return round(time.perf_counter() - start_s, 3)


def _not_run(known: Sequence[Tool]) -> dict[str, str]:
    return {tool.name: tool.obstacle for tool in known if tool.obstacle}


def _described(known: Sequence[Tool]) -> dict[str, Record]:
    return {
        tool.name: {
            "owner": tool.owner,
            "state": tool.state,
            "interval": tool.interval,
            "counts_gaps": tool.counts_gaps,
        }
        for tool in known
    }


def _guarded(action: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return action()
    except Exception as error:  # noqa: BLE001 # the rest is still worth having
        return {"error": described(error)}


def _run_nvbench(n_cases: int, results: Results, limit_s: float) -> None:
    """Run NVBench in its own process, so that a kernel that never ends cannot stop this run."""
    if limit_s <= 0:
        results.content["not_run"][nvbench.COLD] = "no time was left"
        return
    out = results.path.with_suffix(".nvbench.json")
    command = python_command(
        "benchmarks.accuracy", "nvbench", "--cases", str(n_cases), "--out", str(out.resolve())
    )
    try:
        done = subprocess.run(  # noqa: S603 # it is this program
            command, cwd=ROOT, timeout=limit_s, check=False, capture_output=True, text=True
        )
        print(done.stdout[-3000:], done.stderr[-2000:])
    except subprocess.TimeoutExpired:
        print(f"NVBench was not done within {limit_s:.0f} s")
    # It writes its file after each case, so an end by the time limit still leaves answers.
    if not out.exists():
        results.content["not_run"][nvbench.COLD] = "its process left no results"
        return
    answers = json.loads(out.read_text("utf-8"))
    out.unlink()
    for case in results.content["cases"]:
        if "answers" in case:
            case["answers"] |= answers.get(case["name"], {})
