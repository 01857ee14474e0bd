"""Plots of times in a frame: over sizes, and call after call."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import numpy as np

from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import TEXT
from gpulab.core.units import counted, format_ratio, format_time
from gpulab.figures import (
    Figure,
    FigureOptions,
    Plot,
    finish,
    frame_of,
    log_axis,
    look_of,
    looks,
    marks,
    name_point,
    need,
    size_ticks,
    source_of,
    unit_of,
)
from gpulab.views.plots._draw import show, typed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_FAR = 2.0  # times the median; a call that takes longer stands out


@dataclass(frozen=True, slots=True)
class _Scaling(Plot):
    record: "pd.DataFrame"
    size_label: str

    def __post_init__(self) -> None:
        need(self.record, ("size", "duration_s", "series"))
        TEXT.check(size_label=self.size_label)

    @property
    def series(self) -> "list[tuple[str, pd.DataFrame]]":
        """The name and the rows of each series, sorted by size."""
        groups = self.record.groupby("series", sort=False)
        return [(one_line(str(name)), part.sort_values("size")) for name, part in groups]

    title = "Time per call over size"

    @property
    def words(self) -> str:
        sentences = []
        for name, part in self.series:
            ends = (part.iloc[position] for position in (0, -1))
            first, last = (f"{format_time(end['duration_s'])} at {end['size']:,}" for end in ends)
            sentences.append(f"{name}: from {first} to {last}.")
        return "\n".join(sentences)

    def draw(self, ax: "Axes") -> "Axes":
        scale, unit = unit_of(self.record["duration_s"])
        # A role's look is found by the name as it is in the frame.
        names = map(str, self.record["series"].unique())
        for (name, part), look in zip(self.series, looks(names), strict=False):
            signs = marks(look, source_of(part))
            ax.plot(part["size"], part["duration_s"] / scale, label=name, **signs)
        log_axis(ax, "x")
        log_axis(ax, "y")
        size_ticks(ax, self.record["size"])
        ax.grid(visible=True)
        return finish(ax, "Line chart", self.size_label, f"time per call ({unit})")


@typed
def scaling(
    record: "pd.DataFrame",
    ax: "Axes | None" = None,
    *,
    size_label: str = "size",
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw times over size, one line per series, both axes logarithmic.

    Parameters
    ----------
    record
        Columns ``size``, ``duration_s`` and ``series``.
    ax
        Axes to draw on. None: return a figure.
    size_label
        Label of the x axis, e.g. ``"n (matrices are n by n)"``.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpulab import plots
    >>> frame = pd.DataFrame({"size": [1, 2], "duration_s": [1e-6, 2e-6], "series": "sum"})
    >>> plots.scaling(frame, title="A sum", source="virtual").title
    'A sum (virtual)'
    """
    return show(_Scaling(record, size_label), ax, figure)


@dataclass(frozen=True, slots=True)
class _CallTimes(Plot):
    record: object

    def __post_init__(self) -> None:
        need(frame_of(self.record), ("duration_s",))

    @property
    def times_s(self) -> "pd.Series[float]":
        """Seconds of each call in order."""
        return frame_of(self.record)["duration_s"]

    @property
    def title(self) -> str:
        if self.longest is None:
            return f"No call takes more than {_FAR:.0f} times the median"
        ratio = format_ratio(self.times_s.max() / self.times_s.median())
        return f"The longest call takes {ratio} times as long as the median"

    @property
    def longest(self) -> int | None:
        """The place of the longest call, counted from 0, if it stands out."""
        times_s = self.times_s
        is_far = times_s.max() > _FAR * times_s.median()
        return int(times_s.to_numpy().argmax()) if is_far else None

    @property
    def words(self) -> str:
        times_s = self.times_s
        longest = int(times_s.to_numpy().argmax())
        return (
            f"{counted(len(times_s), 'call')}, median {format_time(times_s.median())}. "
            f"The longest is call {longest + 1:,}: {format_time(times_s.max())}."
        )

    def draw(self, ax: "Axes") -> "Axes":
        scale, unit = unit_of(self.times_s)
        index = np.arange(1, len(self.times_s) + 1)
        signs = marks(look_of("host"), source_of(self.record)) | {"linestyle": "none"}
        ax.plot(index, self.times_s / scale, markersize=4, **signs)
        if self.longest is not None:
            longest_s = self.times_s.iloc[self.longest]
            point = (self.longest + 1, longest_s / scale)
            name_point(ax, f"the longest: {format_time(longest_s)}", point)
        log_axis(ax, "y")
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.grid(visible=True)
        return finish(ax, "Scatter plot", "call, in the order made", f"time on the host ({unit})")


@typed
def call_times(
    record: object, ax: "Axes | None" = None, **figure: Unpack[FigureOptions]
) -> "Axes | Figure":
    """Draw how long the host took for each of many successive launches.

    Parameters
    ----------
    record
        Seconds of each call in order, a ``Measurement``, or a frame with ``duration_s``.
    ax
        Axes to draw on. None: return a figure.

    Examples
    --------
    >>> from gpulab import plots
    >>> plots.call_times([5e-6, 5e-6, 900e-6], source="virtual").caption
    '3 calls, median 5.00 µs. The longest is call 3: 900 µs.'
    """
    return show(_CallTimes(record), ax, figure)
