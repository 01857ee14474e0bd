"""Plots of measurements: samples in order, and methods side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from gpulab.core.errors import InvalidOptionError, shown
from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import instance_of, items_of
from gpulab.core.units import counted, format_estimate, format_ratio, format_time
from gpulab.device.measurement import Measurement
from gpulab.figures import (
    Figure,
    FigureOptions,
    Plot,
    finish,
    log_axis,
    looks,
    marks,
    unit_of,
    write_beside,
)
from gpulab.views.plots._draw import show, typed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MOST_NAMES = 3  # in a title; more would not fit into its line
_ROW_IN, _ROWS_MARGIN_IN = 0.5, 1.2
_FROM_ZERO = 3.0  # times; if rows differ by less, lengths from zero show by how much


@dataclass(frozen=True, slots=True)
class _Measurements(Plot):
    """The base of the charts of one or several measurements."""

    record: Sequence[Measurement]

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
        names = list(dict.fromkeys(map(_name_of, self.record)))
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        return f"Every sample of {', '.join(names[:_MOST_NAMES])}{more}"

    @property
    def words(self) -> str:
        return "\n".join(map(self._spread, self.record))

    @staticmethod
    def _spread(item: Measurement) -> str:
        low, high = (format_time(pick(item.samples_s)) for pick in (min, max))
        n_samples = counted(item.n_samples, "sample")
        return f"{_name_of(item)}: median {_median(item)}, all {n_samples} from {low} to {high}."

    def draw(self, ax: "Axes") -> "Axes":
        scale, unit = self.scale
        for item, look in zip(self.record, looks(map(_name_of, self.record)), strict=False):
            index = np.arange(1, item.n_samples + 1)
            signs = marks(look, item.source) | {"linestyle": "none"}
            ax.plot(index, np.array(item.samples_s) / scale, markersize=4, **signs)
            median, label = item.median_s / scale, _name_of(item)
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
    return show(_Samples(_as_list(record)), ax, figure)


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
        names = [_name_of(ordered[position]) for position in (-1, 0)]
        ratio = format_ratio(self.ratio)
        if ratio == "1" or names[0] == names[1]:
            return "Median time per call"
        if len({item.method for item in self.record}) > 1:  # a method may read too much or little
            return f"{names[0]} reads {ratio} times as much as {names[1]}"
        return f"{names[0]} takes {ratio} times as long as {names[1]}"

    @property
    def words(self) -> str:
        medians = [f"{_name_of(item)}: {_median(item)}." for item in self.record]
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
            text = _median(item)
            write_beside(ax, text, (median, row), (0, 8), va="baseline", fontsize="small")
        ax.set_yticks(range(len(self.record)), [_name_of(item) for item in self.record])
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
    first = _name_of(item).partition(",")[0]
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
    return show(_Methods(_as_list(record)), ax, figure)


_MEASUREMENT = instance_of(Measurement, "a Measurement, such as measure() returns")


def _as_list(record: Measurement | Sequence[Measurement]) -> list[Measurement]:
    """Return one measurement, or several, as a list; anything else is refused."""
    measured = [record] if isinstance(record, Measurement) else record
    measurements = list(items_of("record", measured, _MEASUREMENT))
    if not measurements:
        raise InvalidOptionError(f"record={shown(record)} has no measurements; give at least one")
    return measurements


def _name_of(item: Measurement) -> str:
    """Return the label of a measurement, or its method if it has none."""
    return one_line(item.label or item.method)
