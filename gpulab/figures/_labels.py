"""Place labels on the rendered picture, where they cover no point, no line and no other text."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpulab.figures._style import INK, LINE_LABEL, PAPER
from gpulab.foreign_text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation, Text
    from matplotlib.transforms import Transform

POINT_LABEL = "point-label"  # group id of a name at a point; it is left out where it has no room
ROOF_LABEL = "roof-label"  # group id of a name at the right end of a line; it may move left
SLOPE_LABEL = "slope-label"  # group id of a name along a line; it may move along the line
_PLACED = "placed-label"  # group id of a name that place_labels() has moved; it stays there

_Numbers: TypeAlias = NDArray[np.float64]
_PT_PER_INCH = 72
_GAP_PT = 7.0  # from a point to its name
_FARTHEST = 3  # gaps; a name farther away would not be seen to belong to its point
# Where a name may be, seen from its point: the usual place first, then round the point.
_SIDES = ((1, 0), (1, 1), (1, -1), (0, 1), (0, -1), (-1, 1), (-1, -1), (-1, 0))
_ACROSS = {-1: "right", 0: "center", 1: "left"}
_UP = {-1: "top", 0: "center", 1: "bottom"}
_N_LEFT, _LEFT_PT = 12, 25.0  # how often, and how far, a name may move left along its line
# Shares of the part of a line that is in view, the usual place first.
_ALONG = (
    0.08,
    0.14,
    0.2,
    0.26,
    0.32,
    0.38,
    0.44,
    0.5,
    0.56,
    0.62,
    0.68,
    0.02,
)  # shares of the visible part of a line
_SAMPLE_PX = 3.0  # between two points of a line
_MOST_PARTS = 400  # of a line's segment
# A name over a line can still be read, because it has paper behind it; over a point it cannot.
_LINE_COST, _POINT_COST = 1.0, 1_000.0


class _Obstacles(NamedTuple):
    """What labels must not cover, in pixels: points with their radius, lines, and boxes."""

    points: _Numbers  # x, y, radius
    line: _Numbers  # x, y
    boxes: list[_Numbers]  # four corners each


def name_point(ax: "Axes", text: str, place: tuple[float, float]) -> "Annotation":
    """Write a name beside a point, for :func:`place_labels` to move where it covers nothing.

    Parameters
    ----------
    ax
        Axes with the point.
    text
        Name of the point.
    place
        The point, in data units.

    Examples
    --------
    >>> from matplotlib.figure import Figure as Canvas
    >>> ax = Canvas().add_subplot()
    >>> _ = ax.plot([1, 2], [3, 5], "o")
    >>> name_point(ax, "add", (1, 3)).get_text()
    'add'
    """
    return ax.annotate(
        one_line(text),
        place,
        (_GAP_PT, 0),
        textcoords="offset points",
        fontsize="small",
        color=INK,
        va="center",
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.5, "alpha": 0.85},
        annotation_clip=True,
        gid=POINT_LABEL,
        # It stays inside the axes, which need no margin for it.
        in_layout=False,
    )


def name_roof(ax: "Axes", text: str, place: tuple[float, float]) -> None:
    """Write a name at the right end of a line, for :func:`place_labels` to move along it.

    Examples
    --------
    >>> from matplotlib.figure import Figure as Canvas
    >>> ax = Canvas().add_subplot()
    >>> _ = ax.plot([1, 2], [3, 3])
    >>> name_roof(ax, "float32", (2, 3))
    >>> ax.texts[0].get_text()
    'float32'
    """
    ax.annotate(
        one_line(text),
        place,
        (-4, 4),
        textcoords="offset points",
        ha="right",
        va="bottom",
        # No other roof crosses it, and points are drawn over its paper.
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.5},
        zorder=1.9,
        gid=ROOF_LABEL,
    )


def place_labels(ax: "Axes") -> None:
    """Move the names at points and lines to where they cover no point, line or other text.

    Every picture calls this once when all else is drawn and its limits are final. A name at a
    point that has no free place near it is left out; a name at a line takes its best place.

    Parameters
    ----------
    ax
        Axes with names that have the group id of a label.

    Examples
    --------
    >>> from matplotlib.figure import Figure as Canvas
    >>> ax = Canvas().add_subplot()
    >>> _ = ax.plot([1, 2], [1, 1], "o")
    >>> names = [name_point(ax, text, (1, 1)) for text in ("add", "exp")]
    >>> place_labels(ax)
    >>> len({name.get_position() for name in names})  # on two sides of the point
    2
    """
    labels = [text for text in ax.texts if text.get_gid() in _CANDIDATES and text.get_visible()]
    if not labels:
        return
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure: Any = ax.get_figure(root=True)
    if not hasattr(figure.canvas, "get_renderer"):
        FigureCanvasAgg(figure)  # measures texts
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        # A second layout would move the axes away from the labels.
        figure.set_layout_engine("none")
    obstacles = _obstacles(ax, [text for text in ax.texts if text not in labels])
    kinds = list(_CANDIDATES)
    for label in sorted(labels, key=lambda each: kinds.index(str(each.get_gid()))):
        _place(ax, label, obstacles)
        if label.get_visible():
            obstacles.boxes.append(_corners(label))


def _place(ax: "Axes", label: "Text", obstacles: _Obstacles) -> None:
    """Give a label the first place where it covers nothing, or the best of all."""
    kind = str(label.get_gid())
    chosen = _here(label)
    best = math.inf
    for candidate in list(_CANDIDATES[kind](ax, label)):
        label.update(candidate)
        cost = _cost(ax, label, obstacles, may_leave=kind == LINE_LABEL)
        if cost < best:
            best, chosen = cost, candidate
        if cost == 0:
            break
    label.update(chosen)
    label.set_gid(_PLACED)
    # Without a free place near its point a name is left out: it would cover other points.
    label.set_visible(kind != POINT_LABEL or best < _POINT_COST)


def _here(label: "Text") -> dict[str, Any]:
    position, ha, va = (
        label.get_position(),
        label.get_horizontalalignment(),
        label.get_verticalalignment(),
    )
    return {"position": position, "ha": ha, "va": va}


def _beside_a_point(_ax: "Axes", _label: "Text") -> Iterator[dict[str, Any]]:
    for step in range(1, _FARTHEST + 1):
        for x, y in _SIDES:
            offset_pt = (x * _GAP_PT * step, y * _GAP_PT * step)
            yield {"position": offset_pt, "ha": _ACROSS[x], "va": _UP[y]}


def _beside_an_end(ax: "Axes", label: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401  # an annotation
    """Yield places for a line's name: its own one, then others near the line's end."""
    yield _here(label)
    if label.xyann[0] > 1:  # beside the axes; finish() has moved these names apart
        return
    # The name has its own coordinates, so a step in points is a share of the axes.
    box = ax.get_window_extent()
    px = ax.get_figure(root=True).dpi / _PT_PER_INCH  # type: ignore[union-attr]  # they have one
    x0, y0 = label.xy
    for step in range(1, 2 * _FARTHEST + 1):
        for x, y in _SIDES[1:] + _SIDES[:1]:
            dx, dy = x * _GAP_PT * step * px / box.width, y * _GAP_PT * step * px / box.height
            yield {"position": (x0 + dx, y0 + dy), "ha": _ACROSS[x], "va": _UP[y]}


def _along_a_roof(_ax: "Axes", label: "Text") -> Iterator[dict[str, Any]]:
    """Yield places above and below the line, from its right end to the left."""
    x, y = label.get_position()
    higher = y + 2 * _GAP_PT
    for step in range(_N_LEFT):
        for up, va in ((y, "bottom"), (higher, "bottom"), (-y, "top"), (-higher, "top")):
            yield {"position": (x - step * _LEFT_PT, up), "va": va}


def _along_a_line(ax: "Axes", label: "Text") -> Iterator[dict[str, Any]]:
    """Yield places along the line that a label was written on, in the part that is in view."""
    slope = label.get_position()[1] / label.get_position()[0]
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    first, last = max(left, low / slope), min(right, high / slope)
    usual = label.get_verticalalignment()
    for side in (usual, "top" if usual == "bottom" else "bottom"):
        for share in _ALONG:
            x = first ** (1 - share) * last**share
            shifted = slope_transform(ax, is_below=side == "top")
            yield {"position": (x, x * slope), "va": side, "transform": shifted}


def slope_transform(ax: "Axes", *, is_below: bool) -> "Transform":
    """Return the transform of a name along a line: data units, and a gap from the line.

    Examples
    --------
    >>> from matplotlib.figure import Figure as Canvas
    >>> slope_transform(Canvas().add_subplot(), is_below=False).input_dims
    2
    """
    from matplotlib.transforms import ScaledTranslation

    x_pt, y_pt = (6, -6) if is_below else (0, 3)
    inches = ax.get_figure(root=True).dpi_scale_trans  # type: ignore[union-attr]  # they have one
    return ax.transData + ScaledTranslation(x_pt / _PT_PER_INCH, y_pt / _PT_PER_INCH, inches)


# In the order in which labels are placed: those with the fewest places first.
_CANDIDATES = {
    LINE_LABEL: _beside_an_end,
    SLOPE_LABEL: _along_a_line,
    ROOF_LABEL: _along_a_roof,
    POINT_LABEL: _beside_a_point,
}


def _cost(ax: "Axes", label: "Text", obstacles: _Obstacles, *, may_leave: bool) -> float:
    """Return how much a label covers; infinite if it is cut off by the picture."""
    corners = _corners(label)
    frame = ax.get_figure(root=True).bbox if may_leave else ax.get_window_extent()  # type: ignore[union-attr]  # they have one
    if _is_outside(corners, frame):
        return math.inf
    n_points = int(_within(corners, obstacles.points[:, :2], obstacles.points[:, 2]).sum())
    n_points += sum(_overlap(corners, other) for other in obstacles.boxes)
    n_of_line = int(_within(corners, obstacles.line, np.zeros(len(obstacles.line))).sum())
    return _POINT_COST * n_points + _LINE_COST * n_of_line


def _is_outside(corners: _Numbers, frame: Any) -> bool:  # noqa: ANN401  # a box of matplotlib
    (left, low), (right, high) = corners.min(axis=0), corners.max(axis=0)
    return bool(left < frame.x0 or right > frame.x1 or low < frame.y0 or high > frame.y1)


def _obstacles(ax: "Axes", others: Sequence["Text"]) -> _Obstacles:
    lines = [line for line in ax.lines if line.get_visible() and len(line.get_xydata())]  # type: ignore[arg-type]  # an array
    points = [_points_of(line) for line in lines if line.get_marker() not in {"None", "", None}]
    drawn = [_sampled(line) for line in lines if line.get_linestyle() != "None"]
    texts = [_corners(text) for text in others if text.get_visible() and text.get_text()]
    return _Obstacles(
        np.concatenate([np.empty((0, 3)), *points]),
        np.concatenate([np.empty((0, 2)), *drawn]),
        texts,
    )


def _pixels(line: "Line2D") -> _Numbers:
    # The own transform, because a line across the axes has x or y as a share of them.
    with np.errstate(divide="ignore", invalid="ignore"):
        found = line.get_transform().transform(np.asarray(line.get_xydata(), dtype=float))
    return np.asarray(found[np.isfinite(found).all(axis=1)], dtype=float)


def _points_of(line: "Line2D") -> _Numbers:
    places = _pixels(line)
    px = line.get_figure(root=True).dpi / _PT_PER_INCH  # type: ignore[union-attr]  # it has one
    radius = (line.get_markersize() + line.get_markeredgewidth()) / 2 * px
    return np.column_stack([places, np.full(len(places), radius)])


def _sampled(line: "Line2D") -> _Numbers:
    """Return points along a line in pixels, so close that no text fits between two."""
    corners = _pixels(line)
    if len(corners) < 2:  # noqa: PLR2004  # a segment has two ends
        return corners
    parts = []
    for start, end in pairwise(corners):
        n = min(_MOST_PARTS, max(2, int(np.hypot(*(end - start)) / _SAMPLE_PX)))
        parts.append(start + np.linspace(0, 1, n)[:, None] * (end - start))
    return np.concatenate(parts)


def _corners(text: "Text") -> _Numbers:
    """Return the corners of a text's box in pixels, turned as the text is."""
    degrees = text.get_rotation()
    if not degrees:
        box = text.get_window_extent()
        return np.array([(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1)])
    # matplotlib's box of a turned text is upright, and much larger than the text.
    turns = text.get_transform_rotates_text()
    kept = text._rotation  # type: ignore[attr-defined]  # noqa: SLF001  # get_rotation is turned
    text.set_transform_rotates_text(False)
    text.set_rotation(0)
    flat = _corners(text)
    text.set_rotation(kept)
    text.set_transform_rotates_text(turns)
    anchor = text.get_transform().transform(text.get_position())
    angle = math.radians(degrees)
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    return np.asarray((flat - anchor) @ turn + anchor)


def _within(corners: _Numbers, places: _Numbers, radius: _Numbers) -> NDArray[np.bool_]:
    """Return which circles touch a box, which may be turned."""
    origin, along, up = corners[0], corners[1] - corners[0], corners[3] - corners[0]
    width, height = np.hypot(*along), np.hypot(*up)
    if not (width and height):
        return np.zeros(len(places), dtype=bool)
    x, y = (places - origin) @ along / width, (places - origin) @ up / height
    return np.asarray((x > -radius) & (x < width + radius) & (y > -radius) & (y < height + radius))


def _overlap(one: _Numbers, other: _Numbers) -> bool:
    """Return whether two boxes overlap; if not, a side of one of them separates them."""
    for box in (one, other):
        for side in (box[1] - box[0], box[3] - box[0]):
            mine, yours = one @ side, other @ side
            if mine.max() <= yours.min() or yours.max() <= mine.min():
                return False
    return True
