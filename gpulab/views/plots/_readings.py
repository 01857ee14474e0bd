"""Plots of a stopwatch's readings: beside the work, line by line, and pair after pair."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard, Unpack

import numpy as np

from gpulab.core.errors import InvalidOptionError, shown
from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import POSITIVE, TEXT, items_of, mapping_to
from gpulab.core.units import format_time
from gpulab.figures import (
    INK,
    MUTED,
    PAPER,
    Figure,
    FigureOptions,
    Plot,
    finish,
    log_axis,
    look_of,
    looks,
    need,
    size_ticks,
    unit_of,
    write_beside,
)
from gpulab.views.plots._draw import show, typed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_HEADROOM = 1.25  # of the highest point, for the names of the lines
_ALIKE = 1.25  # times; readings that differ by less are called the same
_ROW_IN, _MARGIN_IN = 0.42, 1.3
_FAR = 4.0  # times; the longest wait over the shortest call, so that the two kinds are distinct
_LETTER = 0.012  # width of a letter in bold, as a share of the x axis
_JUMP = 1.5  # times; a smaller step of a reading is its spread
_FEW = 3  # rows that the words can name
_SOME = 10  # readings, whose median is a level


def _times(ratio: float) -> str:
    """Return a ratio as a reader says it: 2.0, 41, 2,200."""
    return f"{ratio:,.1f}" if ratio < _SOME else f"{float(f'{ratio:.2g}'):,.0f}"


def _has_items(record: Any) -> TypeGuard[Mapping[Any, Any]]:  # noqa: ANN401  # any argument
    """Return whether it is a mapping or a series; attributes of its own are not asked for."""
    return hasattr(type(record), "items")


def _seconds_by_name(record: object) -> dict[str, float]:
    """Return a mapping or a series as a dict of seconds above 0."""
    series = dict(record.items()) if _has_items(record) else record
    mapping_to(POSITIVE, "seconds by name, such as {'x @ x': 2e-5}").check(record=series)
    if not series:
        raise InvalidOptionError("record={} has no lines; there is nothing to draw")
    return {one_line(str(name)): float(value) for name, value in series.items()}  # type: ignore[attr-defined]  # checked


@dataclass(frozen=True, slots=True)
class _ReadingAndWork(Plot):
    record: "pd.DataFrame"

    def __post_init__(self) -> None:
        columns = ("n", "reading_s", "gpu_s")
        need(self.record, columns)
        for name in columns:
            items_of(name, self.record[name], POSITIVE)

    @property
    def ends(self) -> "tuple[pd.Series[float], pd.Series[float]]":
        """The rows of the smallest and of the largest size."""
        ordered = self.record.sort_values("n")
        return ordered.iloc[0], ordered.iloc[-1]

    @property
    def title(self) -> str:
        first, last = self.ends
        needs, grown = last["gpu_s"] / first["gpu_s"], last["reading_s"] / first["reading_s"]
        same = 1 / _ALIKE < grown < _ALIKE
        ends = f"From n = {first['n']:,.0f} to {last['n']:,.0f}"
        reads = "the same" if same else f"{_times(grown)} times as much"
        return f"{ends} the GPU needs {_times(needs)} times as long.\nThe stopwatch reads {reads}"

    @property
    def words(self) -> str:
        ordered = self.record.sort_values("n")
        # The last two show how the largest sizes grow.
        shown = ordered if len(ordered) <= _FEW else ordered.iloc[[0, -2, -1]]
        return "\n".join(
            f"At n = {row['n']:,.0f} the GPU needs {format_time(row['gpu_s'])} and the stopwatch "
            f"reads {format_time(row['reading_s'])}."
            for _, row in shown.iterrows()
        )

    def draw(self, ax: "Axes") -> "Axes":
        frame = self.record.sort_values("n")
        scale, unit = unit_of([*frame["reading_s"], *frame["gpu_s"]])
        for column, role, name in (
            ("gpu_s", "kernel", "the GPU needs"),
            ("reading_s", "host", "the stopwatch reads"),
        ):
            look = look_of(role)
            ax.plot(
                frame["n"],
                frame[column] / scale,
                marker=look.marker,
                color=look.colour,
                label=name,
            )
        log_axis(ax, "x")
        log_axis(ax, "y")
        size_ticks(ax, frame["n"])
        ax.grid(visible=True)
        self._mark_the_gap(ax, scale)
        return finish(ax, "Line chart", "n (matrices are n by n)", f"time ({unit})")

    def _mark_the_gap(self, ax: "Axes", scale: float) -> None:
        """Mark by what factor the last reading is wrong, left of the last points."""
        _, last = self.ends
        ratio = last["gpu_s"] / last["reading_s"]
        if 1 / _JUMP < ratio < _JUMP:
            return
        low, high = (last[name] / scale for name in ("reading_s", "gpu_s"))
        arrow = {"arrowstyle": "<->", "color": INK, "lw": 2, "shrinkA": 6, "shrinkB": 6}
        ax.annotate("", (last["n"], high), (last["n"], low), arrowprops=arrow)
        factor, wrong = (ratio, "little") if ratio > 1 else (1 / ratio, "much")
        text, middle = f"{_times(factor)} times\ntoo {wrong}", (last["n"], np.sqrt(low * high))
        write_beside(ax, text, middle, (-8, 0), fontweight="bold")


@typed
def reading_and_work(
    record: "pd.DataFrame | Mapping[str, Sequence[float]]",
    ax: "Axes | None" = None,
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw what a stopwatch reads and what the GPU needs, over the size of the work.

    The title says by how much each of them grows, and an arrow at the largest size says by what
    factor the reading is wrong there.

    Parameters
    ----------
    record
        Columns ``n``, ``reading_s`` and ``gpu_s``: a frame, or a dict of lists.
    ax
        Axes to draw on. None: return a figure.

    Examples
    --------
    >>> from gpulab import plots
    >>> seen = {"n": [64, 8192], "reading_s": [1e-5, 1e-5], "gpu_s": [4e-6, 2e-2]}
    >>> plots.reading_and_work(seen, source="virtual").title.partition(".")[0]
    'From n = 64 to 8,192 the GPU needs 5,000 times as long'
    """
    import pandas as pd

    try:
        frame = pd.DataFrame(dict(record)) if isinstance(record, Mapping) else record
    except (TypeError, ValueError):  # no lists, or lists that differ in length
        raise InvalidOptionError(
            f"record={shown(record)}; n, reading_s and gpu_s must be lists of the same length"
        ) from None
    return show(_ReadingAndWork(frame), ax, figure)


