"""What lesson 10 draws: a time that grows in steps beside the straight line of the roofline."""

from typing import TYPE_CHECKING

from gpulab.figures import finish, looks, need, unit_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def steps(record: "pd.DataFrame", ax: "Axes", *, size_label: str = "rows") -> "Axes":
    """Draw times against size from zero, one line a series, so that steps can be seen.

    A step means that the work was cut into one more round of pieces than before. Between the
    sizes that are drawn the time may do anything.

    Parameters
    ----------
    record
        Columns ``size``, ``duration_s`` and ``series``.
    ax
        Axes to draw on.
    size_label
        What the size is.
    """
    need(record, ("size", "duration_s", "series"))
    scale, unit = unit_of(record["duration_s"])
    for (name, part), look in zip(record.groupby("series", sort=False), looks(), strict=False):
        ordered = part.sort_values("size")
        ax.plot(
            ordered["size"],
            ordered["duration_s"] / scale,
            color=look.colour,
            marker=look.marker,
            markersize=4,
            linestyle=look.dashes,
            label=str(name),
        )
    ax.set_xlim(0, None)
    ax.set_ylim(0, None)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.grid(visible=True, alpha=0.3)
    return finish(ax, "Line chart", size_label, f"time per call ({unit})")
