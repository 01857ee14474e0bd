"""Figures of lesson 04: samples in the order taken, histograms, and first against second use.

A cell calls one of the ``draw_`` functions, which return a figure with its title and its text
alternative.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpulab.core.units import counted, format_ratio, format_time
from gpulab.exercises._lines import LinesBySeries
from gpulab.exercises.lesson_04 import traces
from gpulab.figures import (
    MUTED,
    Figure,
    Plot,
    finish,
    legend_below,
    log_axis,
    looks,
    marks,
    only_labels,
    source_of,
    unit_of,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gpulab.views.live import Series


_RELATIVE = "time per call (times the shortest)"
_N_COLUMNS, _PANEL_IN = 3, 2.0
_LEAST_SPAN = 0.1  # of a panel's axis above and below 1, so that noise looks like noise
_N_BINS = 40


@dataclass(frozen=True, slots=True)
class _Loops(Plot):
    """The base of the plots of loops: columns ``iteration``, ``duration_s`` and ``series``."""

    record: "pd.DataFrame"

    @property
    def parts(self) -> "list[tuple[str, pd.DataFrame]]":
        """Name and rows of each loop."""
        return [(str(name), part) for name, part in self.record.groupby("series", sort=False)]


class _Panels(_Loops):
    """A panel for each loop with the time of each iteration, relative to the end of the loop."""

    __slots__ = ()

    @property
    def title(self) -> str:
        return f"{len(self.parts)} loops, each relative to its own end"

    @property
    def words(self) -> str:
        return "\n".join(_loop_words(name, part["duration_s"]) for name, part in self.parts)

    @property
    def height_in(self) -> float:
        return 0.8 + _PANEL_IN * math.ceil(len(self.parts) / _N_COLUMNS)

    def draw(self, ax: "Axes") -> "Axes":
        n_rows = math.ceil(len(self.parts) / _N_COLUMNS)
        width, height = 1 / _N_COLUMNS, 1 / n_rows
        for number, (name, part) in enumerate(self.parts):
            row, column = divmod(number, _N_COLUMNS)
            box = (column * width + 0.03, 1 - (row + 1) * height + 0.14 * height)
            panel = ax.inset_axes((*box, width - 0.05, 0.66 * height))
            self._draw_panel(panel, name, part)
        relative = [
            part["duration_s"] / _end_level(part["duration_s"].to_numpy())
            for _, part in self.parts
        ]
        only_labels(ax, self.record["iteration"], np.concatenate(relative))
        return finish(
            *(ax, "Line charts", "iteration, from 0", "time relative to the end"), legend=False
        )

    def _draw_panel(self, panel: "Axes", name: str, part: "pd.DataFrame") -> None:
        from matplotlib.ticker import MaxNLocator

        times = part["duration_s"].to_numpy()
        relative = times / _end_level(times)
        low, high = np.quantile(relative, (0.05, 0.9))
        low, high = min(low, 1 - _LEAST_SPAN) - 0.05, max(high, 1 + _LEAST_SPAN) + 0.05
        signs = marks(next(looks()), source_of(part)) | {"marker": ""}
        panel.axhline(1, color=MUTED, linewidth=0.8)
        panel.plot(part["iteration"], np.minimum(relative, high), linewidth=1.2, **signs)
        panel.set_ylim(low, high)
        panel.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        beyond = relative > high
        panel.plot(part["iteration"][beyond], [high] * int(beyond.sum()), "k^", clip_on=False)
        most = f", ▲ up to {format_ratio(relative.max())}" if beyond.any() else ""
        panel.set_title(f"{name}{most}", fontsize="small")
        panel.tick_params(labelsize="small")


def _end_level(times: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    """Return the median of the last quarter."""
    return float(np.median(times[-max(1, len(times) // 4) :]))


class _Histograms(_Loops):
    """How many calls of each loop took how long, relative to its shortest call."""

    __slots__ = ()

    @property
    def title(self) -> str:
        ratios = []
        for name, part in self.parts:
            ratio = part["duration_s"].max() / part["duration_s"].min()
            ratios.append(f"{format_ratio(ratio)} ({name})")
        return f"The slowest call takes {', '.join(ratios)} times as long as the shortest"

    @property
    def words(self) -> str:
        return "\n".join(
            f"{name}: {counted(len(part), 'call')} from {_range(part['duration_s'])}."
            for name, part in self.parts
        )

    height_in = 3.4

    def draw(self, ax: "Axes") -> "Axes":
        relative = [part["duration_s"] / part["duration_s"].min() for _, part in self.parts]
        edges = np.histogram_bin_edges(np.concatenate(relative), bins=_N_BINS)
        for (name, _), values, look in zip(self.parts, relative, looks(), strict=False):
            counts, _ = np.histogram(values, bins=edges)
            dashes = marks(look, source_of(self.record))["linestyle"]
            signs = {"color": look.colour, "linestyle": dashes, "linewidth": 2}
            ax.stairs(counts, edges, label=name, **signs)
        return finish(ax, "Histogram", _RELATIVE, "number of calls")


def first_uses(record: "pd.DataFrame", ax: "Axes") -> "Axes":
    """Plot the first and the second use of each cost, joined by a line, on a log axis.

    The columns are ``what``, ``first_s`` and ``second_s``.
    """
    scale, unit = unit_of([*record["first_s"], *record["second_s"]])
    rows = np.arange(len(record))
    first, second = record["first_s"] / scale, record["second_s"] / scale
    ax.hlines(rows, second, first, color=MUTED, linewidth=1, zorder=1)
    source = source_of(record)
    for values, look, label in zip(
        (first, second), looks(), ("first use", "second use"), strict=False
    ):
        ax.plot(values, rows, label=label, **marks(look, source) | {"linestyle": "none"})
    ax.set_yticks(rows, list(record["what"]))
    ax.set_ylim(len(record) - 0.5, -0.5)
    log_axis(ax, "x")
    ax.grid(visible=True, axis="x")
    legend_below(ax)
    return finish(ax, "Dot plot", f"time per call ({unit})", "", legend=False)


def draw_loops(*, named: bool) -> Figure:
    """Return a figure of the six loops of the exercises, each relative to its own end.

    A triangle marks a call that is far above. The loops have their names, or else letters.
    """
    return _Panels(traces.to_frame(named=named)).figure(source="made for this exercise")


def draw_runs() -> tuple[Figure, Figure]:
    """Return the histograms of two runs, and their samples in the order taken.

    Times are divided by the shortest of their run.
    """
    runs, source = traces.two_runs(), "levels of a virtual H200"
    shortest_s = runs.groupby("series")["duration_s"].transform("min")
    order = LinesBySeries(
        *(runs.assign(relative=runs["duration_s"] / shortest_s), "iteration", "relative"),
        *("iteration, from 0", _RELATIVE, "The same calls in the order taken"),
    )
    return _Histograms(runs).figure(source=source), order.figure(source=source)


def draw_first_uses() -> "Series":
    """Measure first and second uses on a fresh GPU, and show a figure that grows meanwhile."""
    from gpulab import device
    from gpulab.exercises.lesson_04 import first_use
    from gpulab.views import live

    return live.series(
        first_use.measured(),
        first_uses,
        n_expected=len(first_use.NAMES),
        title=lambda record: (
            "The first use takes up to "
            f"{format_ratio((record['first_s'] / record['second_s']).max())} times as long as the "
            "second"
        ),
        alt="One row for each cost: the first use and the second, on a logarithmic axis.",
        source=device.current(),
    )


def _loop_words(name: str, times_s: "pd.Series[float]") -> str:
    first_s, last_s = times_s.iloc[0], times_s.iloc[-1]
    return (
        f"{name}: {counted(len(times_s), 'call')} from {_range(times_s)}; the first took "
        f"{format_time(first_s)}, the last {format_time(last_s)}."
    )


def _range(times_s: "pd.Series[float]") -> str:
    return f"{format_time(times_s.min())} to {format_time(times_s.max())}"
