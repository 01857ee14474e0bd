"""Plots of measurements, and of times in a frame."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import COUNT, COUNT_OR_ZERO, TEXT, Requirement
from gpulab.core.units import counted, format_estimate, format_ratio, format_time
from gpulab.device.measurement import Measurement
from gpulab.figures import (
    INK,
    MUTED,
    as_list,
    check_axes,
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
from gpulab.views.plots._draw import Words, one_call

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


_MOST_BINS = 10_000  # far more than a picture has pixels for
_N_BINS = Requirement(
    f"a whole number from 1 to {_MOST_BINS:,}",
    lambda value: COUNT.accepts(value) and value <= _MOST_BINS,
)


def _samples_words(record: object) -> Words:
    items = as_list(record)  # type: ignore[arg-type]  # as_list checks it
    return Words(f"Every sample of {_names(items)}", "\n".join(map(_spread, items)))


def _distribution_words(record: object, **_: object) -> Words:
    items = as_list(record)  # type: ignore[arg-type]  # as above
    title = f"How often {_names(items)} took how long"
    return Words(title, "\n".join(map(_spread, items)))


def _methods_words(record: object) -> Words:
    items = as_list(record)  # type: ignore[arg-type]  # as above
    medians = [
        f"{name_of(item)}: {format_estimate(item.median_s, *item.interval_s)}." for item in items
    ]
    least, most = (pick(item.median_s for item in items) for pick in (min, max))
    if 0 < least < most:
        medians.append(f"The largest is {format_ratio(most / least)} times the smallest.")
    height_in = _ROWS_MARGIN_IN + _ROW_IN * len(items)
    return Words("Median time per call", "\n".join(medians), height_in)


def _scaling_words(record: object, **_: object) -> Words:
    need(record, ("size", "duration_s", "series"))  # type: ignore[arg-type]  # need checks it
    frame: pd.DataFrame = record  # type: ignore[assignment]  # as above
    said = []
    for name, part in frame.groupby("series", sort=False):
        ordered = part.sort_values("size")
        ends = [ordered.iloc[place] for place in (0, -1)]
        first, last = (f"{format_time(end['duration_s'])} at {end['size']:,}" for end in ends)
        said.append(f"{one_line(str(name))}: from {first} to {last}.")
    return Words("Time per call over size", "\n".join(said))


def _calls_words(record: object, *, blocked_from: int | None = None) -> Words:
    del blocked_from
    frame = frame_of(record)
    need(frame, ("duration_s",))
    times_s = frame["duration_s"]
    longest = int(times_s.to_numpy().argmax())
    return Words(
        "Time of each call",
        f"{counted(len(times_s), 'call')}, median {format_time(times_s.median())}. The longest is "
        f"call {longest + 1:,}: {format_time(times_s.max())}.",
    )


def _guesses_words(record: object) -> Words:
    need(record, ("predicted_s", "measured_s"))  # type: ignore[arg-type]  # need checks it
    frame: pd.DataFrame = record  # type: ignore[assignment]  # as above
    ratios = frame["measured_s"] / frame["predicted_s"]
    # Half and twice the prediction are equally far from it.
    folds = np.maximum(ratios, 1 / ratios)
    n_near = int((folds <= 2).sum())  # noqa: PLR2004  # the band that is drawn
    farthest = ratios.iloc[int(np.argmax(folds))]
    return Words(
        "Predicted and measured",
        f"{n_near} of {len(ratios)} readings lie within a factor of 2. The farthest is "
        f"{format_ratio(farthest)} times its prediction.",
    )


def _names(items: Sequence[Measurement]) -> str:
    names = list(dict.fromkeys(map(name_of, items)))
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _spread(item: Measurement) -> str:
    low, high = (format_time(pick(item.samples_s)) for pick in (min, max))
    median = format_estimate(item.median_s, *item.interval_s)
    samples = counted(item.n_samples, "sample")
    return f"{name_of(item)}: median {median}, all {samples} from {low} to {high}."


@one_call(_samples_words)
def samples(record: Measurement | Sequence[Measurement], ax: "Axes") -> "Axes":
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
    measurements = as_list(record)
    check_axes(ax)
    scale, unit = unit_of([item.median_s for item in measurements])
    for item, look in zip(measurements, looks(map(name_of, measurements)), strict=False):
        index = np.arange(1, item.n_samples + 1)
        signs = marks(look, item.source) | {"linestyle": "none"}
        ax.plot(index, np.array(item.samples_s) / scale, markersize=4, **signs)
        median, label = item.median_s / scale, name_of(item)
        ax.axhline(median, color=look.colour, linewidth=1.2, label=label)
        low, high = (bound / scale for bound in item.interval_s)
        ax.axhspan(low, high, color=look.colour, alpha=0.15, linewidth=0)
    return finish(ax, "Scatter plot", "sample, in the order taken", f"time per call ({unit})")


@one_call(_distribution_words)
def distribution(
    record: Measurement | Sequence[Measurement], ax: "Axes", *, n_bins: int = 30
) -> "Axes":
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
    measurements = as_list(record)
    check_axes(ax)
    _N_BINS.check(n_bins=n_bins)
    scale, unit = unit_of([item.median_s for item in measurements])
    values = np.concatenate([item.samples_s for item in measurements]) / scale
    # The same bins for all measurements, or their counts could not be compared.
    edges = np.histogram_bin_edges(values, bins=n_bins)
    for item, look in zip(measurements, looks(map(name_of, measurements)), strict=False):
        counts, _ = np.histogram(np.array(item.samples_s) / scale, bins=edges)
        ax.stairs(
            counts,
            edges,
            color=look.colour,
            linestyle=marks(look, item.source)["linestyle"],
            linewidth=2,
        )
        median, label = item.median_s / scale, name_of(item)
        ax.axvline(median, color=look.colour, linewidth=1.2, label=label)
    return finish(ax, "Histogram", f"time per call ({unit})", "number of samples")


@one_call(_methods_words)
def compare_methods(record: Sequence[Measurement], ax: "Axes") -> "Axes":
    """Draw one row per method: its median with the 95 % interval, on a logarithmic axis.

    A narrow interval means that a method repeats well, not that it is right. The colour is that of
    the cache, hot or cold. If the work empties or fills the cache itself, gpulab cannot know its
    state: begin the label with it, as in ``"cold, rotated"``.

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
    measurements = as_list(record)
    check_axes(ax)
    scale, unit = unit_of([item.median_s for item in measurements])
    for row, item in enumerate(measurements):
        median = item.median_s / scale
        low, high = (bound / scale for bound in item.interval_s)
        ax.errorbar(
            median,
            row,
            # matplotlib refuses errors below 0, which rounding can give for a narrow interval.
            xerr=[[max(median - low, 0.0)], [max(high - median, 0.0)]],
            capsize=4,
            **marks(next(looks([_cache_of(item)])), item.source),
        )
        text = format_estimate(item.median_s, *item.interval_s)
        ax.annotate(
            text, (median, row), (0, 8), textcoords="offset points", ha="center", fontsize="small"
        )
    ax.set_yticks(range(len(measurements)), [name_of(item) for item in measurements])
    # Reversed, so that the first row is at the top, with room for the text above it.
    ax.set_ylim(len(measurements) - 0.5, -0.7)
    ax.grid(visible=True, axis="x")
    # Room at both ends, because a text is wider than its point.
    ax.margins(x=0.25)
    log_axis(ax, "x")
    return finish(ax, "Dot plot", f"time per call ({unit})", "", legend=False)


