"""Figures of lesson 06: time per megabyte against the working set, with a hot and a cold cache."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpulab import device
from gpulab.figures import (
    MUTED,
    Figure,
    Plot,
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
    """Measure each work, and yield its time per megabyte as a row for :func:`plot_staircase`.

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


@dataclass(frozen=True, slots=True)
class _Staircase(Plot):
    """A quantity against size on a logarithmic axis, one line per series.

    A line steps up at the size from which the cache no longer contains what the previous run left.
    This is less than the size of the cache, which a vertical line marks.
    """

    record: "pd.DataFrame"
    title: str = field()
    value_label: str = field()
    size_label: str = "working set (MiB)"
    l2_mib: float | None = None

    def __post_init__(self) -> None:
        need(self.record, ("size_mib", "value", "series"))

    @property
    def parts(self) -> "list[tuple[str, pd.DataFrame]]":
        """Name and rows of each line, sorted by size."""
        groups = self.record.groupby("series", sort=False)
        return [(str(name), part.sort_values("size_mib")) for name, part in groups]

    @property
    def words(self) -> str:
        sentences = [f"{self.value_label}, at the smallest and the largest {self.size_label}:"]
        for name, part in self.parts:
            first, last = (part["value"].iloc[end] for end in (0, -1))
            sentences.append(f"{name}: {first:.3g} and {last:.3g}.")
        return "\n".join(sentences)

    def draw(self, ax: "Axes") -> "Axes":
        names = (name for name, _ in self.parts)
        for (name, part), look in zip(self.parts, looks(names), strict=False):
            ax.plot(part["size_mib"], part["value"], label=name, **marks(look, source_of(part)))
        if self.l2_mib is not None:
            ax.axvline(self.l2_mib, color=MUTED, zorder=1)
            ax.annotate(
                "size of the L2",
                (self.l2_mib, 0.0),
                (5, 4),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                color=MUTED,
            )
        log_axis(ax, "x")
        size_ticks(ax, self.record["size_mib"])
        ax.set_ylim(0, _HEADROOM * float(self.record["value"].max()))
        ax.grid(visible=True)
        return finish(ax, "Line chart", self.size_label, self.value_label)


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
    value_label = "time per MB (µs)"

    def draw(record: "pd.DataFrame", ax: "Axes") -> "Axes":
        return _Staircase(record, title, value_label, l2_mib=l2_mib).draw(ax)

    return live_series(
        per_megabyte(works, cache),
        draw,
        n_expected=len(works),
        title=title,
        alt="Time per megabyte over the size of the working set; the numbers are in the table.",
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
    """Return a figure of a quantity against size, one line per series.

    The text alternative contains the first and the last value of each line.

    Parameters
    ----------
    record
        Table with columns ``size_mib``, ``value`` and ``series``.
    title
        Title of the figure.
    value_label, size_label
        Labels of the value and of the size, with their units.
    l2_mib
        Size of the cache in MiB; None for no vertical line.

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
    source = None if "source" in record else device.current()
    return _Staircase(record, title, value_label, size_label, l2_mib).figure(source=source)
