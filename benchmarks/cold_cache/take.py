"""Time the kernels, run them for the counters, and join both in the file of results."""

import json
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from benchmarks.cold_cache.counters import (
    HALVES,
    MEMORY,
    Counts,
    labels_path,
    read_report,
    watch,
)
from benchmarks.cold_cache.flushes import WAYS
from benchmarks.cold_cache.times import flushes_of, samples_of, sizes_mib, times_of
from benchmarks.cold_cache.works import WORKS
from benchmarks.common.environment import provenance

TIMES, _HALVES = "times.json", "halves"
# Around half of the L2, where a "hot" kernel begins to miss.
_FINE_MIB = (8, 20, 24, 28, 36, 40, 45, 52, 75, 90)
_FINE_WORKS, _FINE_WAYS = ("sum", "fill", "linear, 1 row"), ("hot", "read 2x", "write 256 MiB")
_HALVES_WORKS, _HALVES_WAYS = ("sum", "fill", "linear, 1 row", "add"), ("hot", "read 2x")


def take_times(folder: Path, n_samples: int, names: list[str], *, virtual: bool) -> None:
    """Time all kernels after each way to prepare the cache, and write the times to a file."""
    ways = [way for way in WAYS if not (virtual and way.real_only)]
    flushes = flushes_of(ways)
    works = {}
    for work in WORKS:
        if names and work.name not in names:
            continue
        start_s = time.perf_counter()
        try:
            sizes = sizes_mib()
            samples = [item for size in sizes for item in samples_of(work, size, ways, flushes)]
            works[work.name] = times_of(samples, n_samples)
        except RuntimeError as error:
            works[work.name] = {"error": str(error)}
        print(f"{work.name}: {time.perf_counter() - start_s:.1f} s", flush=True)
        # Written after each kernel, so that a run that is cut short leaves what it has.
        document = {"origin": _origin(n_samples), "works": works}
        (folder / TIMES).write_text(json.dumps(document), encoding="utf-8")


def take_counts(
    folder: Path, report: str, budget_s: float, n_rounds: int, names: list[str]
) -> None:
    """Run the samples whose bytes ncu counts, most informative first."""
    _, small, quarter, half, whole, double, _ = sizes_mib()
    counted = [way for way in WAYS if way.counted and (not names or way.name in names)]
    works = [work for work in WORKS if work.counted]
    fine_works = [work for work in works if work.name in _FINE_WORKS]
    fine = [way for way in counted if way.name in _FINE_WAYS]
    # The most informative sizes first, because the time may not reach for all.
    plan = [(work, size, counted) for size in (half, quarter) for work in works]
    plan += [(work, size, fine) for size in _FINE_MIB for work in fine_works]
    plan += [(work, size, counted) for size in (whole, small, double) for work in works]
    plan = [item for item in plan if item[2]]
    watch(plan, flushes_of(counted), labels_path(folder, report), budget_s, n_rounds)


def take_halves(folder: Path) -> None:
    """Run hot and cold kernels, for counts of requests from one half of the cache to the other."""
    ways = [way for way in WAYS if way.name in _HALVES_WAYS]
    works = [work for work in WORKS if work.name in _HALVES_WORKS]
    plan = [(work, size, ways) for work in works for size in (15, 30, *_FINE_MIB[3:8], 60)]
    watch(plan, flushes_of(ways), labels_path(folder, _HALVES), budget_s=60, n_rounds=1)


def _origin(n_samples: int) -> dict[str, Any]:
    at = provenance()
    kept = {name: at[name] for name in ("gpu", "l2_bytes", "driver", "cuda", "python", "gpulab")}
    return kept | {
        "torch": torch.__version__,
        "date": at["taken_at"][:10],
        "n_samples": n_samples,
    }


def _merged(reports: Iterable[Counts]) -> Counts:
    whole: Counts = defaultdict(lambda: defaultdict(dict))
    for report in reports:
        for work, sizes in report.items():
            for size, ways in sizes.items():
                whole[work][size] |= ways
    return whole


def gather(folder: Path, names: list[str], out: Path) -> None:
    """Join times and counters in the file of results."""
    document = json.loads((folder / TIMES).read_text(encoding="utf-8"))
    document["bytes"] = _merged(read_report(folder, name, MEMORY) for name in names)
    document["halves"] = read_report(folder, _HALVES, HALVES)
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{out}: {out.stat().st_size} bytes")
