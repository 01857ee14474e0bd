"""The numbers behind the page of the crossover explorer: curves by operation, type and device."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

from gpulab.core.foreign_text import visible
from gpulab.roofline.scaling import LINK_COSTS, LINKS, payload
from gpulab.views.explorers._sources import (
    FAMILIES,
    HERE,
    RECORDED,
    as_numbers,
    computed_choices,
    gpu_facts,
    here_of,
    recording_of,
)
from gpulab.workloads import WORKLOADS, recordings, workload
from gpulab.workloads.sweeps import Point

METHOD, CACHE = "synchronized", "hot"  # the time that a program waits, launch and wake-up included


def base_numbers(recorded: Sequence[str]) -> dict[str, Any]:
    """Return names and units, and the recorded times of all operations, by these choices."""
    numbers: dict[str, Any] = {
        "links": {name: link.bytes_per_s for name, link in LINKS.items()},
        "copies": LINK_COSTS,
        "families": FAMILIES,
        "dtypes": sorted({dtype for work in WORKLOADS.values() for dtype in work.dtypes}),
        "gpus": {choice: gpu_facts(choice) for choice in (*recorded, *computed_choices(), HERE)},
        "cpus": {choice: _cpu(choice) for choice in (*recorded, HERE)},
        "operations": {
            work.name: {
                "size_is": work.size_is,
                "dtypes": work.dtypes,
                "types": {dtype: {"cpus": {}, "gpus": {}} for dtype in work.dtypes},
            }
            for work in WORKLOADS.values()
        },
    }
    for choice in recorded:
        _add(numbers["operations"], choice, recording_of(choice).points)
    for name, operation in numbers["operations"].items():
        for dtype, known in operation["types"].items():
            known["amounts"] = _amounts(name, dtype, known)
    return numbers


def _amounts(name: str, dtype: str, known: dict[str, Any]) -> dict[int, tuple[float, float]]:
    """Return bytes and FLOPs by size, over which the page fits lines."""
    work = workload(name)
    curves = (
        times
        for side in (*known["cpus"].values(), *known["gpus"].values())
        for times in side.values()
    )
    sizes = sorted({*work.sizes, *(size for times in curves for size in times["sizes"])})
    return {size: (work.bytes(size, dtype), work.flops(size)) for size in sizes}


def own_numbers(points: Sequence[Point]) -> dict[str, Any]:
    """Return the times that were measured here, on the most recent devices."""
    operations: dict[str, Any] = {}
    last = {side: here_of(points, side) for side in ("cpu", "gpu")}
    _add(operations, HERE, (*last["cpu"], *last["gpu"]))
    return {
        "operations": operations,
        **({"gpus": {HERE: gpu_facts(HERE, last["gpu"])}} if last["gpu"] else {}),
    }


def curve(points: Iterable[Point]) -> dict[str, list[float]]:
    """Return sizes and times; the ends of the intervals only if they differ from the median."""
    ascending = sorted((p for p in points if p.ok), key=lambda point: point.task.size)
    sizes = [point.task.size for point in ascending]
    columns = {
        name: as_numbers(getattr(point, name) for point in ascending)
        for name in ("median_s", "low_s", "high_s")
    }
    if columns["median_s"] == columns["low_s"] == columns["high_s"]:
        columns = {"median_s": columns["median_s"]}
    return {"sizes": sizes, **columns}


def payloads(name: str, dtype: str, recorded: Iterable[str]) -> dict[int, Any]:
    """Return the bytes of each input and of each result of an operation, by its size."""
    points = (point for choice in recorded for point in recording_of(choice).points)
    known = {p.task.size for p in points if (p.task.workload, p.task.dtype) == (name, dtype)}
    return {size: payload(name, size, dtype) for size in known.union(workload(name).sizes)}


def _add(operations: dict[str, Any], choice: str, points: Iterable[Point]) -> None:
    """Add the curves of these points to those of each operation and type."""
    groups: dict[tuple[str, ...], list[Point]] = {}
    for point in points:
        task = point.task
        if not point.ok or task.workload not in WORKLOADS:
            continue
        if task.on == "cpu":
            key = (task.workload, task.dtype, "cpus", json_name(task.n_threads))
        elif (task.method, task.cache) == (METHOD, CACHE):
            key = (task.workload, task.dtype, "gpus", task.transfers)
        else:
            continue
        groups.setdefault(key, []).append(point)
    for (name, dtype, side, how), group in groups.items():
        types = operations.setdefault(name, {}).setdefault("types", {})
        sides = types.setdefault(dtype, {}).setdefault(side, {})
        sides.setdefault(choice, {})[how] = curve(group)


def json_name(n_threads: int | None) -> str:
    """Return a number of threads as the page writes it."""
    return "null" if n_threads is None else str(n_threads)


def own_threads() -> tuple[int | None, ...]:
    """Return the numbers of threads that this CPU can be timed with; None is torch's setting."""
    most = os.cpu_count() or 1
    counts = {most, *(2**k for k in range(most.bit_length()) if 2**k <= most)}
    return (None, *sorted(counts, reverse=True))


def _cpu(choice: str) -> dict[str, Any]:
    if choice == HERE:
        source = {"name": "this CPU", "source": "measured", "n_threads": None}
        return source | {"threads": own_threads()}
    recording = recording_of(choice)
    is_shipped = choice.removeprefix(RECORDED) in recordings.list()
    known = {point.task.n_threads for point in recording.points if point.task.on == "cpu"}
    counts = sorted(known - {None}, reverse=True)  # type: ignore[type-var]  # None is left out
    return {
        "name": "CPU",
        "source": "recorded",
        "n_threads": recording.provenance.get("n_threads"),
        "threads": [*({None} & known), *counts],
        "file": "" if is_shipped else visible(choice.removeprefix(RECORDED)),
    }
