"""The tables and the figure of docs/cold-cache.md, from the file of results."""

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.cold_cache.figure import draw
from benchmarks.common.markdown import put_between_markers, table

Results = dict[str, Any]
Lines = list[str]

CLEAN, USUAL, ROTATED = "read 2x", "write 256 MiB", "rotate 2x"
_REFERENCE = "read 4x"  # the largest flush that leaves no dirty lines
_MB = 1e6
_LEAST_READ_BYTES = 100_000  # a kernel that reads less has no meaningful share of hits
# The small sizes, and a quarter of the L2 of 60 MiB to four times its size.
_COST_MIB = ("1", "4", "15", "30", "60", "120", "240")
_READS = ("read 1x", "read 1.25x", "read 1.5x", "read 2x", "read 3x", "read 4x")
_FIGURE = "cold-cache.svg"


def renew(results: Path, page: Path | None) -> None:
    """Print the tables, or put them and the figure into the page."""
    found = json.loads(results.read_text(encoding="utf-8"))
    tables = {name: "\n".join(make(found)) for name, make in TABLES.items()}
    if page is None:
        print("\n\n".join(tables.values()))
        return
    for name, text in tables.items():
        put_between_markers(page, name, text)
    draw(found, page.parent / "images" / _FIGURE)


def time_us(found: Results, work: str, size: str, way: str) -> float:
    """Return the median duration of a kernel after one way, in microseconds."""
    return found["works"][work]["times_us"][size][way][0]


def more_percent(found: Results, work: str, size: str, way: str, than: str = CLEAN) -> float:
    """Return how much longer a kernel takes after one way than after another, in percent."""
    base_us = time_us(found, work, size, than)
    return 100 * (time_us(found, work, size, way) / base_us - 1)


def _origin(found: Results) -> Lines:
    origin = dict(found["origin"])
    origin["l2_mib"] = round(origin["l2_bytes"] / 2**20)
    line = (
        "{gpu} (L2 of {l2_mib} MiB), driver {driver}, CUDA {cuda}, torch {torch}, "
        "Python {python}, gpulab {gpulab}, {date}; each time is the median of {n_samples} records."
    )
    return [line.format(**origin)]


def _ways(found: Results) -> Lines:
    names = list(next(iter(found["works"].values()))["times_us"]["30"])
    rows = [_way(found, name) for name in sorted(names, key=_ORDER.index)]
    head = ["ahead of the kernel", "takes, µs", "still in the L2, at most"]
    return table(
        [*head, "written back beyond its own, MB: median (most)", "kernel's time: median (most)"],
        rows,
    )


def _way(found: Results, way: str) -> Lines:
    flush_us = statistics.median(work["flush_us"][way] for work in found["works"].values())
    shares, dirty_mb = _residues(found, way)
    times = [
        more_percent(found, work, size, way, _REFERENCE)
        for work in found["works"]
        for size in _COST_MIB
    ]
    is_flush = flush_us > 0 and not way.startswith(("hot", "rotate"))
    return [
        way,
        f"{flush_us:.0f}" if is_flush else "-",
        f"{max(shares):.1f} %" if shares else "-",
        f"{statistics.median(dirty_mb):.1f} ({max(dirty_mb):.1f})" if dirty_mb else "-",
        f"{statistics.median(times):+.1f} % ({max(times, key=abs):+.1f} %)",
    ]


def _residues(found: Results, way: str) -> tuple[list[float], list[float]]:
    """Return the percentages still in the cache, and MB written back beyond the reference's."""
    shares, dirty_mb = [], []
    for sizes in found["bytes"].values():
        for ways in sizes.values():
            if way not in ways or _REFERENCE not in ways:
                continue
            (read, written), (all_read, own) = ways[way], ways[_REFERENCE]
            # A large working set writes back some of its own results whatever the flush; only what
            # exceeds that was left by the flush.
            dirty_mb.append(max(0.0, (written - own) / _MB))
            if all_read > _LEAST_READ_BYTES:
                shares.append(max(0.0, 100 * (1 - read / all_read)))
    return shares, dirty_mb


def _costs(found: Results, way: str) -> Lines:
    rows = [
        [work, *(f"{more_percent(found, work, size, way):+.0f} %" for size in _COST_MIB)]
        for work in found["works"]
    ]
    return table(["kernel", *(f"{size} MiB" for size in _COST_MIB)], rows)


def _half(found: Results) -> Lines:
    rows = []
    for work, sizes in found["bytes"].items():
        cells = [
            f"{time_us(found, work, '30', way):.1f}" for way in ("hot", CLEAN, USUAL, ROTATED)
        ]
        moved = [sizes["30"][way] for way in ("hot", CLEAN, USUAL, ROTATED)]
        cells += [f"{read / _MB:.1f} / {written / _MB:.1f}" for read, written in moved]
        rows.append([work, *cells])
    names = ("hot", "read", "write", "rotated")
    head = [f"{name}, µs" for name in names] + [f"{name}, MB in / out" for name in names]
    return table(["kernel", *head], rows)


def _amounts(found: Results) -> Lines:
    cases = (("scale in place", "30"), ("fill", "30"), ("softmax", "60"), ("sum", "30"))
    rows = []
    for way in _READS:
        flush_us = statistics.median(work["flush_us"][way] for work in found["works"].values())
        shares, _ = _residues(found, way)
        moved = [found["bytes"][work][size][way][1] / _MB for work, size in cases]
        rows.append(
            [way, f"{flush_us:.0f}", f"{max(shares):.1f} %", *(f"{mb:.2f}" for mb in moved)]
        )
    heads = [f"{work}, {size} MiB: MB out" for work, size in cases]
    return table(["flush", "takes, µs", "still in the L2, at most", *heads], rows)


def _staircase(found: Results) -> Lines:
    sizes = sorted(found["halves"]["sum"], key=int)
    rows = []
    for size in sizes:
        cells = []
        for work in ("sum", "linear, 1 row"):
            cells.append(f"{found['bytes'][work][size]['hot'][0] / _MB:.1f}")
            for way in ("hot", CLEAN):
                asked, _, crossed, _ = found["halves"][work][size][way]
                cells.append(f"{100 * crossed / asked:.0f} %")
        rows.append([f"{size} MiB", *cells])
    parts = ("hot: MB from memory", "hot: crossing", "cold: crossing")
    return table(["working set", *(f"{w}, {p}" for w in ("sum", "linear") for p in parts)], rows)


_ORDER = [
    *("hot", "reset persisting"),
    *("write 256 MiB", "write 1x", "write 2x", "memset 1x", "memset 2x"),
    *("write 256 MiB, wait 1 ms", "write 256 MiB, discard", "write 256 MiB, read 2x"),
    *(*_READS, "read 1x, twice", "amax 2x"),
    *("one of 32 words, 2x", "one of 32 words, 3x", "one of 32 words, 2x, by torch"),
    *("prefetch 2x", "rotate 1x", "rotate 2x", "rotate 4x", "rotate 2x, same output"),
]
TABLES: dict[str, Callable[[Results], Lines]] = {
    "origin": _origin,
    "ways": _ways,
    "write": lambda found: _costs(found, USUAL),
    "rotate": lambda found: _costs(found, ROTATED),
    "half": _half,
    "amounts": _amounts,
    "staircase": _staircase,
}
