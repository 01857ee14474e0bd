"""Count the bytes that kernels read from and write to memory, with the hardware counters."""

import csv
import json
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.cold_cache.flushes import Prepare, Way
from benchmarks.cold_cache.times import Sample, samples_of
from benchmarks.cold_cache.works import Work

# ncu counts both in one run of the kernel. A metric that needs a second run of the kernel would
# find the cache in another state.
MEMORY = ("dram__bytes_read.sum", "dram__bytes_write.sum")
# Sectors of 32 bytes: requested by multiprocessors, and by one half of the cache from the other.
HALVES = (
    "lts__t_sectors_srcunit_tex.sum",
    "lts__t_sectors_srcunit_tex_lookup_hit.sum",
    "lts__t_sectors_srcunit_ltcfabric.sum",
    "lts__t_sectors_srcunit_ltcfabric_lookup_hit.sum",
)
Counts = dict[str, dict[str, dict[str, list[int]]]]
_RANGE = "sample"


def watch(
    plan: Sequence[tuple[Work, int, Sequence[Way]]],
    flushes: dict[str, Prepare | None],
    path: Path,
    budget_s: float,
    n_rounds: int,
) -> None:
    """Run each sample under ncu, which sees only the timed kernel, until the time is over.

    A file lists what ran, in the order of ncu's rows.
    """
    start_s = time.perf_counter()
    labels: list[list[Any]] = []
    for _ in range(n_rounds):
        for work, size_mib, ways in plan:
            for sample in samples_of(work, size_mib, ways, flushes):
                if time.perf_counter() - start_s > budget_s:
                    break
                _watched(sample, len(labels))
                labels.append([work.name, size_mib, sample.way.name])
    path.write_text(json.dumps(labels), encoding="utf-8")
    print(f"{len(labels)} samples in {time.perf_counter() - start_s:.1f} s")


def _watched(sample: Sample, index: int) -> None:
    for step in sample.steps:
        step()
    torch.cuda._sleep(sample.way.pause_cycles)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    torch.cuda.nvtx.range_push(f"{_RANGE}{index}.")
    sample.case.run(*sample.case.tensors)
    torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def labels_path(folder: Path, name: str) -> Path:
    """Return the path of the file that lists what ran while ncu made a report."""
    return folder / f"labels-{name}.json"


def read_report(folder: Path, name: str, metrics: Sequence[str]) -> Counts:
    """Return the counts by kernel, size and way: for each metric the median of the rounds."""
    labels = json.loads(labels_path(folder, name).read_text(encoding="utf-8"))
    samples: dict[int, list[int]] = defaultdict(lambda: [0] * len(metrics))
    rows = _rows((folder / f"counters-{name}.csv").read_text(encoding="utf-8"))
    for position, row in enumerate(rows):
        found = re.search(rf"{_RANGE}(\d+)\.", " ".join(map(str, row.values())))
        if found is None and len(rows) != len(labels):
            raise RuntimeError(f"row {position} of {len(rows)} names no sample")
        sums = samples[int(found[1]) if found else position]
        for place, metric in enumerate(metrics):
            sums[place] += round(float(row[metric].replace(",", "")))
    values: dict[tuple[str, int, str], list[list[int]]] = defaultdict(list)
    for index, sums in samples.items():
        values[tuple(labels[index])].append(sums)
    result: Counts = defaultdict(lambda: defaultdict(dict))
    for (work, size_mib, way), found_sums in values.items():
        medians = [round(statistics.median(part)) for part in zip(*found_sums, strict=True)]
        result[work][str(size_mib)][way] = medians
    return result


def _rows(text: str) -> list[dict[str, str]]:
    """Return ncu's rows, without the lines above the head and without the row of units."""
    lines = text.splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith('"ID"'))
    rows = list(csv.DictReader(lines[first:]))
    return [row for row in rows if (row["ID"] or "").isdigit()]
