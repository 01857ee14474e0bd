"""The pictures and tables of lesson 09: where many operations cross, side by side."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gpulab.figures import finish, log_axis, looks, need
from gpulab.scaling import Crossing, Crossover
from gpulab.workloads import workload

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_APART = 0.3  # of a row, between the series
_KIB = 1024
_EDGES = {"always": "<", "never": ">"}
_SHORT = {
    "always": "GPU faster at all sizes",
    "never": "GPU faster at no size",
    "undecided": "not decided",
}


def crossings_of(records: Iterable[Crossover]) -> "pd.DataFrame":
    """Return a row for each crossing, without transfers and with them.

    Sizes count different things, so they are turned into bytes: inputs and results together.

    Returns
    -------
    pandas.DataFrame
        Columns ``operation``, ``series``, ``kind``, ``text`` (the crossing in words), and in KiB
        ``size_kib``, ``low_kib``, ``high_kib``. Without a crossing the three are the smallest or
        the largest size that was compared.
    """
    import pandas as pd

    rows = []
    for record in records:
        rows.append(_row(record, "without transfers", record.bare_crossing))
        if record.transfers != "none":
            rows.append(_row(record, "with transfers", record.crossing))
    return pd.DataFrame(rows)


def crossings(record: "pd.DataFrame", ax: "Axes") -> "Axes":
    """Draw where each operation crosses, one row an operation, with the 95 % intervals.

    A triangle at the edge of what was measured says that there is no crossing inside: it points
    to where one might be. Operations that cross more than once have no mark.

    Parameters
    ----------
    record
        What :func:`crossings_of` returns.
    ax
        Axes to draw on.
    """
    need(record, ("operation", "series", "kind", "size_kib", "low_kib", "high_kib"))
    names = list(dict.fromkeys(record["operation"]))
    parts = [part for _, part in record.groupby("series", sort=False)]
    for index, (part, look) in enumerate(zip(parts, looks(), strict=False)):
        shown = part[part["size_kib"].notna()]
        # Series of one row step aside, or their intervals would lie on each other.
        aside = _APART * (index - (len(parts) - 1) / 2)
        rows = [names.index(name) + aside for name in shown["operation"]]
        size = shown["size_kib"]
        reach = [size - shown["low_kib"], shown["high_kib"] - size]
        ax.errorbar(
            size, rows, xerr=reach, fmt="none", ecolor=look.colour, capsize=3, elinewidth=1.2
        )
        for kind, mark in {"once": look.marker, **_EDGES}.items():
            chosen = (shown["kind"] == kind).to_numpy()
            heights = [row for row, keep in zip(rows, chosen, strict=True) if keep]
            label = str(part["series"].iloc[0]) if kind == "once" else None
            ax.plot(size[chosen], heights, mark, color=look.colour, linestyle="none", label=label)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(visible=True, axis="x", alpha=0.3)
    log_axis(ax, "x")
    return finish(ax, "Dot plot", "inputs and results at the crossing (KiB)", "operation")


def short(crossing: Crossing | None) -> str:
    """Write a crossing in few words, for a column of a table."""
    if crossing is None:
        return "no line"
    return _SHORT.get(crossing.kind, str(crossing))


def nearest(choices: Sequence[str], crossing: Crossing) -> str:
    """Return the choice, a number as text, that is nearest to a crossing in logarithms.

    Where the GPU is faster at every size it is the first choice, and the last one where it is
    at none, or where the curves do not cross just once.
    """
    if crossing.size is None:
        return choices[0 if crossing.kind == "always" else -1]
    size = crossing.size
    return min(choices, key=lambda text: abs(math.log(float(text.replace(",", "")) / size)))


def _row(record: Crossover, series: str, crossing: Crossing) -> dict[str, object]:
    ends = {"always": crossing.first, "never": crossing.last}
    size = ends.get(crossing.kind, crossing.size)
    low = size if crossing.low is None else max(crossing.low, crossing.first)
    high = size if crossing.high is None else min(crossing.high, crossing.last)
    sizes = {"size_kib": size, "low_kib": low, "high_kib": high}
    return {
        "operation": record.workload,
        "series": series,
        "kind": crossing.kind,
        "text": short(crossing),
        **{name: _kib(record, value) for name, value in sizes.items()},
    }


def _kib(record: Crossover, size: float | None) -> float:
    """Return the bytes of a size between two whole ones, too."""
    if size is None:
        return math.nan
    below = max(1, math.floor(size))
    one, two = (workload(record.workload).bytes(n, record.dtype) for n in (below, below + 1))
    return (one + (size - below) * (two - one)) / _KIB
