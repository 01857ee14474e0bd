"""Take the main figures of lessons 04 to 08 on the GPU of this machine and on the virtual H200.

    python benchmarks/both_worlds.py run                           20 to 60 s, into --out
    python benchmarks/both_worlds.py report --write docs/lessons.md

``run`` takes the virtual ones anywhere, and those of a CUDA GPU where there is one; what the file
holds of the other world is kept. The figures are printed and never asserted.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import gpulab
from benchmarks.accuracy.report import put_between_markers, source
from benchmarks.common.environment import provenance
from benchmarks.lessons.figures import Figure, of_all
from gpulab.units import format_time

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "both-worlds-h200.json"
SCHEMA = "gpulab.both-worlds/1"
WORLDS = {"measured": "cuda", "virtual": "H200"}
TITLES = {
    "04": "Warm-up",
    "05": "Fixed clocks",
    "06": "Cache flush",
    "07": "Sleep and graphs",
    "08": "Streams",
}
_NONE = "not taken"


def run(out: Path) -> None:
    """Take the figures of each world that this machine has, and write them after each."""
    found = json.loads(out.read_text("utf-8")) if out.exists() else {"schema": SCHEMA}
    for world, gpu in WORLDS.items():
        if world == "measured" and not torch.cuda.is_available():
            print("no CUDA GPU: only the virtual figures are taken")
            continue
        start_s = time.perf_counter()
        gpulab.use(gpu)
        figures = dict(of_all())
        with gpulab.device.active():
            at = provenance(virtual=world == "virtual")
        found[world] = {"provenance": at, "figures": figures}
        print(f"{world}: {time.perf_counter() - start_s:.1f} s", flush=True)
        out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print("\n".join(report(found)))


def report(found: dict[str, Any]) -> Iterator[str]:
    """Yield the table, one row a figure, and where both columns come from."""
    yield "| lesson | figure | measured on an H200 | virtual H200 | virtual / measured |"
    yield "| --- | --- | --: | --: | --: |"
    for lesson, title in TITLES.items():
        columns = {world: _figures(found, world, lesson) for world in WORLDS}
        names = dict.fromkeys(name for column in columns.values() for name in column)
        for row, name in enumerate(names):
            pair = [columns[world].get(name) for world in WORLDS]
            head = f"{lesson} {title}" if row == 0 else ""
            yield f"| {head} | {name} | {' | '.join(map(_text, pair))} | {_ratio(*pair)} |"
    for world in WORLDS:
        if world in found:
            yield ""
            yield source(found[world]["provenance"])


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
    # A ratio of counts or of errors near zero says nothing.
    if measured is None or virtual is None or measured.unit not in {"s", "MHz", "W", "times"}:
        return ""
    return f"{virtual.value / measured.value:.2f}"


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("--out", type=Path, default=RESULTS, help="file of results")
    parser.add_argument("--write", type=Path, help="page with the two markers")
    given = parser.parse_args()
    if given.what == "run":
        run(given.out)
        return
    text = "\n".join(report(json.loads(given.out.read_text("utf-8"))))
    if given.write is None:
        print(text)
    else:
        put_between_markers(given.write, "both worlds", text)


if __name__ == "__main__":
    main()
