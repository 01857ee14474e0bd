"""Compare two recorded GPUs with each other, and the virtual ones with both.

    python -m benchmarks.two_gpus            print the tables
    python -m benchmarks.two_gpus --write    put them into docs/recordings.md and docs/fidelity.md

The model was fitted to the first GPU. For the second it uses the data sheet alone, so the error of
the ratio between both says how well the rules between two data sheets are.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import ROOT
from benchmarks.common.markdown import percent, print_or_write, table
from gpulab import gpus, recordings
from gpulab.roofline._kernel_model import predict_by_kernels
from gpulab.views.explorers._sources import FAMILIES
from gpulab.workloads.sweeps import Point

FITTED, OTHER = "h200-sxm-2026-11", "h100-sxm-2026-11"
# Shorter times differ by the method of the floor, which the two recordings do not share.
LEAST_S = 8e-6
RECORDINGS_PAGE, FIDELITY_PAGE = ROOT / "docs" / "recordings.md", ROOT / "docs" / "fidelity.md"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables, or put them into their pages."""
    parser = parser_of("benchmarks.two_gpus", __doc__)
    parser.add_argument("--write", action="store_true", help="put the tables into the pages")
    options = parser.parse_args(arguments)
    texts = {
        ("two-gpus", RECORDINGS_PAGE): side_by_side(),
        ("extrapolated", FIDELITY_PAGE): extrapolated(compared()),
    }
    for (name, page), text in texts.items():
        print_or_write(text, page if options.write else None, name)


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


def compared() -> pd.DataFrame:
    """Return the long times of both recordings beside those of the virtual GPUs, with errors."""
    first, second = _timed(FITTED), _timed(OTHER)
    return with_errors(
        [
            (
                task.workload,
                point.median_s,
                second[key].median_s,
                *(
                    predict_by_kernels(
                        task.workload, task.size, task.dtype, gpus.gpu(name), task.cache
                    ).duration_s
                    for name in ("H200", "H100")
                ),
            )
            for key, point in first.items()
            for task in [point.task]
            if key in second and point.median_s >= LEAST_S
        ]
    )


def with_errors(times_s: Sequence[tuple[str, float, float, float, float]]) -> pd.DataFrame:
    """Return a row for each workload, recorded and virtual on the fitted GPU and on the other.

    The error of the ratio between both GPUs is that of the rules between two data sheets.
    """
    columns = ("workload", "fitted_s", "other_s", "virtual_fitted_s", "virtual_other_s")
    times = pd.DataFrame(times_s, columns=columns)
    family_of = {name: family for family, names in FAMILIES for name in names}
    return times.assign(
        family=times["workload"].map(family_of),
        recorded=times["other_s"] / times["fitted_s"],
        virtual=times["virtual_other_s"] / times["virtual_fitted_s"],
        error=times["virtual_other_s"] / times["other_s"] - 1,
        fitted_error=times["virtual_fitted_s"] / times["fitted_s"] - 1,
        ratio_error=lambda rows: rows["virtual"] / rows["recorded"] - 1,
    )


def _timed(name: str) -> dict[str, Point]:
    return {
        point.task.key: point
        for point in recordings.load(name).points
        if point.ok and (point.task.on, point.task.method) == ("gpu", "calibrated")
    }


def extrapolated(times: pd.DataFrame) -> str:
    """Return a table of the errors of each family of workloads, and of all."""
    groups = [("all", times), *times.groupby("family", sort=False)]
    rows = [
        [
            str(family),
            str(len(group)),
            f"{group['recorded'].median():.2f}",
            f"{group['virtual'].median():.2f}",
            *(
                percent(float(np.quantile(group[name].abs(), share, method=how)))
                for name in ("ratio_error", "error", "fitted_error")
                for share, how in ((0.5, "linear"), (0.9, "inverted_cdf"))
            ),
        ]
        for family, group in groups
    ]
    errors = ("error of the ratio", "p90", "error on the H100", "p90", "on the H200", "p90")
    return "\n".join(table(["family", "times", "H100 / H200, recorded", "virtual", *errors], rows))


if __name__ == "__main__":
    main()
