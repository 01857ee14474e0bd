"""Compare two recorded GPUs with each other, and the virtual ones with both.

    python -m benchmarks.two_gpus            print the tables
    python -m benchmarks.two_gpus --write    put them into docs/recordings.md and docs/fidelity.md

The model was fitted to the first GPU. For the second it uses the data sheet alone, so the error of
the ratio between both says how well the rules between two data sheets are.
"""

import argparse
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import ROOT
from benchmarks.common.markdown import percent, put_between_markers, table
from gpulab import gpus, recordings
from gpulab.roofline._kernel_model import predict_by_kernels
from gpulab.views.explorers._sources import FAMILIES
from gpulab.workloads.sweeps import Point

FITTED, OTHER = "h200-sxm-2026-11", "h100-sxm-2026-11"
# Shorter times differ by the method of the floor, which the two recordings do not share.
LEAST_S = 8e-6
RECORDINGS_PAGE, FIDELITY_PAGE = ROOT / "docs" / "recordings.md", ROOT / "docs" / "fidelity.md"


@dataclass(frozen=True, slots=True)
class Compared:
    """One workload on both GPUs: recorded and virtual times in seconds, at one size and type."""

    workload: str
    fitted_s: float
    other_s: float
    virtual_fitted_s: float
    virtual_other_s: float

    @property
    def error(self) -> float:
        """The error of the other GPU's virtual time."""
        return self.virtual_other_s / self.other_s - 1

    @property
    def fitted_error(self) -> float:
        """The error of the fitted GPU's virtual time."""
        return self.virtual_fitted_s / self.fitted_s - 1

    @property
    def ratio_error(self) -> float:
        """The error of the ratio between both: that of the rules between two data sheets."""
        ratio = self.virtual_other_s / self.virtual_fitted_s
        return ratio / (self.other_s / self.fitted_s) - 1


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables, or put them into their pages."""
    options = parser().parse_args(arguments)
    texts = {
        ("two-gpus", RECORDINGS_PAGE): side_by_side(),
        ("extrapolated", FIDELITY_PAGE): extrapolated(compared()),
    }
    for (name, page), text in texts.items():
        if options.write:
            put_between_markers(page, name, text)
        else:
            print(text, end="\n\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.two_gpus", __doc__)
    made.add_argument("--write", action="store_true", help="put the tables into the pages")
    return made


def side_by_side() -> str:
    """Return a table with the ratio of both recordings for each workload, short and long."""
    frame = recordings.compare(FITTED, OTHER)
    gpu = frame[
        (frame["on"] == "gpu") & (frame["method"] == "calibrated") & (frame.cache == "cold")
    ]
    rows = []
    for name, group in gpu[gpu["dtype"] == "float32"].groupby("workload", sort=True):
        largest = group.loc[group["a_s"].idxmax()]
        rows.append(
            [
                f"`{name}`",
                f"{largest['size']:,}",
                f"{largest['a_s'] * 1e6:,.1f}",
                f"{largest['b_s'] * 1e6:,.1f}",
                f"{largest['ratio']:.2f}",
                f"{largest['low']:.2f} to {largest['high']:.2f}",
            ]
        )
    rows.sort(key=lambda row: float(row[4]), reverse=True)
    head = ["workload", "size", "H200, µs", "H100, µs", "ratio", "95 % interval"]
    return "\n".join(table(head, rows))


def compared() -> list[Compared]:
    """Return the long times of both recordings beside those of the virtual GPUs."""
    first, second = _timed(FITTED), _timed(OTHER)
    return [
        Compared(
            point.task.workload,
            point.median_s,
            second[key].median_s,
            *(
                predict_by_kernels(
                    point.task.workload,
                    point.task.size,
                    point.task.dtype,
                    gpus.gpu(name),
                    point.task.cache,
                ).duration_s
                for name in ("H200", "H100")
            ),
        )
        for key, point in first.items()
        if key in second and point.median_s >= LEAST_S
    ]


def _timed(name: str) -> dict[str, Point]:
    return {
        point.task.key: point
        for point in recordings.load(name).points
        if point.ok and (point.task.on, point.task.method) == ("gpu", "calibrated")
    }


def extrapolated(found: Iterable[Compared]) -> str:
    """Return a table of the errors of each family of workloads, and of all."""
    family_of = {name: family for family, names in FAMILIES for name in names}
    groups: dict[str, list[Compared]] = defaultdict(list)
    for each in found:
        groups[family_of[each.workload]].append(each)
    groups = {"all": [each for group in groups.values() for each in group], **groups}
    rows = [
        [
            family,
            str(len(group)),
            f"{statistics.median(each.other_s / each.fitted_s for each in group):.2f}",
            f"{statistics.median(e.virtual_other_s / e.virtual_fitted_s for e in group):.2f}",
            *_errors(group, lambda each: each.ratio_error),
            *_errors(group, lambda each: each.error),
            *_errors(group, lambda each: each.fitted_error),
        ]
        for family, group in groups.items()
    ]
    head = [
        "family",
        "times",
        "H100 / H200, recorded",
        "virtual",
        "error of the ratio",
        "p90",
        "error on the H100",
        "p90",
        "on the H200",
        "p90",
    ]
    return "\n".join(table(head, rows))


def _errors(group: Sequence[Compared], of: Callable[[Compared], float]) -> list[str]:
    errors = sorted(abs(of(each)) for each in group)
    p90 = errors[min(len(errors) - 1, math.ceil(0.9 * len(errors)) - 1)]
    return [percent(statistics.median(errors)), percent(p90)]


if __name__ == "__main__":
    main()
