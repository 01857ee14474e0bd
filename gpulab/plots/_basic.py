"""Plots are functions from a record and axes to the same axes; `draw` makes one to look at."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpulab.errors import InvalidOptionError
from gpulab.figures import (
    COLOURS,
    Figure,
    as_list,
    check_axes,
    finish,
    frame_of,
    log_axis,
    looks,
    name_of,
    need,
    provenance,
    render,
    unit_of,
)
from gpulab.foreign_text import one_line, visible
from gpulab.measurement import Measurement
from gpulab.requirements import COUNT, COUNT_OR_ZERO, POSITIVE, TEXT, Requirement
from gpulab.units import format_estimate

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = [
    "call_times",
    "compare_methods",
    "distribution",
    "draw",
    "predicted_against_measured",
    "samples",
    "scaling",
]


_ONE_LINE_TITLE = 56
_MANY_TICKS = 10


_PLOT = Requirement("a function of gpulab.plots, or any f(record, ax)", callable)
_MOST_BINS = 10_000  # far more than a picture has pixels for
_N_BINS = Requirement(
    f"a whole number from 1 to {_MOST_BINS:,}",
    lambda value: COUNT.accepts(value) and value <= _MOST_BINS,
)
_SIZE = Requirement(
    "width and height in inches, such as (6.4, 4.0)",
    lambda value: (
        isinstance(value, list | tuple)
        and len(value) == 2  # noqa: PLR2004  # width and height
        and all(map(POSITIVE.accepts, value))
    ),
)


def check_figure(plot: object, *, title: str, alt: str, ax_size: object) -> None:
    """Refuse what no figure can be made with; parameters are those of :func:`draw`.

    Raises
    ------
    InvalidOptionError
        If one of them is not what it must be.
    """
    _PLOT.check(plot=plot)
    TEXT.check(title=title, alt=alt)
    if not alt.strip():
        raise InvalidOptionError(f"alt={alt!r}; say in a sentence what is to be seen in the plot")
    _SIZE.check(ax_size=ax_size)


def draw(  # noqa: PLR0913  # what a figure needs is keyword-only
    plot: "Callable[..., Axes]",
    record: object,
    *,
    title: str,
    alt: str,
    ax_size: tuple[float, float] = (6.4, 4.0),
    source: object = None,
    **options: object,
) -> Figure:
    """Draw a record and give a display object that also reads as text.

    Parameters
    ----------
    plot
        One of the functions of this module, or any ``f(record, ax, **options) -> Axes``.
    record
        What it draws.
    title
        Title, without the source: where the numbers come from is added to it.
    alt
        What is to be seen, in a sentence or two; axes, units and ranges are added to it.
    ax_size
        Width and height, in inches.
    source
        Where the numbers come from, when the record does not say: a ``Device`` or text.
    **options
        Given to ``plot``.

    Returns
    -------
    Figure
        Picture, description and table of the data.

    Raises
    ------
    InvalidOptionError
        If ``alt`` is empty, or nothing says where the numbers come from.
    """
    from matplotlib.figure import Figure as Canvas

    check_figure(plot, title=title, alt=alt, ax_size=ax_size)
    origin = provenance(record, source)
    # Not through pyplot: no window, no global list of figures, no change of style.
    canvas = Canvas(figsize=ax_size, layout="constrained", facecolor="white")
    ax = canvas.add_subplot()
    plot(record, ax, **options)
    gap = "\n" if len(title) + len(origin) > _ONE_LINE_TITLE else " "
    ax.set_title(visible(f"{title}{gap}({origin})"), fontsize="medium", parse_math=False)
    return render(ax, alt=alt, frame=frame_of(record))


def samples(record: Measurement | Sequence[Measurement], ax: "Axes") -> "Axes":
    """Draw every sample in the order taken, with the median and its 95 % interval.

    The band is about the median; single samples may well lie outside it.
    """
    measurements = as_list(record)
    check_axes(ax)
    scale, unit = unit_of([item.median_s for item in measurements])
    for item, look in zip(measurements, looks(), strict=False):
        index = np.arange(1, item.n_samples + 1)
        ax.plot(
            index,
            np.array(item.samples_s) / scale,
            linestyle="none",
            marker=look.marker,
            markersize=4,
            color=look.colour,
            label=name_of(item),
        )
        ax.axhline(item.median_s / scale, color=look.colour, linestyle=look.dashes, linewidth=1)
        low, high = (bound / scale for bound in item.interval_s)
        ax.axhspan(low, high, color=look.colour, alpha=0.15, linewidth=0)
    return finish(ax, "Scatter plot", "sample, in the order taken", f"time per call ({unit})")


def distribution(
    record: Measurement | Sequence[Measurement], ax: "Axes", *, n_bins: int = 30
) -> "Axes":
    """Count the samples by their length, with the median as a line.

    Two humps mean two regimes; then the median describes neither.
    """
    measurements = as_list(record)
    check_axes(ax)
    _N_BINS.check(n_bins=n_bins)
    scale, unit = unit_of([item.median_s for item in measurements])
    values = np.concatenate([item.samples_s for item in measurements]) / scale
    edges = np.histogram_bin_edges(values, bins=n_bins)
    for item, look in zip(measurements, looks(), strict=False):
        counts, _ = np.histogram(np.array(item.samples_s) / scale, bins=edges)
        ax.stairs(
            counts,
            edges,
            color=look.colour,
            linestyle=look.dashes,
            linewidth=1.5,
            label=name_of(item),
        )
        ax.axvline(item.median_s / scale, color=look.colour, linestyle=":", linewidth=1)
    return finish(ax, "Histogram", f"time per call ({unit})", "number of samples")


def compare_methods(record: Sequence[Measurement], ax: "Axes") -> "Axes":
    """Draw one row a method: the median of each with its 95 % interval, on a log axis.

    A narrow interval says that a method repeats itself, not that it is right.
    """
    measurements = as_list(record)
    check_axes(ax)
    scale, unit = unit_of([item.median_s for item in measurements])
    for row, (item, look) in enumerate(zip(measurements, looks(), strict=False)):
        median = item.median_s / scale
        low, high = (bound / scale for bound in item.interval_s)
        ax.errorbar(
            median,
            row,
            xerr=[[max(median - low, 0.0)], [max(high - median, 0.0)]],
            fmt=look.marker,
            color=look.colour,
            capsize=4,
        )
        text = format_estimate(item.median_s, *item.interval_s)
        ax.annotate(
            text, (median, row), (0, 8), textcoords="offset points", ha="center", fontsize="small"
        )
    ax.set_yticks(range(len(measurements)), [name_of(item) for item in measurements])
    ax.set_ylim(len(measurements) - 0.5, -0.7)
    ax.grid(visible=True, axis="x", alpha=0.3)
    ax.margins(x=0.25)
    log_axis(ax, "x")
    return finish(ax, "Dot plot", f"time per call ({unit})", "", legend=False)


def scaling(record: "pd.DataFrame", ax: "Axes", *, size_label: str = "size") -> "Axes":
    """Draw readings against size, one line a series, both axes logarithmic.

    Parameters
    ----------
    record
        Columns ``size``, ``duration_s`` and ``series``.
    ax
        Axes to draw on.
    size_label
        What the size is, e.g. ``"n (matrices are n by n)"``.
    """
    need(record, ("size", "duration_s", "series"))
    check_axes(ax)
    TEXT.check(size_label=size_label)
    scale, unit = unit_of(record["duration_s"])
    for (name, part), look in zip(record.groupby("series", sort=False), looks(), strict=False):
        ordered = part.sort_values("size")
        ax.plot(
            ordered["size"],
            ordered["duration_s"] / scale,
            color=look.colour,
            marker=look.marker,
            linestyle=look.dashes,
            label=one_line(str(name)),
        )
    log_axis(ax, "x")
    log_axis(ax, "y")
    sizes = sorted(set(record["size"]))
    if len(sizes) <= _MANY_TICKS:
        ax.set_xticks(sizes)
    ax.grid(visible=True, alpha=0.3)
    return finish(ax, "Line chart", size_label, f"time per call ({unit})")


def call_times(record: object, ax: "Axes", *, blocked_from: int | None = None) -> "Axes":
    """Draw how long each of n successive launches kept the host.

    Parameters
    ----------
    record
        Seconds of each call in order; a ``Measurement`` or a frame with ``duration_s`` also do.
    ax
        Axes to draw on.
    blocked_from
        Number of the first call that had to wait, counted from 1; marked when given.
    """
    frame = frame_of(record)
    need(frame, ("duration_s",))
    check_axes(ax)
    COUNT_OR_ZERO.or_none.check(blocked_from=blocked_from)
    scale, unit = unit_of(frame["duration_s"])
    index = np.arange(1, len(frame) + 1)
    ax.plot(
        index,
        frame["duration_s"] / scale,
        linestyle="none",
        marker="o",
        markersize=3.5,
        color=COLOURS[0],
    )
    if blocked_from is not None:
        ax.axvline(
            blocked_from,
            color=COLOURS[1],
            linestyle="--",
            zorder=1,
            label=f"call {blocked_from:,}",
        )
    log_axis(ax, "y")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.grid(visible=True, alpha=0.3)
    return finish(ax, "Scatter plot", "call, in the order made", f"time on the host ({unit})")


def predicted_against_measured(record: "pd.DataFrame", ax: "Axes") -> "Axes":
    """Draw what was predicted against what came out; on the diagonal both agree.

    Parameters
    ----------
    record
        Columns ``predicted_s`` and ``measured_s``; ``label`` names the points when present.
    ax
        Axes to draw on. The band holds what is right within a factor of 2.
    """
    need(record, ("predicted_s", "measured_s"))
    check_axes(ax)
    scale, unit = unit_of([*record["predicted_s"], *record["measured_s"]])
    predicted, measured = record["predicted_s"] / scale, record["measured_s"] / scale
    ends = np.array([min(*predicted, *measured) / 2, max(*predicted, *measured) * 2])
    ax.plot(ends, ends, color="#595959", linestyle="--", linewidth=1, label="equal")
    ax.fill_between(ends, ends / 2, ends * 2, color="#595959", alpha=0.12, label="within 2 times")
    ax.plot(predicted, measured, linestyle="none", marker="o", color=COLOURS[0], label="readings")
    for x, y, name in zip(predicted, measured, record.get("label", ()), strict=False):
        ax.annotate(
            one_line(str(name)), (x, y), (6, -3), textcoords="offset points", fontsize="small"
        )
    log_axis(ax, "x")
    log_axis(ax, "y")
    return finish(ax, "Scatter plot", f"predicted ({unit})", f"measured ({unit})")
