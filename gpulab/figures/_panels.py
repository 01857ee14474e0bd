"""Axes that contain smaller ones: panels, side by side or one above the other."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def only_labels(ax: "Axes", x: Iterable[float], y: Iterable[float]) -> None:
    """Leave only title and labels of axes with panels inside, and give them the panels' range.

    The text description says the range, and a reader sees it in the panels.
    """
    xs, ys = list(x), list(y)
    ax.set(xticks=[], yticks=[], xlim=(min(xs), max(xs)), ylim=(min(ys), max(ys)))
    ax.spines[:].set_visible(False)
    ax.yaxis.labelpad = 28  # beside the numbers of the panels
