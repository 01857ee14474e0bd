"""Plots of measurements, and of times in a frame."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from gpulab.figures import (
    INK,
    MUTED,
    Figure,
    FigureOptions,
    Plot,
    as_list,
    finish,
    frame_of,
    legend_below,
    log_axis,
    look_of,
    looks,
    marks,
    name_of,
    name_point,
    need,
    size_ticks,
    source_of,
    unit_of,
)
from gpulab.foreign_text import one_line
from gpulab.measurement import Measurement
from gpulab.plots._draw import show, typed
from gpulab.requirements import COUNT, COUNT_OR_ZERO, TEXT, Requirement
from gpulab.units import counted, format_estimate, format_ratio, format_time

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


__all__ = [
    "call_times",
    "compare_methods",
    "distribution",
    "predicted_against_measured",
    "samples",
    "scaling",
]


_MOST_NAMES = 3  # in a title; more would not fit into its line
_ROW_IN, _ROWS_MARGIN_IN = 0.5, 1.2
_FROM_ZERO = 3.0  # times; if rows differ by less, lengths from zero show by how much
_FACTOR = 2  # predictions within this factor are in the band

_MOST_BINS = 10_000  # far more than a picture has pixels for
_N_BINS = Requirement(
    f"a whole number from 1 to {_MOST_BINS:,}",
    lambda value: COUNT.accepts(value) and value <= _MOST_BINS,
)


@dataclass(frozen=True, slots=True)
class _Measurements(Plot):
    """The base of the charts of one or several measurements."""

    record: Sequence[Measurement]

    @property
    def names(self) -> str:
        """The names of the first measurements, for a title."""
        names = list(dict.fromkeys(map(name_of, self.record)))
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        return ", ".join(names[:_MOST_NAMES]) + more

    @property
    def words(self) -> str:
        return "\n".join(map(self._spread, self.record))

    @staticmethod
    def _spread(item: Measurement) -> str:
        low, high = (format_time(pick(item.samples_s)) for pick in (min, max))
        n_samples = counted(item.n_samples, "sample")
        return f"{name_of(item)}: median {_median(item)}, all {n_samples} from {low} to {high}."

    @property
    def scale(self) -> tuple[float, str]:
        """Seconds and name of the unit in which the medians are drawn."""
        return unit_of([item.median_s for item in self.record])


def _median(item: Measurement) -> str:
    return format_estimate(item.median_s, *item.interval_s)


class _Samples(_Measurements):
    __slots__ = ()

    @property
    def title(self) -> str:
        return f"Every sample of {self.names}"

    def draw(self, ax: "Axes") -> "Axes":
        scale, unit = self.scale
        for item, look in zip(self.record, looks(map(name_of, self.record)), strict=False):
            index = np.arange(1, item.n_samples + 1)
            signs = marks(look, item.source) | {"linestyle": "none"}
            ax.plot(index, np.array(item.samples_s) / scale, markersize=4, **signs)
            median, label = item.median_s / scale, name_of(item)
            ax.axhline(median, color=look.colour, linewidth=1.2, label=label)
            low, high = (bound / scale for bound in item.interval_s)
            ax.axhspan(low, high, color=look.colour, alpha=0.15, linewidth=0)
        return finish(ax, "Scatter plot", "sample, in the order taken", f"time per call ({unit})")


@typed
def samples(
    record: Measurement | Sequence[Measurement],
    ax: "Axes | None" = None,
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw every sample in the order taken, with the median and its 95 % interval.

    The band is the interval of the median; many single samples lie outside it.

    Examples
    --------
    >>> import torch, gpulab
    >>> from gpulab import plots
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     taken = gpulab.measure(lambda: a @ a, n_samples=5, label="matmul")
    >>> plots.samples(taken).title
    'Every sample of matmul (virtual NVIDIA H200)'
    """
    return show(_Samples(as_list(record)), ax, figure)


@dataclass(frozen=True, slots=True)
class _Distribution(_Measurements):
    n_bins: int

    @property
    def title(self) -> str:
        return f"How often {self.names} took how long"

    def draw(self, ax: "Axes") -> "Axes":
        scale, unit = self.scale
        values = np.concatenate([item.samples_s for item in self.record]) / scale
        # The same bins for all measurements, or their counts could not be compared.
        edges = np.histogram_bin_edges(values, bins=self.n_bins)
        for item, look in zip(self.record, looks(map(name_of, self.record)), strict=False):
            counts, _ = np.histogram(np.array(item.samples_s) / scale, bins=edges)
            dashes = marks(look, item.source)["linestyle"]
            ax.stairs(counts, edges, color=look.colour, linestyle=dashes, linewidth=2)
            median, label = item.median_s / scale, name_of(item)
            ax.axvline(median, color=look.colour, linewidth=1.2, label=label)
        return finish(ax, "Histogram", f"time per call ({unit})", "number of samples")


