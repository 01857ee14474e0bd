"""Which flush makes a GPU's cache cold and clean: take the times, the counters, and write them up.

    python benchmarks/cold_cache.py time FOLDER           durations of kernels, by CUPTI's records
    ncu ... python benchmarks/cold_cache.py count FOLDER  bytes to and from memory (see the page)
    python benchmarks/cold_cache.py gather FOLDER         both into benchmarks/results
    python benchmarks/cold_cache.py table --write docs/cold-cache.md

``time --virtual`` takes the times on the virtual GPU, to try the script without a GPU.
"""

import argparse
import json
import platform
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import gpulab
from benchmarks.cold_cache.counters import HALVES, MEMORY, Counts, read_report, watch
from benchmarks.cold_cache.flushes import WAYS, needed_bytes
from benchmarks.cold_cache.times import flushes_of, samples_of, sizes_mib, times_of
from benchmarks.cold_cache.works import WORKS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "cold-cache-h200.json"
TIMES = "times.json"
# Around half of the L2, where a "hot" kernel begins to miss.
_FINE_MIB = (8, 20, 24, 28, 36, 40, 45, 52, 75, 90)
_FINE_WORKS, _FINE_WAYS = ("sum", "fill", "linear, 1 row"), ("hot", "read 2x", "write 256 MiB")
_HALVES_WORKS, _HALVES_WAYS = ("sum", "fill", "linear, 1 row", "add"), ("hot", "read 2x")


def take_times(folder: Path, n_samples: int, names: list[str], *, virtual: bool) -> None:
    """Take the durations of all kernels and write them to a file."""
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
        # Written after each, so that a visit that is cut short leaves what it has.
        document = {"origin": _origin(n_samples), "works": works}
        (folder / TIMES).write_text(json.dumps(document), encoding="utf-8")


def take_counts(labels_path: Path, budget_s: float, n_rounds: int, names: list[str]) -> None:
    """Run the samples that ncu is to watch."""
    _, small, quarter, half, whole, double, _ = sizes_mib()
    counted = [way for way in WAYS if way.counted and (not names or way.name in names)]
    works = [work for work in WORKS if work.counted]
    fine_works = [work for work in works if work.name in _FINE_WORKS]
    fine = [way for way in counted if way.name in _FINE_WAYS]
    # The most telling first, as the time may not reach for all.
    plan = [(work, size, counted) for size in (half, quarter) for work in works]
    plan += [(work, size, fine) for size in _FINE_MIB for work in fine_works]
    plan += [(work, size, counted) for size in (whole, small, double) for work in works]
    watch([item for item in plan if item[2]], flushes_of(counted), labels_path, budget_s, n_rounds)


def take_halves(labels_path: Path) -> None:
    """Run hot and cold kernels, for counts of what one half of the cache asks of the other."""
    ways = [way for way in WAYS if way.name in _HALVES_WAYS]
    works = [work for work in WORKS if work.name in _HALVES_WORKS]
    plan = [(work, size, ways) for work in works for size in (15, 30, *_FINE_MIB[3:8], 60)]
    watch(plan, flushes_of(ways), labels_path, budget_s=60, n_rounds=1)


def _origin(n_samples: int) -> dict[str, Any]:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 # a fixed command
    except OSError:
        driver = "none"
    return {
        "gpu": torch.cuda.get_device_name(),
        "l2_bytes": needed_bytes(1),
        "driver": driver,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "gpulab": gpulab.__version__,
        "date": datetime.now(UTC).date().isoformat(),
        "n_samples": n_samples,
    }


def _merged(reports: Iterable[Counts]) -> Counts:
    whole: Counts = defaultdict(lambda: defaultdict(dict))
    for report in reports:
        for work, sizes in report.items():
            for size, ways in sizes.items():
                whole[work][size] |= ways
    return whole


def gather(folder: Path, names: list[str]) -> None:
    """Join times and counters in the file of results."""
    document = json.loads((folder / TIMES).read_text(encoding="utf-8"))
    document["bytes"] = _merged(read_report(folder, name, MEMORY) for name in names)
    document["halves"] = read_report(folder, "halves", HALVES)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{RESULTS}: {RESULTS.stat().st_size} bytes")


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("time", "count", "halves", "gather", "table"))
    parser.add_argument("folder", type=Path, nargs="?", default=Path())
    parser.add_argument("--virtual", action="store_true")
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--works", nargs="*", default=[])
    parser.add_argument("--ways", nargs="*", default=[])
    parser.add_argument("--name", default="main", help="of the report of counters")
    parser.add_argument("--reports", nargs="*", default=["main"], help="those to be gathered")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for the counters")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--write", type=Path, help="the page whose tables are to be renewed")
    given = parser.parse_args()
    if given.what == "time" and given.virtual:
        with gpulab.virtual_gpu("H200", first_use=False):
            take_times(given.folder, given.samples, given.works, virtual=True)
    elif given.what == "time":
        take_times(given.folder, given.samples, given.works, virtual=False)
    elif given.what == "count":
        labels = given.folder / f"labels-{given.name}.json"
        take_counts(labels, given.budget, given.rounds, given.ways)
    elif given.what == "halves":
        take_halves(given.folder / "labels-halves.json")
    elif given.what == "gather":
        gather(given.folder, given.reports)
    else:
        from benchmarks.cold_cache.page import renew

        renew(RESULTS, given.write)


if __name__ == "__main__":
    main()