@dataclass(frozen=True, slots=True)
class _HostTimes(Plot):
    record: "pd.Series[float]"

    @property
    def limit_s(self) -> float:
        """Seconds between the calls that return at once and those that wait; infinite if none do.

        The limit is in the largest gap between neighbours.
        """
        ordered = np.sort(self.record.to_numpy())
        if ordered[-1] < _FAR * ordered[0]:
            return float("inf")
        widest = int(np.argmax(ordered[1:] / ordered[:-1]))
        return float(np.sqrt(ordered[widest] * ordered[widest + 1]))

    @property
    def title(self) -> str:
        n_waits = int((self.record > self.limit_s).sum())
        wait = "waits" if n_waits == 1 else "wait"
        return f"{n_waits or 'None'} of {len(self.record)} lines {wait} for the GPU"

    @property
    def words(self) -> str:
        return "\n".join(f"{name}: {format_time(value)}." for name, value in self.record.items())

    @property
    def height_in(self) -> float:
        return _MARGIN_IN + _ROW_IN * len(self.record)

    def draw(self, ax: "Axes") -> "Axes":
        scale, unit = unit_of([np.sqrt(self.record.min() * self.record.max())])
        waits = self.record > self.limit_s
        for row, (value, is_wait) in enumerate(zip(self.record, waits, strict=True)):
            look = look_of("wait" if is_wait else "launch")
            bar = ax.barh(row, value / scale, 0.7, color=look.colour, hatch=look.hatch, ec=PAPER)
            ax.bar_label(bar, [format_time(value)], padding=4, fontsize="small")
        ax.set_yticks(range(len(self.record)), list(map(str, self.record.index)))
        ax.set_ylim(len(self.record) - 0.5, -1.2)
        log_axis(ax, "x")
        # Room for the numbers to the right of the bars.
        low, high = ax.get_xlim()
        ax.set_xlim(low, high * (high / low) ** 0.15)
        if np.isfinite(self.limit_s):
            limit = self.limit_s / scale
            ax.axvline(limit, color=MUTED, linestyle=":", linewidth=1.5)
            for text, side in (("← returned at once", -8), ("waited →", 8)):
                write_beside(ax, text, (limit, -0.8), (side, 0), fontweight="bold")
        return finish(ax, "Bar chart", f"time on the host ({unit})", "", legend=False)


