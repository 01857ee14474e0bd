"""Figures of lesson 06: time per megabyte against the working set, with a hot and a cold cache."""

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
from gpulab.timing import measure
from gpulab.views.live import Series
from gpulab.views.live import series as live_series
from gpulab.views.plots import draw

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_HEADROOM = 1.15  # the axis ends 15 % above the highest point, which leaves room for the legend


_N_SAMPLES = 21
_MIB = 2**20
_SAME = 1.05  # two times count as equal up to this ratio


def in_words(
    value: float, words: Sequence[str], *, low: float = 1 / _SAME, high: float = _SAME
) -> str:
    """Return the word for a number that is below, between or above two limits.

    Parameters
    ----------
    value
        The number, for example the ratio of two times.
    words
        The words for below ``low``, for the range up to ``high``, and for above ``high``.
    low, high
        The limits; by default 5 % below and above 1.

    Examples
    --------
    >>> from gpulab.exercises import lesson_06 as lab
    >>> lab.in_words(1.3, ["faster", "as fast", "slower"])
    'slower'
    """
    return words[int(value >= low) + int(value > high)]


def per_megabyte(
    works: Mapping[float, Callable[[], object]], cache: str
) -> Iterator[dict[str, object]]:
    """Measure each work, and yield its time per megabyte as a row for :func:`staircase`.

    Parameters
    ----------
    works
        The works, by the size of their working sets in MiB.
    cache
        ``"hot"`` or ``"cold"``; this is also the name of the series.

    Examples
    --------
    >>> from gpulab.exercises import lesson_06 as lab
    >>> list(lab.per_megabyte({}, "hot"))
    []
    """
    for size_mib, work in works.items():
        reading = measure(work, cache=cache, n_samples=_N_SAMPLES, progress=False)
        value = reading.median_s * 1e6 / (size_mib * _MIB / 1e6)
        yield {"size_mib": size_mib, "value": value, "series": cache}


def live_staircase(
    works: Mapping[float, Callable[[], object]], cache: str, *, title: str, l2_mib: float
) -> Series:
    """Measure each work with a hot or cold cache, and show a figure that grows meanwhile.

    Parameters
    ----------
    works, cache
        See :func:`per_megabyte`.
    title, l2_mib
        See :func:`plot_staircase`.

    Examples
    --------
    >>> import gpulab, torch
    >>> from gpulab.exercises import lesson_06 as lab
    >>> with gpulab.virtual_gpu("H200"):
    ...     x = torch.ones(1 << 20, device="cuda")
    ...     lab.live_staircase({4: x.sum}, "hot", title="A staircase", l2_mib=60)
    1 of 1 result
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
    """Return the smallest size in MiB at which cold runs take less than 5 % longer than hot ones.

    Parameters
    ----------
    record
        Table with columns ``size_mib``, ``value`` and ``series``, which is ``"hot"`` or
        ``"cold"``.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpulab.exercises import lesson_06 as lab
    >>> rows = [(15, 1.0, "hot"), (15, 2.0, "cold"), (60, 2.0, "hot"), (60, 2.0, "cold")]
    >>> lab.meeting_point(pd.DataFrame(rows, columns=["size_mib", "value", "series"]))
    60.0
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
    """Return a figure of a quantity against size; see :func:`staircase`.

    The text alternative contains the first and the last value of each line.

    Parameters
    ----------
    record
        Table with columns ``size_mib``, ``value`` and ``series``.
    title
        Title of the figure.
    value_label, size_label, l2_mib
        See :func:`staircase`.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpulab.exercises import lesson_06 as lab
    >>> rows = pd.DataFrame({"size_mib": [15, 60], "value": [1.0, 2.0], "series": "hot"})
    >>> rows = rows.assign(source="virtual", device_name="NVIDIA H200")
    >>> figure = lab.plot_staircase(rows, title="Steps", value_label="time per MB (µs)")
    >>> figure.caption.splitlines()
    ['time per MB (µs), at the smallest and the largest working set (MiB):', 'hot: 1 and 2.']
    """
    need(record, ("size_mib", "value", "series"))
    ends = [f"{value_label}, at the smallest and the largest {size_label}:"]
    for name, part in record.groupby("series", sort=False):
        ordered = part.sort_values("size_mib")["value"]
        ends.append(f"{name}: {ordered.iloc[0]:.3g} and {ordered.iloc[-1]:.3g}.")
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
    """Plot a quantity against size on a logarithmic axis, one line per series.

    A line steps up at the size from which the cache no longer contains what the previous run left.
    This is less than the size of the cache, which a vertical line marks.

    Parameters
    ----------
    record
        Table with columns ``size_mib``, ``value`` and ``series``.
    ax
        The axes to plot on.
    value_label
        Label of the value, with its unit.
    size_label
        Label of the size, with its unit.
    l2_mib
        Size of the cache in MiB; None for no vertical line.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpulab import plots
    >>> from gpulab.exercises import lesson_06 as lab
    >>> rows = pd.DataFrame({"size_mib": [15, 60], "value": [1.0, 2.0], "series": "hot"})
    >>> figure = plots.draw(
    ...     lab.staircase, rows, title="Steps", alt="A step.", source="made up", value_label="µs"
    ... )
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
