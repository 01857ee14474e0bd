"""The staircase of a cache: a quantity against the size of the working set, and where it meets."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gpulab import device
from gpulab.figures import (
    MUTED,
    Figure,
    finish,
    log_axis,
    looks,
    marks,
    need,
    size_ticks,
    source_of,
)
from gpulab.live import Series
from gpulab.live import series as live_series
from gpulab.plots import draw
from gpulab.timing import measure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_HEADROOM = 1.15  # above the highest point, for the legend


_N_SAMPLES = 21
_MIB = 2**20
_SAME = 1.05  # as near as two times have to be to count as equal


def in_words(
    value: float, words: Sequence[str], *, low: float = 1 / _SAME, high: float = _SAME
) -> str:
    """Return the word for a number below, within or above two limits.

    Parameters
    ----------
    value
        Such as a ratio of two times.
    words
        For below ``low``, for the range up to ``high``, and for above.
    low, high
        The limits; by default 5 % below and above 1.
    """
    return words[int(value >= low) + int(value > high)]


def per_megabyte(
    works: Mapping[float, Callable[[], object]], cache: str
) -> Iterator[dict[str, object]]:
    """Measure each work and yield its time per megabyte, as rows for :func:`staircase`.

    Parameters
    ----------
    works
        What to measure, by the size of its working set in MiB.
    cache
        ``"hot"`` or ``"cold"``; it names the series, too.
    """
    for size_mib, work in works.items():
        reading = measure(work, cache=cache, n_samples=_N_SAMPLES, progress=False)
        value = reading.median_s * 1e6 / (size_mib * _MIB / 1e6)
        yield {"size_mib": size_mib, "value": value, "series": cache}


def live_staircase(
    works: Mapping[float, Callable[[], object]], cache: str, *, title: str, l2_mib: float
) -> Series:
    """Measure each work with a hot or cold cache, and draw each result as soon as it is there.

    Parameters
    ----------
    works, cache
        As in :func:`per_megabyte`.
    title, l2_mib
        As in :func:`plot_staircase`.
    """
    return live_series(
        per_megabyte(works, cache),
        staircase,
        n_expected=len(works),
        title=title,
        alt="Time per megabyte over the size of the working set; the numbers are in the table.",
        value_label="time per MB (µs)",
        l2_mib=l2_mib,
    )


def meeting_point(record: "pd.DataFrame") -> float:
    """Return the smallest size in MiB at which cold takes at most 5 % longer than hot.

    Parameters
    ----------
    record
        Columns ``size_mib``, ``value`` and ``series``, which is ``"hot"`` or ``"cold"``.
    """
    table = record.pivot_table(index="size_mib", columns="series", values="value")
    return float(table.index[table["cold"] < _SAME * table["hot"]].min())


def plot_staircase(
    record: "pd.DataFrame",
    *,
    title: str,
    value_label: str,
    size_label: str = "working set (MiB)",
    l2_mib: float | None = None,
) -> Figure:
    """Return a figure of :func:`staircase`; its text alternative gives the ends of each line.

    Parameters
    ----------
    record
        Columns ``size_mib``, ``value`` and ``series``.
    title
        Title of the figure.
    value_label, size_label, l2_mib
        As in :func:`staircase`.
    """
    need(record, ("size_mib", "value", "series"))
    ends = []
    for name, part in record.groupby("series", sort=False):
        ordered = part.sort_values("size_mib")["value"]
        ends.append(
            f"{name}: {ordered.iloc[0]:.3g} on the left, {ordered.iloc[-1]:.3g} on the right."
        )
    return draw(
        staircase,
        record,
        title=title,
        alt="\n".join(ends),
        source=None if "source" in record else device.current(),
        value_label=value_label,
        size_label=size_label,
        l2_mib=l2_mib,
    )


def staircase(
    record: "pd.DataFrame",
    ax: "Axes",
    *,
    value_label: str,
    size_label: str = "working set (MiB)",
    l2_mib: float | None = None,
) -> "Axes":
    """Draw a quantity against size on a logarithmic axis, one line a series.

    Where a line steps up, the cache no longer holds what the run before left. That is not the
    size of the cache, which is marked where it is given.

    Parameters
    ----------
    record
        Columns ``size_mib``, ``value`` and ``series``.
    ax
        Axes to draw on.
    value_label
        What the value is, with its unit.
    size_label
        What the size is, with its unit.
    l2_mib
        Size of the cache.
    """
    need(record, ("size_mib", "value", "series"))
    groups = [(str(name), part) for name, part in record.groupby("series", sort=False)]
    for (name, part), look in zip(groups, looks(name for name, _ in groups), strict=False):
        ordered = part.sort_values("size_mib")
        signs = marks(look, source_of(part))
        ax.plot(ordered["size_mib"], ordered["value"], label=name, **signs)
    if l2_mib is not None:
        ax.axvline(l2_mib, color=MUTED, zorder=1)
        ax.annotate(
            "size of the L2",
            (l2_mib, 0.0),
            (5, 4),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            color=MUTED,
        )
    log_axis(ax, "x")
    size_ticks(ax, record["size_mib"])
    ax.set_ylim(0, _HEADROOM * float(record["value"].max()))
    ax.grid(visible=True)
    return finish(ax, "Line chart", size_label, value_label)
