"""The picture of lesson 09: the times of both sides over the size, and where they meet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gpulab import device
from gpulab.core.units import format_time
from gpulab.figures import INK, Figure, Plot, finish, log_axis, look_of, marks, unit_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_TINT = 0.1
_ROUND = 2  # digits of a size that is read off between two measured ones


@dataclass(frozen=True, slots=True)
class _Sides(Plot):
    """The times of the same work on both sides; the tint says which one is faster."""

    record: "pd.DataFrame"

    @property
    def meetings(self) -> list[float]:
        """The sizes at which the curves meet, straight between points on logarithmic axes."""
        sizes, ratio = (
            np.log(self.record["n"]),
            np.log(self.record["cpu_s"] / self.record["gpu_s"]),
        )
        crossings = []
        for i in range(len(sizes) - 1):
            if (ratio[i] > 0) != (ratio[i + 1] > 0):
                share = ratio[i] / (ratio[i] - ratio[i + 1])
                crossings.append(math.exp(sizes[i] + share * (sizes[i + 1] - sizes[i])))
        return crossings

    @property
    def title(self) -> str:
        meetings = self.meetings
        is_gpu = self.record["gpu_s"].iloc[0] < self.record["cpu_s"].iloc[0]
        first, second = ("GPU", "CPU") if is_gpu else ("CPU", "GPU")
        if len(meetings) == 1:
            size = f"{_rounded(meetings[0]):,}"
            return f"Up to about n = {size} the {first} is faster, then the {second}"
        if meetings:
            return f"The curves cross {len(meetings)} times"
        return f"The {first} is faster at all of these sizes"

    @property
    def words(self) -> str:
        rows = (self.record.iloc[end] for end in (0, -1))
        return "\n".join(
            f"At n = {int(row['n']):,} the CPU takes {format_time(row['cpu_s'])} and the GPU "
            f"{format_time(row['gpu_s'])}."
            for row in rows
        )

    def draw(self, ax: "Axes") -> "Axes":
        record = self.record
        scale, unit = unit_of([*record["cpu_s"], *record["gpu_s"]])
        source = device.current()
        for name in ("CPU", "GPU"):
            times = record[f"{name.lower()}_s"] / scale
            ax.plot(record["n"], times, label=name, **marks(look_of(name), source.source))
        log_axis(ax, "x")
        log_axis(ax, "y")
        ax.grid(visible=True)
        self._tint(ax)
        for meeting in self.meetings:
            height = np.interp(math.log(meeting), np.log(record["n"]), np.log(record["cpu_s"]))
            at = (meeting, math.exp(height) / scale)
            ax.plot(
                *at,
                marker="o",
                markersize=12,
                markerfacecolor="none",
                markeredgecolor=INK,
                linestyle="none",
            )
            ax.annotate(
                f"n = {_rounded(meeting):,}",
                at,
                (8, -16),
                textcoords="offset points",
                fontweight="bold",
            )
        return finish(ax, "Line chart", "n (numbers)", f"time ({unit})")

    def _tint(self, ax: "Axes") -> None:
        """Tint each part of the picture by the side that is faster there, and say which it is."""
        record = self.record
        first, last = record["n"].iloc[0], record["n"].iloc[-1]
        edges = [first, *self.meetings, last]
        is_gpu = bool(record["gpu_s"].iloc[0] < record["cpu_s"].iloc[0])
        for low, high in pairwise(edges):
            name = "GPU" if is_gpu else "CPU"
            colour = look_of(name).colour
            ax.axvspan(low, high, color=colour, alpha=_TINT, linewidth=0)
            ax.annotate(
                f"{name} faster",
                (math.sqrt(low * high), 0.97),
                xycoords=("data", "axes fraction"),
                ha="center",
                va="top",
                color=colour,
                fontweight="bold",
            )
            is_gpu = not is_gpu
        ax.set_xlim(first, last)


def draw_sides(n: Sequence[int], cpu_s: Sequence[float], gpu_s: Sequence[float]) -> Figure:
    """Return the picture of the same work on both sides, with the size at which they meet.

    The sizes rise, and each has the seconds of both sides.
    """
    import pandas as pd

    frame = pd.DataFrame({"n": list(n), "cpu_s": list(cpu_s), "gpu_s": list(gpu_s)})
    return _Sides(frame).figure(source=device.current())


def _rounded(size: float) -> int:
    return int(float(f"{size:.{_ROUND}g}"))