@typed
def host_times(
    record: "Mapping[str, float] | pd.Series[float]",
    ax: "Axes | None" = None,
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw how long each line of a program kept the host, and mark which of them waited.

    Lines that wait take much longer than the others if the GPU is busy when they are called. The
    mark is in the largest gap.

    Parameters
    ----------
    record
        Seconds on the host by the text of the line.
    ax
        Axes to draw on. None: return a figure.

    Examples
    --------
    >>> from gpulab import plots
    >>> seen = {"y.shape": 1e-6, "y.cpu()": 2e-2, "y.sum().item()": 2e-2}
    >>> plots.host_times(seen, source="virtual").title
    '2 of 3 lines wait for the GPU (virtual)'
    """
    import pandas as pd

    return show(_HostTimes(pd.Series(_seconds_by_name(record), name="host_s")), ax, figure)


@dataclass(frozen=True, slots=True)
class _InOrder(Plot):
    record: "pd.DataFrame"
    what: str
    before: str
    after: str

    @property
    def series(self) -> "dict[str, pd.Series[float]]":
        """The readings of each name in seconds."""
        columns = self.record.columns[1:]
        return {str(name): self.record[name].dropna() for name in columns}

    @property
    def jumps(self) -> dict[str, int]:
        """The number of the first reading at a higher level, for each series that has one."""
        jumps = {}
        for name, values in self.series.items():
            low, high = values[:_SOME].median(), values[-_SOME:].median()
            middle = (low + high) / 2
            # One long reading among the first is no jump: after a jump, most are long.
            late = [
                at
                for at in np.flatnonzero(values > middle)
                if values[at : at + _SOME].median() > middle
            ]
            if high > _JUMP * low and late:
                jumps[name] = int(late[0]) + 1
        return jumps

    @property
    def title(self) -> str:
        jumps = self.jumps
        clauses = [
            f"the {name} {f'jumps at {self.what} {jumps[name]}' if name in jumps else 'stays'}"
            for name in self.series
        ]
        text = ", ".join(clauses)
        return text[0].upper() + text[1:]

    @property
    def words(self) -> str:
        return "\n".join(
            f"{name}: the first {format_time(values[:_SOME].median())}, "
            f"the last {format_time(values[-_SOME:].median())} (medians of {_SOME})."
            for name, values in self.series.items()
        )

    def draw(self, ax: "Axes") -> "Axes":
        every = np.concatenate([values.to_numpy() for values in self.series.values()])
        scale, unit = unit_of(every)
        numbers = self.record.iloc[:, 0].to_numpy()
        top = every.max() / scale * _HEADROOM
        for (name, values), look in zip(self.series.items(), looks(self.series), strict=False):
            points: Any = {"linestyle": "none", "marker": look.marker, "markersize": 5}
            ax.plot(numbers[: len(values)], values / scale, color=look.colour, **points)
            label_at = (numbers[min(_SOME, len(values)) // 2], values[:_SOME].median() / scale)
            above: Any = {"ha": "left", "va": "baseline", "fontweight": "bold"}
            write_beside(ax, name, label_at, (0, 6), color=look.colour, **above)
        for number in self.jumps.values():
            ax.axvline(number - 0.5, color=INK, linestyle=":", linewidth=1.5)
            before = f"← {self.before}" if self.before else ""
            if len(before) * _LETTER > number / numbers[-1]:  # it would leave the axes
                before = ""
            bold: Any = {"va": "baseline", "fontweight": "bold"}
            for text, side in ((before, -8), (self.after and f"{self.after} →", 8)):
                write_beside(ax, text, (number - 0.5, 0), (side, 8), **bold)
        ax.set_ylim(0, top)
        ax.grid(visible=True, axis="y")
        label = f"{self.what}, in the order recorded"
        return finish(ax, "Scatter plot", label, f"reading ({unit})", legend=False)


@typed
def readings_in_order(
    record: Mapping[str, Sequence[float]],
    ax: "Axes | None" = None,
    *,
    what: str = "reading",
    before: str = "",
    after: str = "",
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw readings in the order in which they were taken, and mark where a series jumps up.

    Parameters
    ----------
    record
        Readings in seconds by the name of the series.
    ax
        Axes to draw on. None: return a figure.
    what
        What is counted along the x axis, such as ``"pair"``.
    before, after
        What is so to the left and to the right of a jump; written into the picture.

    Examples
    --------
    >>> from gpulab import plots
    >>> times_s = {"short kernel": [4e-6] * 30 + [9e-6] * 30, "long kernel": [17e-6] * 60}
    >>> plots.readings_in_order(times_s, what="pair", source="virtual").title
    'The short kernel jumps at pair 31, the long kernel stays (virtual)'
    """
    import pandas as pd

    TEXT.check(what=what, before=before, after=after)
    if not _has_items(record):
        raise InvalidOptionError(f"record={shown(record)}; give lists of seconds by name")
    series = {
        one_line(str(name)): pd.Series(items_of("record", values, POSITIVE), dtype=float)
        for name, values in record.items()
    }
    if not series or not all(map(len, series.values())):
        raise InvalidOptionError(
            f"record={shown(record)} is empty, or a list in it is; give lists of seconds by name"
        )
    frame = pd.DataFrame(series)
    numbers = what  # the column's name, unless a series is called so
    while numbers in series:
        numbers += " number"
    frame.insert(0, numbers, np.arange(1, len(frame) + 1))
    return show(_InOrder(frame, what, before, after), ax, figure)
