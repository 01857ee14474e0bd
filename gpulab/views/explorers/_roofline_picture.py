"""Draw the two pictures of the roofline explorer, with one GPU or two on the same axes."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpulab.figures import INK, legend_below, look_of, marks, name_line, name_slope
from gpulab.gpus.provenance import device_label
from gpulab.roofline import Ceilings, Chart
from gpulab.views.plots import predicted_against_measured, roofline

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


Places: TypeAlias = NDArray[np.float64]

TERA = 1e12
_N_NAMED = 6  # of the points farthest from their prediction
_NAMED_FROM = np.log(1.25)  # a point within 25 % of its prediction gets no name
_SECOND = "v"  # marker of the second GPU; the first has one for each bound
_SECOND_ROOF = "-."
_HEADROOM = 1.5  # factor above the highest roof
_N_PLACES = 60  # along a roof of the second GPU


class Side(NamedTuple):
    """One GPU of the picture.

    Attributes
    ----------
    rows
        Its points, in the form of :func:`gpulab.roofline.table`.
    places
        Position of each point on the axes.
    ceilings
        Its roofs.
    """

    rows: "pd.DataFrame"
    places: Places
    ceilings: Ceilings


def short_name(side: Side) -> str:
    """Return the name of a GPU with the source of its points, in few words."""
    first = side.rows.iloc[0]
    known = first["source"]
    return (
        device_label(first["device_name"], known)
        if known
        else f"{first['device_name']}, predicted"
    )


def pairs_of(rows: "pd.DataFrame", model: str) -> "pd.DataFrame":
    """Return the columns of the picture; the points farthest from their prediction get names."""
    off = np.abs(np.log(rows[f"{model}_ratio"]))
    farthest = off.groupby(rows["workload"]).transform("max") == off  # each name stands once
    # method="first" gives equal points different ranks; otherwise more than six could get names.
    ranks = off.where(farthest).rank(ascending=False, method="first")
    is_named = (ranks <= _N_NAMED) & (off > _NAMED_FROM)
    return rows.assign(predicted_s=rows[f"{model}_s"], label=rows["workload"].where(is_named, ""))


def plot_prediction(first: Side, second: Side | None, model: str, ax: "Axes") -> None:
    """Draw measured over predicted times; on the diagonal both agree."""
    pairs = pairs_of(first.rows, model)
    predicted_against_measured(pairs, ax)
    times = first.places if second is None else np.concatenate([first.places, second.places])
    ends = times.min() / 2, times.max() * 2
    # Equal limits, so that the diagonal goes from corner to corner.
    ax.set(xlim=ends, ylim=ends)
    if second is not None:
        _plot_points(second, ax)


def plot_roofline(first: Side, second: Side | None, ax: "Axes") -> None:
    """Draw the reached FLOP/s over arithmetic intensity, below the roofs of both GPUs."""
    roofline(Chart(first.ceilings, first.rows), ax, names=False)
    if second is None:
        return
    low, high = ax.get_ylim()
    reached = second.places[:, 1]
    roofs = [heights[-1] for _, heights in _roofs(second, np.array(ax.get_xlim()))]
    ax.set_ylim(min(low, reached.min() / 2), max(high, *(_HEADROOM * each for each in roofs)))
    _plot_roofs(second, ax)
    _plot_points(second, ax)


def _plot_points(second: Side, ax: "Axes") -> None:
    """Draw the points of the second GPU, with a marker of its own."""
    look = look_of("GPU")._replace(marker=_SECOND)
    source = second.rows["source"].iloc[0]
    # Predictions are computed, as the times of a virtual GPU are.
    signs = marks(look, source or "virtual") | {"linestyle": "none"}
    # The title has the name of the GPU.
    ax.plot(*second.places.T, label=f"second GPU, {source or 'predicted'}", **signs)
    legend_below(ax)


def _plot_roofs(second: Side, ax: "Axes") -> None:
    """Draw the roofs of the second GPU as dash-dotted lines; the words have their heights."""
    x = np.geomspace(*ax.get_xlim(), _N_PLACES)
    roofs = sorted(_roofs(second, x), key=lambda roof: -roof[1][-1])
    # Roofs of one height are drawn and named once.
    ends = [round(math.log(heights[-1]), 6) for _, heights in roofs]
    look: Any = {"color": INK, "linestyle": _SECOND_ROOF, "linewidth": 1.2}
    for place, (_, heights) in enumerate(roofs):
        if ends[place] in ends[:place]:
            continue
        # Below the names of the first GPU's roofs.
        (line,) = ax.plot(x, heights, zorder=1.8, **look)
        if heights[-1] == heights[-2]:  # its flat part is in the picture
            same = [name for (name, _), end in zip(roofs, ends, strict=True) if end == ends[place]]
            name_line(ax, line, f"second GPU:\n{', '.join(same)}", weight="normal")
        if place == 0:
            name_slope(ax, line, "second GPU: memory")


def _roofs(side: Side, x: Places) -> list[tuple[str, Places]]:
    """Return the highest roof of each type of arithmetic at these intensities, in TFLOP/s."""
    return [
        (name, np.max([[roof.attainable(at, name) for at in x] for roof in roofs], axis=0) / TERA)
        for name in Chart(side.ceilings, side.rows).arithmetics
        if (roofs := [each for each in side.ceilings.roofs if name in each.peak_flops_per_s])
    ]


def peaks_of(side: Side) -> dict[str, float]:
    """Return the highest peak of each type of arithmetic that the points use, in TFLOP/s."""
    return {
        name: max(peaks) / TERA
        for name in Chart(side.ceilings, side.rows).arithmetics
        if (peaks := [r.peak(name) for r in side.ceilings.roofs if name in r.peak_flops_per_s])
    }