def _cache_of(item: Measurement) -> str:
    """Return the state of the cache that the label begins with, or that gpulab set up."""
    first = name_of(item).partition(",")[0]
    return first if first in {"hot", "cold"} else item.conditions.cache


@one_call(_scaling_words)
def scaling(record: "pd.DataFrame", ax: "Axes", *, size_label: str = "size") -> "Axes":
    """Draw times over size, one line per series, both axes logarithmic.

    Parameters
    ----------
    record
        Columns ``size``, ``duration_s`` and ``series``.
    ax
        Axes to draw on.
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
    need(record, ("size", "duration_s", "series"))
    check_axes(ax)
    TEXT.check(size_label=size_label)
    scale, unit = unit_of(record["duration_s"])
    groups = [(str(name), part) for name, part in record.groupby("series", sort=False)]
    for (name, part), look in zip(groups, looks(name for name, _ in groups), strict=False):
        ordered = part.sort_values("size")
        signs = marks(look, source_of(part))
        times = ordered["duration_s"] / scale
        ax.plot(ordered["size"], times, label=one_line(name), **signs)
    log_axis(ax, "x")
    log_axis(ax, "y")
    size_ticks(ax, record["size"])
    ax.grid(visible=True)
    return finish(ax, "Line chart", size_label, f"time per call ({unit})")


@one_call(_calls_words)
def call_times(record: object, ax: "Axes", *, blocked_from: int | None = None) -> "Axes":
    """Draw how long the host took for each of many successive launches.

    Parameters
    ----------
    record
        Seconds of each call in order, a ``Measurement``, or a frame with ``duration_s``.
    ax
        Axes to draw on.
    blocked_from
        Number of the first call that had to wait, counted from 1, to be marked; None: no mark.

    Examples
    --------
    >>> from gpulab import plots
    >>> plots.call_times([5e-6, 5e-6, 900e-6], source="virtual").caption
    '3 calls, median 5.00 µs. The longest is call 3: 900 µs.'
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
        markersize=4,
        **marks(look_of("host"), source_of(record)) | {"linestyle": "none"},
    )
    if blocked_from is not None:
        ax.axvline(
            blocked_from,
            color=INK,
            linestyle=":",
            zorder=1,
            label=f"call {blocked_from:,}",
        )
        ax.annotate(
            f"call {blocked_from:,} waits",
            (blocked_from, 1.0),
            (-6, -2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="right",
            va="top",
        )
    log_axis(ax, "y")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.grid(visible=True)
    return finish(ax, "Scatter plot", "call, in the order made", f"time on the host ({unit})")


@one_call(_guesses_words)
def predicted_against_measured(record: "pd.DataFrame", ax: "Axes") -> "Axes":
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
    need(record, ("predicted_s", "measured_s"))
    check_axes(ax)
    scale, unit = unit_of([*record["predicted_s"], *record["measured_s"]])
    predicted, measured = record["predicted_s"] / scale, record["measured_s"] / scale
    ends = np.array([min(*predicted, *measured) / 2, max(*predicted, *measured) * 2])
    ax.plot(ends, ends, color=MUTED, linewidth=1.2, label="equal")
    ax.fill_between(ends, ends / 2, ends * 2, color=MUTED, alpha=0.15, label="within 2 times")
    signs = marks(look_of("GPU"), source_of(record)) | {"linestyle": "none"}
    ax.plot(predicted, measured, label="readings", **signs)
    for x, y, name in zip(predicted, measured, record.get("label", ()), strict=False):
        if str(name):
            name_point(ax, str(name), (x, y))
    log_axis(ax, "x")
    log_axis(ax, "y")
    legend_below(ax)
    x_label, y_label = f"predicted ({unit})", f"measured ({unit})"
    return finish(ax, "Scatter plot", x_label, y_label, legend=False)
