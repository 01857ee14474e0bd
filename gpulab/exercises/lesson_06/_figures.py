"""The staircase of a cache: a quantity against the size of what is worked on."""

from typing import TYPE_CHECKING

from gpulab.figures import finish, log_axis, looks, need

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_MANY_TICKS = 12
_HEADROOM = 1.15  # above the highest point, for the legend


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
    for (name, part), look in zip(record.groupby("series", sort=False), looks(), strict=False):
        ordered = part.sort_values("size_mib")
        ax.plot(
            ordered["size_mib"],
            ordered["value"],
            color=look.colour,
            marker=look.marker,
            linestyle=look.dashes,
            label=str(name),
        )
    if l2_mib is not None:
        ax.axvline(l2_mib, color="#595959", linestyle=":", zorder=1, label="size of the L2")
    log_axis(ax, "x")
    sizes = sorted(set(record["size_mib"]))
    if len(sizes) <= _MANY_TICKS:
        ax.set_xticks(sizes)
    ax.set_ylim(0, _HEADROOM * float(record["value"].max()))
    ax.grid(visible=True, alpha=0.3)
    return finish(ax, "Line chart", size_label, value_label)