@typed
def distribution(
    record: Measurement | Sequence[Measurement],
    ax: "Axes | None" = None,
    *,
    n_bins: int = 30,
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw a histogram of the samples, with the median as a line.

    Two humps mean two regimes; then the median describes neither.

    Examples
    --------
    >>> import torch, gpulab
    >>> from gpulab import plots
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     taken = gpulab.measure(lambda: a @ a, n_samples=5, label="matmul")
    >>> plots.distribution(taken).title
    'How often matmul took how long (virtual NVIDIA H200)'
    """
    _N_BINS.check(n_bins=n_bins)
    return show(_Distribution(as_list(record), n_bins), ax, figure)


class _Methods(_Measurements):
    __slots__ = ()

    @property
    def ratio(self) -> float:
        """The largest median over the smallest; 1 if one of them is 0."""
        least, most = (pick(item.median_s for item in self.record) for pick in (min, max))
        return most / least if least > 0 else 1.0

    @property
    def title(self) -> str:
        ordered = sorted(self.record, key=lambda item: item.median_s)
        names = [name_of(ordered[position]) for position in (-1, 0)]
        ratio = format_ratio(self.ratio)
        if ratio == "1" or names[0] == names[1]:
            return "Median time per call"
        return f"{names[0]} takes {ratio} times as long as {names[1]}"

    @property
    def words(self) -> str:
        medians = [f"{name_of(item)}: {_median(item)}." for item in self.record]
        if self.ratio > 1:
            medians.append(f"The largest is {format_ratio(self.ratio)} times the smallest.")
        return "\n".join(medians)

    @property
    def height_in(self) -> float:
        return _ROWS_MARGIN_IN + _ROW_IN * len(self.record)

    def draw(self, ax: "Axes") -> "Axes":
        scale, unit = self.scale
        is_short = self.ratio < _FROM_ZERO
        for row, item in enumerate(self.record):
            median = item.median_s / scale
            signs = marks(next(looks([_cache_of(item)])), item.source)
            if is_short:
                ax.hlines(row, 0, median, color=signs["color"], linewidth=1.5)
            error_bar(ax, row, item, scale, **signs)
            place = {"textcoords": "offset points", "ha": "center", "fontsize": "small"}
            ax.annotate(_median(item), (median, row), (0, 8), **place)
        ax.set_yticks(range(len(self.record)), [name_of(item) for item in self.record])
        # Reversed, so that the first row is at the top, with room for the text above it.
        ax.set_ylim(len(self.record) - 0.5, -0.7)
        ax.grid(visible=True, axis="x")
        # Room at both ends, because a text is wider than its point.
        ax.margins(x=0.25)
        if is_short:
            ax.set_xlim(0, None)
        else:
            log_axis(ax, "x")
        return finish(ax, "Dot plot", f"time per call ({unit})", "", legend=False)


def error_bar(ax: "Axes", row: int, item: Measurement, scale: float, **signs: Any) -> None:  # noqa: ANN401  # as marks() returns
    """Draw a median and its interval in a row."""
    median = item.median_s / scale
    low, high = (bound / scale for bound in item.interval_s)
    # matplotlib refuses errors below 0, which rounding can give for a narrow interval.
    errors = [[max(median - low, 0.0)], [max(high - median, 0.0)]]
    ax.errorbar(median, row, xerr=errors, capsize=4, **signs)


def _cache_of(item: Measurement) -> str:
    """Return the state of the cache that the label begins with, or that gpulab set up."""
    first = name_of(item).partition(",")[0]
    return first if first in {"hot", "cold"} else item.conditions.cache


@typed
def compare_methods(
    record: Sequence[Measurement],
    ax: "Axes | None" = None,
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw one row per method: its median with the 95 % interval.

    The axis begins at zero if the medians differ by less than three times; otherwise it is
    logarithmic. A narrow interval means that a method repeats well, not that it is right. The
    colour is that of the cache, hot or cold. If the work empties or fills the cache itself, gpulab
    cannot know its state: begin the label with it, as in ``"cold, rotated"``.

    Examples
    --------
    >>> import torch, gpulab
    >>> from gpulab import plots
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     taken = gpulab.measure(lambda: a @ a, n_samples=5, label="matmul")
    >>> plots.compare_methods([taken]).title
    'Median time per call (virtual NVIDIA H200)'
    """
    return show(_Methods(as_list(record)), ax, figure)


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

    @property
    def title(self) -> str:
        return "Time per call over size"

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
    blocked_from: int | None

    def __post_init__(self) -> None:
        need(frame_of(self.record), ("duration_s",))
        COUNT_OR_ZERO.or_none.check(blocked_from=self.blocked_from)

    @property
    def times_s(self) -> "pd.Series[float]":
        """Seconds of each call in order."""
        return frame_of(self.record)["duration_s"]

    @property
    def title(self) -> str:
        if self.blocked_from is None:
            return "Time of each call"
        return f"From call {self.blocked_from:,} on, the host waits"

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
        if self.blocked_from is not None:
            self._mark(ax, self.blocked_from)
        log_axis(ax, "y")
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.grid(visible=True)
        return finish(ax, "Scatter plot", "call, in the order made", f"time on the host ({unit})")

    @staticmethod
    def _mark(ax: "Axes", blocked_from: int) -> None:
        label = f"call {blocked_from:,}"
        ax.axvline(blocked_from, color=INK, linestyle=":", zorder=1, label=label)
        ax.annotate(
            f"{label} waits",
            (blocked_from, 1.0),
            (-6, -2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="right",
            va="top",
        )


@typed
def call_times(
    record: object,
    ax: "Axes | None" = None,
    *,
    blocked_from: int | None = None,
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw how long the host took for each of many successive launches.

    Parameters
    ----------
    record
        Seconds of each call in order, a ``Measurement``, or a frame with ``duration_s``.
    ax
        Axes to draw on. None: return a figure.
    blocked_from
        Number of the first call that had to wait, counted from 1, to be marked; None: no mark.

    Examples
    --------
    >>> from gpulab import plots
    >>> plots.call_times([5e-6, 5e-6, 900e-6], source="virtual").caption
    '3 calls, median 5.00 µs. The longest is call 3: 900 µs.'
    """
    return show(_CallTimes(record, blocked_from), ax, figure)


@dataclass(frozen=True, slots=True)
class _Predictions(Plot):
    record: "pd.DataFrame"

    def __post_init__(self) -> None:
        need(self.record, ("predicted_s", "measured_s"))

    @property
    def title(self) -> str:
        return f"{self.n_near} of {len(self.record)} predictions are right within a factor of 2"

    @property
    def ratios(self) -> "pd.Series[float]":
        """Measured over predicted time of each row."""
        return self.record["measured_s"] / self.record["predicted_s"]

    @property
    def n_near(self) -> int:
        """The number of predictions in the band; half and twice are equally far from it."""
        return int((np.maximum(self.ratios, 1 / self.ratios) <= _FACTOR).sum())

    @property
    def words(self) -> str:
        ratios = self.ratios
        farthest = ratios.iloc[int(np.argmax(np.maximum(ratios, 1 / ratios)))]
        return (
            f"{self.n_near} of {len(ratios)} readings lie within a factor of 2. The farthest is "
            f"{format_ratio(farthest)} times its prediction."
        )

    def draw(self, ax: "Axes") -> "Axes":
        frame = self.record
        scale, unit = unit_of([*frame["predicted_s"], *frame["measured_s"]])
        predicted, measured = frame["predicted_s"] / scale, frame["measured_s"] / scale
        ends = np.array([min(*predicted, *measured) / 2, max(*predicted, *measured) * 2])
        ax.plot(ends, ends, color=MUTED, linewidth=1.2, label="equal")
        low, high = ends / _FACTOR, ends * _FACTOR
        ax.fill_between(ends, low, high, color=MUTED, alpha=0.15, label="within 2 times")
        signs = marks(look_of("GPU"), source_of(frame)) | {"linestyle": "none"}
        ax.plot(predicted, measured, label="readings", **signs)
        for x, y, name in zip(predicted, measured, frame.get("label", ()), strict=False):
            if str(name):
                name_point(ax, str(name), (x, y))
        log_axis(ax, "x")
        log_axis(ax, "y")
        legend_below(ax)
        x_label, y_label = f"predicted ({unit})", f"measured ({unit})"
        return finish(ax, "Scatter plot", x_label, y_label, legend=False)


@typed
def predicted_against_measured(
    record: "pd.DataFrame",
    ax: "Axes | None" = None,
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw predicted against measured times; on the diagonal both agree.

    Parameters
    ----------
    record
        Columns ``predicted_s`` and ``measured_s``; names of the points if there is a ``label``.
    ax
        Axes to draw on. The band contains predictions within a factor of 2.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpulab import plots
    >>> frame = pd.DataFrame({"predicted_s": [1e-6, 9e-6], "measured_s": [1e-6, 3e-6]})
    >>> plots.predicted_against_measured(frame, source="virtual").caption
    '1 of 2 readings lie within a factor of 2. The farthest is 0.333 times its prediction.'
    """
    return show(_Predictions(record), ax, figure)
