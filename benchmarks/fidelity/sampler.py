"""Record thousands of workloads in a short time: device times hot and cold, and host times."""

import itertools
import json
import random
import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from benchmarks.common.device_records import duration_us, is_spin, profiled, short_name
from benchmarks.common.wall_time import wall_s
from benchmarks.fidelity.bench import spin
from benchmarks.fidelity.dense import dense, focused
from benchmarks.fidelity.readings import provenance
from benchmarks.fidelity.wide import wide
from benchmarks.fidelity.workload import Workload
from gpulab.device.work import Work
from gpulab.tracing.profiling import ActivityRecord

_BATCH = 80
_MOST_BYTES = 24 << 30  # of one batch
# 256 MB of float32, four times the L2 cache of an H200, as in `bench`.
_FLUSH_ELEMENTS = 1 << 26
_SHORT_S, _LONG_S = 0.4e-3, 4e-3
_N_SAMPLES = ((7, 5), (5, 3), (3, 2))  # hot and cold, for short, middling and long calls
_N_HOST_CALLS = 8
_WRITE_EVERY = 10
_DRAWS = {"dense": dense, "focused": focused, "wide": wide}


@dataclass(slots=True)
class Item:
    """One workload that is set up, with its readings."""

    index: int
    workload: Workload
    work: Work
    n_hot: int
    n_cold: int
    n_parts: int = 0
    found: dict[str, Any] = field(default_factory=dict)


def prepared(index: int, workload: Workload) -> Item:
    """Set up a workload, warm it up, and time it on the host without the profiler."""
    with workload.precision():
        work = workload.build()
        for _ in range(2):
            work()
        took_s = wall_s(work)
        level = (took_s > _SHORT_S) + (took_s > _LONG_S)
        item = Item(index, workload, work, *_N_SAMPLES[level])
        if not level:
            rounds_s = []
            for _ in range(3):
                torch.cuda.synchronize()
                start_s = time.perf_counter()
                for _ in range(_N_HOST_CALLS):
                    work()
                rounds_s.append((time.perf_counter() - start_s) / _N_HOST_CALLS)
            torch.cuda.synchronize()
            item.found["host_us"] = round(min(rounds_s) * 1e6, 2)
        item.found["wall_us"] = round(took_s * 1e6, 1)
    return item


def enqueue(item: Item, flush: torch.Tensor) -> None:
    """Enqueue the work's hot and cold calls, with a spinning kernel before and after each."""

    def mark() -> None:
        spin()
        item.n_parts += 1

    try:
        with item.workload.precision():
            for _ in range(item.n_hot):
                mark()
                item.work()
            for _ in range(item.n_cold):
                mark()
                flush.sum()
                mark()
                item.work()
    except Exception as error:  # noqa: BLE001 # whatever fails, the rest goes on
        item.found["failed"] = f"{type(error).__name__}: {str(error)[:80]}"
    mark()


def evaluate(items: list[Item], records: list[ActivityRecord]) -> None:
    """Compute the device times of each item from the records between its spinning kernels."""
    marks = [i for i, record in enumerate(records) if is_spin(record)]
    parts = [records[a + 1 : b] for a, b in pairwise([*marks, len(records)])]
    at = 0
    for item in items:
        own = parts[at : at + item.n_parts]
        at += item.n_parts
        if "failed" in item.found:
            continue
        hot = own[: item.n_hot]
        cold = own[item.n_hot + 1 : item.n_hot + 2 * item.n_cold : 2]
        n_kernels = statistics.mode(len(part) for part in (*hot, *cold))
        hot = [part for part in hot if len(part) == n_kernels]
        cold = [part for part in cold if len(part) == n_kernels]
        if not hot or not cold:
            item.found["failed"] = "the records vary"
            continue
        item.found["hot_us"] = _total(hot)
        item.found["cold_us"] = _total(cold)
        item.found["n_kernels"] = n_kernels
        item.found["kernels"] = _names(hot[0])


def _names(records: list[ActivityRecord]) -> str:
    """Return the names of the kernels in their order, one a line."""
    return "\n".join(short_name(record.name) for record in records)


def _total(parts: list[list[ActivityRecord]]) -> float:
    return round(statistics.median(sum(map(duration_us, part)) for part in parts), 3)


