"""Fit the host's costs between launches to recorded programs and single calls."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

import gpulab
from benchmarks.host_time.reading import programs_of
from benchmarks.host_time.single_calls import single_calls
from gpulab.virtual.simulator import Host

_COSTS = Path("gpulab/data/host.json")
_N_WARM_UP = 3
_NS_PER_US = 1e3
_CALLS_WEIGHT = 0.15  # of a single call against a program's 1
_SHRINKAGE = 0.02  # how much a cost holds on to where it was, per share of itself


@dataclass(frozen=True, slots=True)
class Counted:
    """One step or call on the virtual GPU.

    Attributes
    ----------
    base_us
        Its host time without the costs that are fitted.
    counts
        How often each of these was charged.
    """

    base_us: float
    counts: Counter[str]


def fit(times: Path, *, is_written: bool) -> str:
    """Fit the costs to a file of times, write them where the virtual GPU reads them, and say."""
    recorded = json.loads(times.read_text(encoding="utf-8"))
    before = json.loads(_COSTS.read_text(encoding="utf-8"))
    costs: dict[str, int] = before["costs_ns"]
    rows = []
    for title, there in recorded["programs"].items():
        if "host_us" in there:
            rows.append((title, there["host_us"], count_program(title, costs), 1.0))
    calls = count_calls(costs, recorded["calls"])
    for name, counted in calls.items():
        there = recorded["calls"][name]
        if "median_us" in there and sum(counted.counts.values()):
            rows.append((name, there["median_us"], counted, _CALLS_WEIGHT))
    fitted = solve(rows, costs)
    lines = [f"{name:24} {costs[name]:7} -> {fitted[name]:7}" for name in costs]
    for title, there_us, counted, weight in rows:
        if weight == 1.0:
            here_us = _total_us(counted, fitted)
            lines.append(
                f"{title:42} {there_us:9.0f} {here_us:9.0f} {here_us / there_us - 1:+.0%}"
            )
    if is_written:
        about = {name: recorded[name] for name in ("gpu", "cpu", "torch", "python", "taken_at")}
        text = {"source": "python -m benchmarks.host_time fit", **about, "costs_ns": fitted}
        _COSTS.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
    return "\n".join(lines)


def solve(rows: list[tuple[str, float, Counted, float]], start: dict[str, int]) -> dict[str, int]:
    """Return the costs, none below zero, by which relative errors are least in their squares.

    Errors far off count little more than those at the edge of what is usual.
    """
    names = list(start)
    there = np.array([row[1] for row in rows])
    base = np.array([row[2].base_us for row in rows])
    counts = np.array([[row[2].counts[name] for name in names] for row in rows]) / _NS_PER_US
    weights = np.array([row[3] for row in rows])
    first = np.array([start[name] for name in names], dtype=float)
    held = np.diag(_SHRINKAGE / np.maximum(first, 100.0))
    found = first
    for _ in range(20):
        errors = (base + counts @ found) / there - 1
        robust = weights / np.sqrt(np.maximum(np.abs(errors), 0.1) / 0.1)
        scale = (robust / there)[:, None]
        matrix = np.vstack([counts * scale, held])
        wanted = np.concatenate([(there - base) * scale[:, 0], held @ first])
        found = _solved(matrix, wanted)
    return {name: round(cost) for name, cost in zip(names, found, strict=True)}


def _solved(matrix: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = lsq_linear(matrix, wanted, bounds=(0.0, np.inf)).x
    return found


def count_program(title: str, costs: dict[str, int]) -> Counted:
    """Return what is charged during one step of a program."""
    with gpulab.virtual_gpu("H200", first_use=False) as gpu:
        torch.manual_seed(0)
        step = programs_of("all")[title]()
        for _ in range(_N_WARM_UP):
            step()
        return _counted(step, gpu.machine.host, costs, 1)


def count_calls(costs: dict[str, int], wanted: Any) -> dict[str, Counted]:  # noqa: ANN401 # names
    """Return what is charged during each single call."""
    found = {}
    with gpulab.virtual_gpu("H200", first_use=False) as gpu:
        for name, (work, n_calls, before) in single_calls():
            if name in wanted:
                for _ in range(2):
                    before()
                    counted = _counted(work, gpu.machine.host, costs, n_calls)
                found[name] = counted
    return found


def _counted(work: Callable[[], Any], host: Host, costs: dict[str, int], n_calls: int) -> Counted:
    torch.cuda.synchronize()
    counts: Counter[str] = Counter()
    with _counting(counts):
        start_ns = host.now_ns
        for _ in range(n_calls):
            work()
        taken_us = (host.now_ns - start_ns) / _NS_PER_US
    for name in counts:
        counts[name] /= n_calls  # type: ignore[assignment] # a mean
    base_us = taken_us / n_calls - _charged_us(counts, costs)
    return Counted(base_us, counts)


def _charged_us(counts: Counter[str], costs: dict[str, int]) -> float:
    return sum(costs[name] * n for name, n in counts.items()) / _NS_PER_US


def _total_us(counted: Counted, costs: dict[str, int]) -> float:
    return counted.base_us + _charged_us(counted.counts, costs)


@contextmanager
def _counting(counts: Counter[str]) -> Iterator[None]:
    """Count what every host is charged."""
    charge = Host.charge

    def count(self: Host, what: str, n: int = 1) -> None:
        if not self.is_free:
            counts[what] += n
        charge(self, what, n)

    Host.charge = count  # type: ignore[method-assign] # for as long as it counts
    try:
        yield
    finally:
        Host.charge = charge  # type: ignore[method-assign] # as before
