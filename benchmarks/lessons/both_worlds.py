"""Measure the lessons' figures on a real and a virtual GPU, and write them as a table."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import gpulab
from benchmarks.common.environment import provenance
from benchmarks.common.markdown import put_between_markers, source, table
from benchmarks.lessons.figures import Figure, of_all
from gpulab.core.units import format_time

SCHEMA = "gpulab.both-worlds/1"
WORLDS = {"measured": "cuda", "virtual": "H200"}
TITLES = {
    "04": "Warm-up",
    "05": "Fixed clocks",
    "06": "Cache flush",
    "07": "Sleep and graphs",
    "08": "Streams",
}
_HEAD = ("lesson", "figure", "measured on an H200", "virtual H200", "virtual / measured")
_NONE = "not taken"


def run(out: Path) -> None:
    """Measure the figures on each GPU that this machine has, and write the file after each."""
    # A machine without a GPU renews only the virtual column; the measured one stays.
    found = json.loads(out.read_text("utf-8")) if out.exists() else {"schema": SCHEMA}
    for world, gpu in WORLDS.items():
        if world == "measured" and not torch.cuda.is_available():
            print("no CUDA GPU: only the virtual figures are measured")
            continue
        start_s = time.perf_counter()
        gpulab.use(gpu)
        figures = dict(of_all())
        with gpulab.device.active():
            at = provenance()
        found[world] = {"provenance": at, "figures": figures}
        print(f"{world}: {time.perf_counter() - start_s:.1f} s", flush=True)
        out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print("\n".join(report(found)))


def report(found: dict[str, Any]) -> Iterator[str]:
    """Yield the table, one row for each figure, and the sources of both columns."""
    rows = [row for lesson in TITLES for row in _rows(found, lesson)]
    yield from table(_HEAD, rows, n_names=2)
    for world in WORLDS:
        if world in found:
            yield ""
            yield source(found[world]["provenance"])


def _rows(found: dict[str, Any], lesson: str) -> Iterator[list[str]]:
    columns = {world: _figures(found, world, lesson) for world in WORLDS}
    names = dict.fromkeys(name for column in columns.values() for name in column)
    for row, name in enumerate(names):
        pair = [columns[world].get(name) for world in WORLDS]
        head = f"{lesson} {TITLES[lesson]}" if row == 0 else ""
        yield [head, name, *map(_text, pair), _ratio(*pair)]


def _figures(found: dict[str, Any], world: str, lesson: str) -> dict[str, Figure]:
    rows = found.get(world, {}).get("figures", {}).get(lesson, [])
    return {figure.what: figure for figure in (Figure(*row) for row in rows)}


def _text(figure: Figure | None) -> str:
    if figure is None:
        return _NONE
    if figure.unit == "s":
        return format_time(figure.value)
    digits = {"times": ".2f", "%": ".1f"}.get(figure.unit, ".0f")
    return f"{figure.value:{digits}} {figure.unit}"


def _ratio(measured: Figure | None, virtual: Figure | None) -> str:
    # The ratio of two counts, or of two errors near zero, means nothing.
    if measured is None or virtual is None or measured.unit not in {"s", "MHz", "W", "times"}:
        return ""
    return f"{virtual.value / measured.value:.2f}"


def write(results: Path, page: Path | None) -> None:
    """Print the table, or put it into the page."""
    text = "\n".join(report(json.loads(results.read_text("utf-8"))))
    if page is None:
        print(text)
    else:
        put_between_markers(page, "both worlds", text)
