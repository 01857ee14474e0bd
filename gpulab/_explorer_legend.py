"""The legend of a picture as values, to be written by the page."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NONE = "None"  # as matplotlib calls no line and no marker


class Entry(NamedTuple):
    """One series.

    Attributes
    ----------
    label
        Its name.
    colour
        Of line and marker, as ``"#rrggbb"``.
    marker
        As matplotlib calls it; empty if there is none.
    is_filled
        Whether the marker is more than an outline.
    line
        ``"solid"``, ``"dashed"``, ``"band"`` for what fills an area, or empty.
    """

    label: str
    colour: str
    marker: str
    is_filled: bool
    line: str


def take_legend(ax: "Axes") -> tuple[Entry, ...]:
    """Take the legend off the axes, and return what it says."""
    handles, labels = ax.get_legend_handles_labels()
    drawn = ax.get_legend()
    if drawn is not None:
        drawn.remove()
    pairs = zip(handles, labels, strict=True)
    return tuple(_entry(handle, str(label)) for handle, label in pairs)


def _entry(handle: Any, label: str) -> Entry:  # noqa: ANN401 # its parts have many types
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D

    if not isinstance(handle, Line2D):
        colour = to_hex(np.reshape(handle.get_facecolor(), (-1, 4))[0])
        return Entry(label, colour, "", is_filled=True, line="band")
    dashes, marker = handle.get_linestyle(), handle.get_marker()
    line = "" if dashes == _NONE else "solid" if dashes == "-" else "dashed"
    return Entry(
        label,
        to_hex(handle.get_color() if line else handle.get_markeredgecolor()),
        "" if marker in {_NONE, None, ""} else str(marker),
        handle.get_markerfacecolor() != "none",
        line,
    )
