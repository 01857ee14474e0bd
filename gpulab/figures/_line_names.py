"""Names at the ends of lines: each at its own line, and moved apart where several lines end."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab.core import palette
from gpulab.core.foreign_text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation

LINE_LABEL = "line-label"  # group id of a name at a line
_NEAR_THE_END = 0.93  # share of the axes: lines that end here have their names beside the axes
_BESIDE, _INSIDE = 1.02, 0.015  # share of the axes: of a name beside them, and from a line's end
_LINE_HEIGHT = 1.3  # of a text, in its own size
_PT_PER_INCH = 72


def name_line(ax: "Axes", line: "Line2D", text: str, *, weight: str = "bold") -> None:
    """Write a name where a line ends, in the line's colour.

    A line that ends at the right side of the axes has its name beside them, and a thin line leads
    to it; :func:`spread_names` moves such names apart. The limits of the axes must be final or
    change only in height. The name may have several lines of text.
    """
    end = _end(line)
    x, y = ax.transAxes.inverted().transform(line.get_transform().transform(end))
    is_beside = x >= _NEAR_THE_END
    colour: Any = line.get_color()
    leader: Any = {"arrowstyle": "-", "color": colour, "linewidth": 0.8}
    leader |= {"shrinkA": 0.0, "shrinkB": line.get_markersize() / 2 if _has_marker(line) else 0.0}
    ax.annotate(
        visible(text),
        end,
        (_BESIDE, y) if is_beside else (x + _INSIDE, min(max(y, 0.03), 0.97)),
        # A line across the axes has x or y as a share of them.
        xycoords=line.get_transform(),
        textcoords="axes fraction",
        color=colour,
        fontsize="small",
        fontweight=weight,
        va="center",
        annotation_clip=False,
        arrowprops=leader if is_beside else None,
        bbox={"facecolor": palette.PAPER.light, "edgecolor": "none", "pad": 0.5, "alpha": 0.8},
        parse_math=False,
        gid=LINE_LABEL,
    )


def is_beside(name: "Annotation") -> bool:
    """Return whether the name of a line stands beside the axes."""
    return float(name.xyann[0]) == _BESIDE


def spread_names(ax: "Axes") -> None:
    """Move the names beside the axes apart, each as little as possible from its line's end."""
    names: Any = [text for text in ax.texts if text.get_gid() == LINE_LABEL]
    beside = [name for name in names if is_beside(name)]
    to_share = ax.transAxes.inverted()
    wanted = [to_share.transform(name.xycoords.transform(name.xy))[1] for name in beside]
    order = np.argsort(wanted, kind="stable")
    dpi = ax.get_figure(root=True).dpi  # type: ignore[union-attr]  # they have one
    height_pt = ax.get_window_extent().height / dpi * _PT_PER_INCH
    sizes = [
        _LINE_HEIGHT * beside[at].get_fontsize() * (1 + beside[at].get_text().count("\n"))
        for at in order
    ]
    heights = apart([wanted[at] for at in order], [size / height_pt for size in sizes])
    for at, height in zip(order, heights, strict=True):
        beside[at].xyann = (_BESIDE, height)


def apart(wanted: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """Return ascending places from 0 to 1 for the centres of texts, so that none overlap.

    The sum of the squared distances from the wanted places is the least possible.
    """
    if not wanted:
        return []
    halves = np.array(sizes) / 2
    steps = np.cumsum(np.concatenate([[0.0], halves[1:] + halves[:-1]]))
    # Without the steps, places only need to ascend: blocks that descend take their mean.
    blocks: list[list[float]] = []
    for centre in np.array(wanted) - steps:
        blocks.append([float(centre)])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    fitted = np.concatenate([np.full(len(block), np.mean(block)) for block in blocks])
    inside = np.minimum(np.maximum(fitted, 0.0), 1.0 - steps[-1])
    return [float(centre) for centre in inside + steps]


def _end(line: "Line2D") -> tuple[float, float]:
    """Return the last point in x of a line: rows of a frame may be in any order."""
    points = np.column_stack([np.asarray(line.get_xdata()), np.asarray(line.get_ydata())])
    x, y = points[np.lexsort((points[:, 1], points[:, 0]))[-1]]
    return float(x), float(y)


def _has_marker(line: "Line2D") -> bool:
    return line.get_marker() not in {"None", "", None}
