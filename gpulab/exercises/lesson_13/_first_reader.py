"""A picture of two streams: one writes a tensor, the other reads it, and one of them is first."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpulab.core.units import format_time
from gpulab.figures import INK, Figure, Plot, finish, look_of, unit_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gpulab.tracing import Timeline

_BAR, _LEAST_WIDTH = 0.5, 0.006  # height in rows; of the axis, so that a short kernel is seen
_ROWS = ("current stream", "other stream")


@dataclass(frozen=True, slots=True)
class _FirstReader(Plot):
    """The kernels of two streams; the last launched kernel reads what the other stream writes."""

    record: "pd.DataFrame"

    @property
    def reads_s(self) -> float:
        """When the last launched kernel begins."""
        return float(self.record["start_s"].iloc[-1])

    @property
    def written_s(self) -> float:
        """When the last kernel of the other stream ends."""
        return float(self.record.loc[self.record["row"] == 1, "end_s"].max())

    @property
    def title(self) -> str:
        early_s = self.written_s - self.reads_s
        if early_s <= 0:
            return "The current stream reads y after it is written"
        return f"The current stream reads y {format_time(early_s)} before it is written"

    @property
    def words(self) -> str:
        return (
            f"The other stream has written y after {format_time(self.written_s)}. The current "
            f"stream reads it after {format_time(self.reads_s)}."
        )

    @property
    def height_in(self) -> float:
        return 2.9

    def draw(self, ax: "Axes") -> "Axes":
        scale, unit = unit_of([self.written_s])
        rows = self.record["row"].tolist()
        starts, ends = (self.record[name].to_numpy() / scale for name in ("start_s", "end_s"))
        end = float(ends.max())
        widths = np.maximum(ends - starts, _LEAST_WIDTH * end)
        ax.barh(rows, widths, _BAR, starts, color=look_of("kernel").colour)
        for time_s, row, text, side in (
            (self.reads_s / scale, 0, "y.sum() reads y", "left"),
            (self.written_s / scale, 1, "y is written", "right"),
        ):
            ax.axvline(time_s, color=INK, linestyle=":", linewidth=1.5)
            height = row + (0.5 if row else -0.5)
            ax.annotate(
                text,
                (time_s, height),
                (8 if side == "left" else -8, 0),
                textcoords="offset points",
                ha=side,
                va="center",
                fontweight="bold",
            )
        ax.set_yticks(range(len(_ROWS)), _ROWS)
        ax.set_ylim(-0.8, 1.8)
        ax.set_xlim(0, end * 1.02)
        return finish(ax, "Timeline", f"time ({unit})", "", legend=False)


def first_reader(observed: "Timeline") -> Figure:
    """Return a figure of a program that writes in one stream and then reads in the current one.

    The last launched kernel of the timeline is the one that reads.
    """
    kernels = observed.to_frame().query("kind == 'kernel'").sort_values("correlation")
    other = (kernels["stream"] != kernels["stream"].iloc[-1]).astype(int)
    columns = ["name", "row", "start_s", "end_s", "source", "device_name"]
    return _FirstReader(kernels.assign(row=other)[columns].reset_index(drop=True)).figure()