def sample(out: Path, limit_s: float, draw: str) -> None:
    """Time workloads until the time is over, and write the file every few batches."""
    begin_s = time.perf_counter()
    workloads = list(enumerate(_DRAWS[draw]()))
    # In a random order, so that a run that ends early has some of every kind.
    random.Random(1).shuffle(workloads)  # noqa: S311 # an order, not a secret
    print(len(workloads), "workloads", flush=True)
    flush = torch.zeros(_FLUSH_ELEMENTS, device="cuda")
    rows: list[dict[str, Any]] = []
    spent: dict[str, list[float]] = {}
    about = provenance()
    for n_batches in itertools.count(1):
        if not workloads or time.perf_counter() - begin_s > limit_s:
            break
        rows += _batch(workloads, flush, spent)
        if n_batches % _WRITE_EVERY == 0:
            write(out, about, draw, rows)
            print(f"{time.perf_counter() - begin_s:6.1f} s  {len(rows)} read", flush=True)
    write(out, about, draw, rows)
    for name, values in sorted(spent.items(), key=lambda item: -sum(item[1])):
        print(f"{sum(values):7.2f} s  {len(values):5d} x {name}")
    print(len(rows), "read,", len(workloads), "left, failed:")
    for row in rows:
        if "failed" in row:
            print(row["make"], row["dtype"], row["parameters"], row["failed"])


def _batch(
    workloads: list[tuple[int, Workload]], flush: torch.Tensor, spent: dict[str, list[float]]
) -> list[dict[str, Any]]:
    """Time the next workloads in one session of the profiler; add up what each function took."""
    # The workloads of the last batch are gone; without this their blocks would stay reserved.
    torch.cuda.empty_cache()
    items: list[Item] = []
    while workloads and len(items) < _BATCH and torch.cuda.memory_allocated() < _MOST_BYTES:
        index, workload = workloads.pop()
        start_s = time.perf_counter()
        try:
            items.append(prepared(index, workload))
        except Exception as error:  # noqa: BLE001 # whatever fails, the rest goes on
            print(workload.name, type(error).__name__, str(error)[:100], flush=True)
        own = spent.setdefault(workload.make.__name__, [])
        own.append(time.perf_counter() - start_s)

    def work() -> None:
        for item in items:
            enqueue(item, flush)

    start_s = time.perf_counter()
    evaluate(items, profiled(work))
    spent.setdefault("profiled", []).append(time.perf_counter() - start_s)
    return [_row(item) for item in items]


def _row(item: Item) -> dict[str, Any]:
    workload = item.workload
    known = {"make": workload.make.__name__, "dtype": workload.dtype}
    return {**known, "parameters": workload.parameters, **item.found}


def write(out: Path, about: dict[str, Any], draw: str, rows: list[dict[str, Any]]) -> None:
    """Write the recording: for each function its parameters' names, then a line for each call."""
    groups: dict[str, list[dict[str, Any]]] = {}
    # Each name and each sequence of kernels once; a row has the number of its sequence.
    sequences: dict[str, int] = {}
    for row in rows:
        if "failed" not in row:
            row["sequence"] = sequences.setdefault(row["kernels"], len(sequences))
            groups.setdefault(row["make"], []).append(row)
    parts = []
    for make, members in sorted(groups.items()):
        keys = list(members[0]["parameters"])
        lines = ",\n".join(json.dumps(_line(row), separators=(",", ":")) for row in members)
        head = json.dumps([*keys, *_READ])
        parts.append(f' {json.dumps(make)}: {{"columns": {head}, "rows": [\n{lines}\n ]}}')
    head = json.dumps({"provenance": about, "draw": draw, **_numbered(sequences)})
    calls = ",\n".join(parts)
    fresh = out.with_suffix(".part")
    fresh.write_text(f'{head[:-1]},\n"calls": {{\n{calls}\n}}}}\n', "utf-8")
    # Renamed at the end, so that an interrupt never leaves half a file.
    fresh.replace(out)


_READ = ("dtype", "hot_us", "cold_us", "n_kernels", "host_us", "sequence")


def _numbered(sequences: Iterable[str]) -> dict[str, Any]:
    """Return the distinct names of kernels, and each sequence as pairs of a count and a name."""
    names: dict[str, int] = {}
    found = []
    for sequence in sequences:
        runs = itertools.groupby(
            names.setdefault(name, len(names)) for name in sequence.split("\n")
        )
        found.append([[len(list(run)), name] for name, run in runs])
    return {"kernels": list(names), "sequences": found}


def _line(row: dict[str, Any]) -> list[Any]:
    return [*row["parameters"].values(), *(row.get(key) for key in _READ)]


def samples(path: Path) -> Iterator[tuple[str, str, dict[str, Any], float, float]]:
    """Return the calls of a recording: function, type, parameters, and times hot and cold (µs)."""
    for make, group in json.loads(path.read_text("utf-8"))["calls"].items():
        n_parameters = group["columns"].index(_READ[0])
        for row in group["rows"]:
            dtype, hot_us, cold_us = row[n_parameters : n_parameters + 3]
            parameters = dict(zip(group["columns"][:n_parameters], row, strict=False))
            yield make, dtype, parameters, hot_us, cold_us
