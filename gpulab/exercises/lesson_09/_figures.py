"""Figures and tables of lesson 09: the sizes at which the GPU overtakes the CPU, by operation."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpulab.core.units import format_ratio
from gpulab.figures import (
    Figure,
    Plot,
    finish,
    legend_below,
    log_axis,
    look_of,
    marks,
    source_of,
)
from gpulab.roofline.scaling import Crossing, Crossover, Curve
from gpulab.workloads import workload

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_APART = 0.3  # distance between the series, as a share of a row
_MARKERS = ("o", "s")
_KIB = 1024
_HEIGHT_IN = 5.4
_EDGES = {"always": "<", "never": ">"}
_SHORT = {
    "always": "GPU faster at all sizes",
    "never": "GPU faster at no size",
    "undecided": "not decided",
}


def crossings_of(records: Iterable[Crossover]) -> "pd.DataFrame":
    """Return a table of the crossings of several operations, without transfers and with them.

    Sizes mean different things for different operations, so the sizes are the bytes of inputs and
    results together, in KiB: ``size_kib``, ``low_kib``, ``high_kib``. Without a crossing the three
    are the smallest or the largest size that was compared. Curves that cross more than once have a
    row for each crossing, without an interval. ``text`` is the crossing in words.
    """
    import pandas as pd

    rows = []
    for record in records:
        rows += _rows(record, "without transfers", record.bare_crossing)
        if record.transfers != "none":
            rows += _rows(record, "with transfers", record.crossing)
    return pd.DataFrame(rows)


@dataclass(frozen=True, slots=True)
class _Crossings(Plot):
    """The crossing of each operation in a row, with its 95 % interval.

    A triangle at the edge of the measured sizes means that there is no crossing between them. It
    points to where one might be, and the legend says which side is faster. If two curves cross
    more than once, a line joins their crossings.
    """

    record: "pd.DataFrame"

    @property
    def title(self) -> str:
        once = self.record[self.record["kind"] == "once"]
        if once["operation"].nunique() < 2:  # noqa: PLR2004  # a comparison needs two
            return "Where the GPU gets ahead of the CPU"
        ordered = once.sort_values("size_kib")
        first, last = (ordered.iloc[end] for end in (0, -1))
        low, high = (
            f"{row['operation']} ({format_ratio(row['size_kib'])} KiB)" for row in (first, last)
        )
        return f"The GPU gets ahead first in {low}, last in {high}"

    @property
    def words(self) -> str:
        texts = self.record[["operation", "series", "text"]].drop_duplicates()
        return "\n".join(
            f"{operation} {series}: {text}."
            for operation, series, text in texts.itertuples(index=False)
        )

    height_in = _HEIGHT_IN

    def draw(self, ax: "Axes") -> "Axes":
        names = list(dict.fromkeys(self.record["operation"]))
        parts = [part for _, part in self.record.groupby("series", sort=False)]
        for index, (part, marker) in enumerate(zip(parts, _MARKERS, strict=False)):
            known = part[part["size_kib"].notna()]
            # Move the series of a row apart, so that their intervals do not cover each other.
            aside = _APART * (index - (len(parts) - 1) / 2)
            known = known.assign(row=[names.index(name) + aside for name in known["operation"]])
            self._draw_series(ax, known, str(part["series"].iloc[0]), marker)
        self._name_signs(ax)
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.grid(visible=True, axis="x")
        log_axis(ax, "x")
        legend_below(ax)
        x_label = "inputs and results at the crossing (KiB)"
        return finish(ax, "Dot plot", x_label, "", legend=False)

    def _draw_series(self, ax: "Axes", crossings: "pd.DataFrame", name: str, marker: str) -> None:
        signs = self._signs(marker)
        size = crossings["size_kib"]
        reach = [size - crossings["low_kib"], crossings["high_kib"] - size]
        bars = {"fmt": "none", "ecolor": signs["color"], "capsize": 3, "elinewidth": 1.2}
        ax.errorbar(size, crossings["row"], xerr=reach, **bars)
        for kind, mark in {"once": marker, **_EDGES}.items():
            chosen = crossings[crossings["kind"] == kind]
            label = name if kind == "once" else None
            ax.plot(chosen["size_kib"], chosen["row"], label=label, **signs | {"marker": mark})
        for _, often in crossings[crossings["kind"] == "several"].groupby("row"):
            ax.plot(often["size_kib"], often["row"], **signs | {"linestyle": ":"})

    def _name_signs(self, ax: "Axes") -> None:
        """Draw empty lines: the legend then names each sign once, whichever series has it."""
        signs = self._signs("o")
        for kind in dict.fromkeys(self.record["kind"]):
            if kind in _EDGES:
                own = signs | {"marker": _EDGES[kind]}
                ax.plot([], [], label=f"no crossing: {_SHORT[kind]}", **own)
            elif kind == "several":
                ax.plot([], [], label="several crossings, joined", **signs | {"linestyle": ":"})

    def _signs(self, marker: str) -> dict[str, Any]:
        look = look_of("GPU")._replace(marker=marker)
        return marks(look, source_of(self.record)) | {"linestyle": "none", "markersize": 8}


def draw_crossings(records: Sequence[Crossover]) -> Figure:
    """Return a figure of the crossings of several operations."""
    return _Crossings(crossings_of(records)).figure(source=records[0].origin)


def causes(records: Iterable[Crossover]) -> "pd.DataFrame":
    """Return a table of crossings without transfers, with two quantities that might explain them.

    It has a row for each operation, sorted by ``crossing (KiB)``. ``FLOP/byte`` is the arithmetic
    intensity. ``CPU (GB/s)`` is the rate at which the CPU processes inputs and results at the
    crossing, or at the smallest size if there is none.
    """
    import pandas as pd

    rows = []
    for record in records:
        crossing, work = record.bare_crossing, workload(record.workload)
        size = crossing.size or float(crossing.first)
        n = max(1, round(size))
        n_bytes = _KIB * _kib(record, size)
        row = {"operation": record.workload, "crossing (KiB)": n_bytes / _KIB}
        row |= {"FLOP/byte": work.flops(n) / work.bytes(n, record.dtype)}
        rows.append(row | {"CPU (GB/s)": n_bytes / _time_s(record.cpu, size) / 1e9})
    return pd.DataFrame(rows).set_index("operation").sort_values("crossing (KiB)")


def short(crossing: Crossing) -> str:
    """Return a crossing as a short text, for a column of a table."""
    return _SHORT.get(crossing.kind, str(crossing))


def _rows(record: Crossover, series: str, crossing: Crossing) -> list[dict[str, object]]:
    ends = {"always": crossing.first, "never": crossing.last}
    size = ends.get(crossing.kind, crossing.size)
    # An interval may reach beyond the sizes that were compared, where nothing is known.
    low = size if crossing.low is None else max(crossing.low, crossing.first)
    high = size if crossing.high is None else min(crossing.high, crossing.last)
    several = crossing.kind == "several"
    points = [(at, at, at) for at in crossing.sizes] if several else [(size, low, high)]
    return [
        {
            "operation": record.workload,
            "series": series,
            "kind": crossing.kind,
            "text": short(crossing),
            "size_kib": _kib(record, at),
            "low_kib": _kib(record, begin),
            "high_kib": _kib(record, end),
            "source": record.gpu.source,
        }
        for at, begin, end in points
    ]


def _kib(record: Crossover, size: float | None) -> float:
    """Return the KiB of inputs and results of a size, which may be between two whole numbers."""
    if size is None:
        return math.nan
    below = max(1, math.floor(size))
    bytes_below, bytes_above = (
        workload(record.workload).bytes(n, record.dtype) for n in (below, below + 1)
    )
    return (bytes_below + (size - below) * (bytes_above - bytes_below)) / _KIB


def _time_s(curve: Curve, size: float) -> float:
    """Return the seconds of a curve at a size, interpolated on a double logarithmic scale."""
    import numpy as np

    at = np.interp(math.log(size), np.log(curve.sizes), np.log(curve.median_s))
    return math.exp(float(at))
