"""Fit the costs that the virtual GPU charges the host to recorded programs."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gpulab
from benchmarks.host_time import fit_programs, library_programs, more_fit_programs
from gpulab.virtual.simulator import Host

PROGRAMS = {
    **fit_programs.PROGRAMS,
    **more_fit_programs.PROGRAMS,
    **library_programs.PROGRAMS,
}
_COSTS = Path("gpulab/data/host.json")
_N_WARM_UP = 3
_NS_PER_US = 1e3
_RECURRENT = ("LSTM", "GRU")
# The weight of a cost's expected value in the fit, and the error beyond which errors count less.
_TIE, _USUAL_ERROR = 0.1, 0.1
_LAUNCH_BOUND = 1.5  # wall over busy time above which the host decides the wall time
_N_TURNS = 25

# The expected value of each cost in nanoseconds, from the single calls, and its uncertainty. The
# values are 1.5 times those of the calls, which repeat with warm CPU caches; programs do not.
EXPECTED = {
    # An operator that differs from the one before it, because the host's caches are cold for it;
    # one in a loop of its own costs only its launch. The next two lines: the same while autograd
    # records it, and inside a backward pass.
    "operator": (4_000, 2_000),
    "recorded operator": (11_000, 3_000),
    "operator in backward": (9_000, 4_000),
    # The same in a step of an optimizer, where few operators repeat for each parameter.
    "operator of an optimizer": (3_000, 2_000),
    # An operator for which the host waits, because its result's size depends on values.
    "operator with a size from values": (40_000, 15_000),
    # An operator that PyTorch's C++ code calls inside another one.
    "operator inside another": (8_000, 2_000),
    # For each microsecond that the launches of such an operator take in a loop of its own.
    "cold microsecond": (500, 300),
    # Multi-tensor operators, as optimizers use them: a fixed part. Their launches have the rest.
    "operator over lists": (12_000, 6_000),
    # An operator that launches nothing.
    "view": (1_500, 700),
    # For each node that autograd creates in a forward pass.
    "recording": (3_000, 1_500),
    # A backward pass: once, for each of its nodes, and for each leaf that gets a gradient.
    "backward": (110_000, 30_000),
    "backward node": (3_000, 2_000),
    "backward leaf": (5_000, 4_000),
    # The call of a module, and each hook that it runs.
    "module": (2_000, 1_500),
    "hook": (3_000, 1_000),
    # PyTorch's Python code around other calls: a hook of a saved tensor, a checkpoint (besides
    # its hooks), a parameter or buffer that a module lists, its state, a learning rate, and a
    # distribution.
    "saved-tensor hook": (4_000, 2_000),
    "checkpoint": (225_000, 75_000),
    "member listed": (1_100, 500),
    "state of a module": (4_000, 2_000),
    "state loaded": (7_000, 4_000),
    "scheduler step": (8_000, 5_000),
    "distribution": (6_000, 3_000),
    # A step of an optimizer: once, and for each parameter by the way in which PyTorch updates it.
    "optimizer step": (70_000, 30_000),
    "parameter in a loop": (3_000, 3_000),
    "parameter at once": (1_000, 700),
    "parameter fused": (1_000, 500),
    # PyTorch sorts tensors by device and type before a multi-tensor operator.
    "grouped tensor": (1_000, 700),
    # `zero_grad` once, and for each parameter that has a gradient.
    "zero_grad": (15_000, 5_000),
    "parameter zeroed": (300, 100),
    # Contexts: `no_grad` and its like, and autocast.
    "grad mode": (1_300, 400),
    "autocast": (8_000, 2_000),
    # The programs of the blind set never change streams, so the fit must not move this cost far
    # from that of a single call, 5.2 µs (docs/virtual-gpu.md).
    "set stream": (5_000, 500),
    # An operator on tensors of the host, and a batch of a DataLoader.
    "operator of the host": (4_000, 1_500),
    "loader batch": (40_000, 40_000),
}


@dataclass(frozen=True, slots=True)
class Counted:
    """One step or call on the virtual GPU.

    Attributes
    ----------
    base_us
        Its host time without the costs that are fitted.
    counts
        How often each of the fitted costs was charged.
    """

    base_us: float
    counts: "Counter[str]"


def fit(times: Sequence[Path], *, is_written: bool) -> str:
    """Fit the costs to files of times, and return a report of the costs and the errors.

    The costs are written where the virtual GPU reads them if ``is_written``. Programs with
    recurrent layers are left out, because the host times of their kernels were set by hand.
    """
    files = [json.loads(path.read_text(encoding="utf-8")) for path in times]
    shipped = json.loads(_COSTS.read_text(encoding="utf-8"))
    costs: dict[str, int] = shipped["costs_ns"]
    titles, rows = [], []
    for i_host, recorded in enumerate(files):
        for title, there in recorded["programs"].items():
            if "host_us" in there and not title.startswith(_RECURRENT):
                titles.append(title)
                rows.append((usual_us(there), count_program(title, costs), i_host))
    fitted, paces = solve(rows)
    lines = [f"{name:24} {costs.get(name, 0):7} -> {fitted[name]:7}" for name in fitted]
    left_out: dict[int, list[float]] = {i: [] for i in range(len(files))}
    for title, row in zip(titles, rows, strict=True):
        there_us, counted, i_host = row
        # Other programs of the same model would give its errors away.
        family = _family(title)
        without_family = solve(
            [it for it, name in zip(rows, titles, strict=True) if _family(name) != family]
        )
        error, blind = (
            paces_of[i_host] * _total_us(counted, each) / there_us - 1
            for each, paces_of in ((fitted, paces), without_family)
        )
        left_out[i_host].append(abs(blind))
        lines.append(f"{title:42} {there_us:9.0f} us {error:+5.0%}, left out {blind:+5.0%}")
    for recorded, pace, errors in zip(files, paces, left_out.values(), strict=True):
        median, high = np.quantile(errors, [0.5, 0.9])
        lines.append(
            f"{recorded['gpu']}, a host that takes {pace:.2f} times as long as the first: "
            f"left out, median {median:.1%}, p90 {high:.1%}"
        )
    if is_written:
        first = files[0]
        about = {name: first[name] for name in ("gpu", "cpu", "torch", "python", "taken_at")}
        text = {"source": "python -m benchmarks.host_time", **about, "costs_ns": fitted}
        text |= {name: shipped[name] for name in ("hosts", "cold")}
        _COSTS.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
    return "\n".join(lines)


def _family(title: str) -> str:
    """Return what the programs of one model have in common."""
    return title.split(maxsplit=1)[0] if title in library_programs.PROGRAMS else title


def usual_us(there: dict[str, Any]) -> float:
    """Return the host time of a step; its mean with the wall time where the host decides that."""
    host_us = float(there["host_us"])
    is_launch_bound = there.get("wall_us", 0) > _LAUNCH_BOUND * there.get("busy_us", 0)
    return float((host_us * there["wall_us"]) ** 0.5) if is_launch_bound else host_us


def solve(
    rows: Sequence[tuple[float, Counted, int]],
) -> tuple[dict[str, int], list[float]]:
    """Return the non-negative costs with the least squares of relative errors, and hosts' paces.

    An error beyond the usual ones counts less than its square, so that few programs do not decide,
    and each cost is pulled towards its expected value. Each row has the number of its host; all
    times of a host are those of the first one times the host's pace.
    """
    from scipy.optimize import lsq_linear  # the import takes most of a second

    names = list(EXPECTED)
    there = np.array([there_us for there_us, _, _ in rows])
    base = np.array([counted.base_us for _, counted, _ in rows])
    counts = np.array([[counted.counts[name] for name in names] for _, counted, _ in rows])
    hosts = np.array([i_host for _, _, i_host in rows])
    wanted_ns, spread_ns = np.array([EXPECTED[name] for name in names], dtype=float).T
    costs_ns, ties = wanted_ns, _TIE / spread_ns
    for _ in range(_N_TURNS):
        # Iteratively reweighted least squares: each turn weighs the programs by the errors of the
        # last one.
        ratios = there / (base + counts @ costs_ns / _NS_PER_US)
        other_paces = [float(np.median(ratios[hosts == i])) for i in range(1, hosts.max() + 1)]
        paces = [1.0, *other_paces]
        here = there / np.array(paces)[hosts]
        errors = (base + counts @ costs_ns / _NS_PER_US) / here - 1
        weights = 1 / np.sqrt(np.maximum(np.abs(errors) / _USUAL_ERROR, 1.0)) / here
        matrix = np.vstack([counts * weights[:, None] / _NS_PER_US, np.diag(ties)])
        right = np.concatenate([(here - base) * weights, ties * wanted_ns])
        costs_ns = lsq_linear(matrix, right, bounds=(0.0, np.inf)).x
    costs = {name: round(cost) for name, cost in zip(names, costs_ns, strict=True)}
    return costs, paces


def count_program(title: str, costs: dict[str, int]) -> Counted:
    """Return the costs that one step of a program charges."""
    with gpulab.virtual_gpu("H200", first_use=False) as gpu:
        torch.manual_seed(0)
        step = PROGRAMS[title]()
        for _ in range(_N_WARM_UP):
            step()
        return _counted(step, gpu.machine.host, costs)


def _counted(work: Callable[[], Any], host: Host, costs: dict[str, int]) -> Counted:
    torch.cuda.synchronize()
    counts: Counter[str] = Counter()
    with _counting(counts):
        start_ns = host.now_ns
        work()
        taken_us = (host.now_ns - start_ns) / _NS_PER_US
    return Counted(taken_us - _charged_us(counts, costs), counts)


def _charged_us(counts: Counter[str], costs: dict[str, int]) -> float:
    return sum(costs[name] * n for name, n in counts.items()) / _NS_PER_US


def _total_us(counted: Counted, costs: dict[str, int]) -> float:
    return counted.base_us + _charged_us(counted.counts, costs)


@contextmanager
def _counting(counts: Counter[str]) -> Iterator[None]:
    """Count in the block which costs are charged to a host."""
    charge = Host.charge

    def count(self: Host, what: str, n: float = 1) -> None:
        if not self.is_free:
            # Not while the host is free of charge: what the simulation does for itself is no cost
            # of the program.
            counts[what] += n  # type: ignore[assignment] # parts of a cost, where it is in part cold
        charge(self, what, n)

    Host.charge = count  # type: ignore[method-assign] # for the block
    try:
        yield
    finally:
        Host.charge = charge  # type: ignore[method-assign] # as before
