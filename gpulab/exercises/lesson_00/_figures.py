"""The figure of lesson 00: what several methods read, beside a recording of another GPU."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab.core.units import format_percent, format_ratio, format_time
from gpulab.device.measurement import Measurement
from gpulab.figures import (
    MUTED,
    Figure,
    Plot,
    finish,
    log_axis,
    look_of,
    name_point,
    size_ticks,
    unit_of,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_ALIKE = 1.1  # times; readings that differ by less are called nearly the same


@dataclass(frozen=True, slots=True)
class _BesideRecorded(Plot):
    record: "pd.DataFrame"
    recorded: "pd.DataFrame"

    @property
    def ratios(self) -> list[tuple[str, float]]:
        """Each method's name, and its reading over the recorded time; the farthest is last."""
        here = self.record[self.record["method"].notna()]
        ratios = [
            (str(row["method"]), row["median_s"] / self.recorded_s) for _, row in here.iterrows()
        ]
        return sorted(ratios, key=lambda each: _distance(each[1]))

    @property
    def recorded_s(self) -> float:
        """The recorded seconds for the size that was measured."""
        is_same = self.recorded["size"] == self.record["size"].iloc[-1]
        return float(self.recorded.loc[is_same, "median_s"].iloc[0])

    @property
    def title(self) -> str:
        ratios = self.ratios
        said = [f"{name} reads {_in_words(ratio)}" for name, ratio in (ratios[-1], ratios[0])]
        name = self.recorded["device_name"].iloc[0]
        return f"A recorded {name} took {format_time(self.recorded_s)}: {said[0]},\n{said[1]}"

    @property
    def words(self) -> str:
        here = self.record[self.record["method"].notna()]
        return "\n".join(
            f"{row['method']} reads {format_time(row['median_s'])} for n = {row['size']:,}."
            for _, row in here.iterrows()
        )

    def draw(self, ax: "Axes") -> "Axes":
        scale, unit = unit_of(self.record["median_s"])
        here = self.record[self.record["method"].notna()]
        ax.plot(
            self.recorded["size"],
            self.recorded["median_s"] / scale,
            color=MUTED,
            marker="o",
            markerfacecolor="white",
            label="recorded",
        )
        look = look_of("kernel")
        for _, row in here.iterrows():
            point = (row["size"], row["median_s"] / scale)
            ax.plot(*point, linestyle="none", marker=look.marker, markersize=9, color=look.colour)
            name_point(ax, f"{row['method']}: {format_time(row['median_s'])}", point)
        log_axis(ax, "x")
        log_axis(ax, "y")
        size_ticks(ax, self.recorded["size"])
        ax.grid(visible=True)
        return finish(ax, "Line chart", "n (matrices are n by n)", f"time per call ({unit})")


def _distance(ratio: float) -> float:
    return max(ratio, 1 / ratio)


def _in_words(ratio: float) -> str:
    if _distance(ratio) < _ALIKE:
        return "nearly the same"
    if ratio < 1:
        return f"{format_percent(ratio)} of that"
    return f"{format_ratio(ratio, 2)} times as much"


def beside_recorded(methods: Sequence[Measurement], recorded: "pd.DataFrame", *, n: int) -> Figure:
    """Draw what methods read for one size, beside the recorded times of all sizes.

    The columns of the recording are ``size``, ``median_s``, ``source`` and ``device_name``.
    """
    import pandas as pd

    columns = ["size", "median_s", "source", "device_name"]
    rows = recorded.sort_values("size").drop_duplicates("size")[columns]
    here = pd.DataFrame(
        [(n, m.median_s, m.source, m.conditions.device_name, m.method) for m in methods],
        columns=[*columns, "method"],
    )
    return _BesideRecorded(pd.concat([rows, here], ignore_index=True), rows).figure()
