"""Compare the virtual GPU's host, wall and device times with recorded ones."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.markdown import padded_table
from benchmarks.host_time.reading import QUANTITIES, predict


def judge(times: Path) -> str:
    """Return the tables of errors: of each program, and of all together."""
    programs = json.loads(times.read_text("utf-8"))["programs"]
    predicted = predict(list(programs))
    lines = [*_programs_table(programs, predicted), "", *_summary_table(programs, predicted)]
    return "\n".join(lines)


def error_of(recorded: float, predicted: float) -> float:
    """Return the predicted time over the recorded one, minus one."""
    return predicted / recorded - 1


def _programs_table(programs: dict[str, Any], predicted: dict[str, Any]) -> list[str]:
    rows = []
    for title, there in programs.items():
        here = predicted[title]
        failed = there.get("error") or here.get("error")
        if failed:
            rows.append([title, failed[:60], *[""] * (3 * len(QUANTITIES) - 1)])
            continue
        cells = [title]
        for name in QUANTITIES:
            cells += [f"{there[name]:.0f}", f"{here[name]:.0f}"]
            cells.append(f"{error_of(there[name], here[name]):+.0%}")
        rows.append(cells)
    head = ["program"]
    for name in QUANTITIES:
        short = name.removesuffix("_us")
        head += [f"{short}, H200 (us)", "virtual (us)", "error"]
    return padded_table(head, rows)


def _summary_table(programs: dict[str, Any], predicted: dict[str, Any]) -> list[str]:
    rows = []
    for name in QUANTITIES:
        errors = [
            error_of(there[name], predicted[title][name])
            for title, there in programs.items()
            if name in there and name in predicted[title]
        ]
        # The size of the errors is judged, and the last column shows their direction: an error
        # with a sign can average to zero.
        sizes = sorted(map(abs, errors))
        if sizes:
            cells = [statistics.median(sizes), quantile(sizes, 0.9)]
            texts = [*(f"{item:.1%}" for item in cells), f"{statistics.median(errors):+.1%}"]
            rows.append([name.removesuffix("_us"), str(len(sizes)), *texts])
    return padded_table(["time", "programs", "median", "p90", "median with sign"], rows)


def quantile(sizes: Sequence[float], share: float) -> float:
    """Return a quantile of sorted numbers, interpolated between neighbours."""
    place = share * (len(sizes) - 1)
    low = int(place)
    high = min(low + 1, len(sizes) - 1)
    return sizes[low] + (sizes[high] - sizes[low]) * (place - low)
