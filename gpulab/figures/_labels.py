"""Place labels on the rendered picture, where they cover no point, no line and no other text."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpulab.core.foreign_text import one_line
from gpulab.figures._line_names import LINE_LABEL, is_beside, spread_names
from gpulab.figures._style import INK, MUTED, PAPER, write_beside

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation, Text

POINT_LABEL = "point-label"  # group id of a name at a point; it is left out where it has no room
SLOPE_LABEL = "slope-label"  # group id of a name beside a rising line
_PLACED = "placed-label"  # group id of a name that place_labels() has moved; it stays there

_Numbers: TypeAlias = NDArray[np.float64]
_PT_PER_INCH = 72
_GAP_PT = 7.0  # from a point to its name
_MARKER_PT = 4.0  # radius of a point with its edge
_FARTHEST = 3  # gaps; a name farther away would not be seen to belong to its point
_BETWEEN_PT = 4.0  # free paper left and right of a name: two of them are not read as one
_LONGEST_PT = 80.0  # from a slope to its name; a longer arrow would cross too many points
# Where a name may be, seen from its point: the usual place first, then round the point.
_SIDES = ((1, 0), (1, 1), (1, -1), (0, 1), (0, -1), (-1, 1), (-1, -1), (-1, 0))
_ACROSS = {-1: "right", 0: "center", 1: "left"}
_UP = {-1: "top", 0: "center", 1: "bottom"}
_HEIGHTS = np.linspace(0.9, 0.1, 13)  # shares of the visible part of a rising line
_SAMPLE_PX = 3.0  # between two points of a line
_MOST_PARTS = 400  # of a line's segment
# A name over a line can still be read, because it has paper behind it; over a point it cannot.
_LINE_COST, _POINT_COST = 1.0, 1_000.0


class _Box(NamedTuple):
    """The pixels that a text takes."""

    left: float
    low: float
    right: float
    high: float


class _Obstacles(NamedTuple):
    """What labels must not cover, in pixels: points with their radius, lines, and boxes."""

    points: _Numbers  # x, y, radius
    line: _Numbers  # x, y
    boxes: list[_Box]


def name_point(ax: "Axes", text: str, point: tuple[float, float]) -> "Annotation":
    """Write a name beside a point, for :func:`place_labels` to move where it covers nothing.

    The point is in data units. If the name is moved away from it, a thin line leads to it.
    """
    leader: Any = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.8}
    return write_beside(
        ax,
        one_line(text),
        point,
        (_GAP_PT, 0),
        fontsize="small",
        color=INK,
        arrowprops=leader | {"shrinkA": 0.0, "shrinkB": _MARKER_PT},
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.5, "alpha": 0.85},
        annotation_clip=True,
        gid=POINT_LABEL,
        # It stays inside the axes, which need no margin for it.
        in_layout=False,
    )


def name_slope(ax: "Axes", line: "Line2D", text: str) -> None:
    """Write a name beside a rising line, for :func:`place_labels` to move where paper is free.

    An arrow leads from the name to the line, whose first point is on the slope. Both axes are
    logarithmic.
    """
    arrow: Any = {"arrowstyle": "-|>, head_length=0.5, head_width=0.2", "color": MUTED}
    x, y = np.asarray(line.get_xydata())[0]
    line.set_gid(one_line(text))  # by which place_labels() finds the line
    write_beside(
        ax,
        one_line(text),
        (float(x), float(y)),
        (_GAP_PT, 0),
        fontsize="small",
        color=MUTED,
        arrowprops=arrow | {"linewidth": 0.8, "shrinkA": 0.0, "shrinkB": 0.0},
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.5, "alpha": 0.85},
        annotation_clip=False,
        parse_math=False,
        gid=SLOPE_LABEL,
        in_layout=False,
    )


def place_labels(ax: "Axes") -> None:
    """Move the names at points and lines to where they cover no point, line or other text.

    Every picture calls this once when all else is drawn and its limits are final. A name at a
    point that has no free place near it is left out; a name at a line takes its best place.
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
    spread_names(ax)
    obstacles = _obstacles(ax, [text for text in ax.texts if text not in labels])
    kinds = list(_CANDIDATES)
    for label in sorted(labels, key=lambda each: kinds.index(str(each.get_gid()))):
        _place(ax, label, obstacles)
        if label.get_visible():
            box, free = _box(label), _BETWEEN_PT * _px(ax)
            wider = box._replace(left=box.left - free, right=box.right + free)
            obstacles.boxes.append(wider)


def _place(ax: "Axes", label: "Text", obstacles: _Obstacles) -> None:
    """Give a label the first place where it covers nothing, or the best of all."""
    from matplotlib.text import Annotation

    kind = str(label.get_gid())
    chosen = _here(label)
    best = math.inf
    for candidate in list(_CANDIDATES[kind](ax, label, obstacles)):
        _move(label, candidate)
        cost = _cost(ax, label, obstacles, may_leave=kind == LINE_LABEL)
        if cost < best:
            best, chosen = cost, candidate
        if cost == 0:
            break
    _move(label, chosen)
    if kind == POINT_LABEL and isinstance(label, Annotation) and label.arrow_patch is not None:
        # Beside its point a name needs no line.
        label.arrow_patch.set_visible(max(map(abs, chosen["position"])) > _GAP_PT)
    label.set_gid(_PLACED)
    # Without a free place a name is left out: it would cover points, or leave the axes.
    label.set_visible(kind == LINE_LABEL or best < _POINT_COST)


def _move(label: Any, candidate: dict[str, Any]) -> None:  # noqa: ANN401  # an annotation
    properties = dict(candidate)
    label.xy = properties.pop("xy", label.xy)
    label.update(properties)


def _here(label: "Text") -> dict[str, Any]:
    position, ha, va = (
        label.get_position(),
        label.get_horizontalalignment(),
        label.get_verticalalignment(),
    )
    return {"position": position, "ha": ha, "va": va}


def _beside_a_point(
    _ax: "Axes", _label: "Text", _obstacles: _Obstacles
) -> Iterator[dict[str, Any]]:
    for step in range(1, _FARTHEST + 1):
        for x, y in _SIDES:
            offset_pt = (x * _GAP_PT * step, y * _GAP_PT * step)
            yield {"position": offset_pt, "ha": _ACROSS[x], "va": _UP[y]}


def _beside_an_end(
    ax: "Axes",
    label: Any,  # noqa: ANN401  # an annotation
    _obstacles: _Obstacles,
) -> Iterator[dict[str, Any]]:
    """Yield places for a line's name: its own one, then others near the line's end."""
    yield _here(label)
    if is_beside(label):  # spread_names() has moved these names apart
        return
    # The name has its own coordinates, so a step in points is a share of the axes.
    box = ax.get_window_extent()
    px = _px(ax)
    x0, y0 = ax.transAxes.inverted().transform(label.xycoords.transform(label.xy))
    for step in range(1, 2 * _FARTHEST + 1):
        for x, y in _SIDES[1:] + _SIDES[:1]:
            dx, dy = x * _GAP_PT * step * px / box.width, y * _GAP_PT * step * px / box.height
            yield {"position": (x0 + dx, y0 + dy), "ha": _ACROSS[x], "va": _UP[y]}


def _beside_a_slope(
    ax: "Axes",
    label: Any,  # noqa: ANN401  # an annotation
    obstacles: _Obstacles,
) -> Iterator[dict[str, Any]]:
    """Yield places left or right of all lines, at heights along the label's own line."""
    line = next(line for line in ax.lines if line.get_gid() == label.get_text())
    own = _sampled(line)
    frame = ax.get_window_extent()
    inside = (own[:, 0] >= frame.x0) & (own[:, 1] >= frame.y0) & (own[:, 1] <= frame.y1)
    # Without its flat part, where a line above the slope has a name at its end.
    own = own[inside & (own[:, 1] < own[:, 1].max())]
    if not len(own):
        return
    box = _box(label)
    px = _px(ax)
    reach = (box.high - box.low) / 2 + _BETWEEN_PT * px
    sides: list[list[dict[str, Any]]] = [[], []]
    for share in _HEIGHTS:
        tip = own[int(share * (len(own) - 1))]
        level = obstacles.line[abs(obstacles.line[:, 1] - tip[1]) <= reach, 0]
        xy = tuple(ax.transData.inverted().transform(tip))
        ends = ((level.min(), "right", -_GAP_PT), (level.max(), "left", _GAP_PT))
        for side, (end, ha, gap_pt) in zip(sides, ends, strict=True):
            away_pt = (end - tip[0]) / px + gap_pt
            if abs(away_pt) <= _LONGEST_PT:
                side.append({"xy": xy, "position": (away_pt, 0.0), "ha": ha})
    # The side with fewer other lines between the name and its own line first.
    free_sides = [side for side in sides if side]
    for side in sorted(
        free_sides, key=lambda side: min(abs(each["position"][0]) for each in side)
    ):
        yield from side


# In the order in which labels are placed: those with the fewest places first.
_CANDIDATES = {
    LINE_LABEL: _beside_an_end,
    SLOPE_LABEL: _beside_a_slope,
    POINT_LABEL: _beside_a_point,
}


def _cost(ax: "Axes", label: "Text", obstacles: _Obstacles, *, may_leave: bool) -> float:
    """Return how much a label covers; infinite if it is cut off by the picture."""
    box = _box(label)
    frame = ax.get_figure(root=True).bbox if may_leave else ax.get_window_extent()  # type: ignore[union-attr]  # they have one
    if box.left < frame.x0 or box.right > frame.x1 or box.low < frame.y0 or box.high > frame.y1:
        return math.inf
    n_points = _n_within(box, obstacles.points[:, :2], obstacles.points[:, 2])
    n_points += sum(_overlap(box, other) for other in obstacles.boxes)
    n_of_line = _n_within(box, obstacles.line, np.zeros(len(obstacles.line)))
    return _POINT_COST * n_points + _LINE_COST * n_of_line


def _obstacles(ax: "Axes", others: Sequence["Text"]) -> _Obstacles:
    lines = [line for line in ax.lines if line.get_visible() and len(line.get_xydata())]  # type: ignore[arg-type]  # an array
    points = [_points_of(line) for line in lines if line.get_marker() not in {"None", "", None}]
    drawn = [_sampled(line) for line in lines if line.get_linestyle() != "None"]
    texts = [_box(text) for text in others if text.get_visible() and text.get_text()]
    return _Obstacles(
        np.concatenate([np.empty((0, 3)), *points]),
        np.concatenate([np.empty((0, 2)), *drawn]),
        texts,
    )


def _pixels(line: "Line2D") -> _Numbers:
    # The own transform, because a line across the axes has x or y as a share of them.
    with np.errstate(divide="ignore", invalid="ignore"):
        pixels = line.get_transform().transform(np.asarray(line.get_xydata(), dtype=float))
    return np.asarray(pixels[np.isfinite(pixels).all(axis=1)], dtype=float)


def _points_of(line: "Line2D") -> _Numbers:
    places = _pixels(line)
    radius = (line.get_markersize() + line.get_markeredgewidth()) / 2 * _px(line)
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


def _box(text: Any) -> _Box:  # noqa: ANN401  # a text or an annotation
    """Return the pixels that a text takes, without its arrow."""
    from matplotlib.text import Text

    whole = text.get_window_extent()
    if getattr(text, "arrow_patch", None) is not None:
        whole = Text.get_window_extent(text)
    return _Box(whole.x0, whole.y0, whole.x1, whole.y1)


def _px(artist: Any) -> float:  # noqa: ANN401  # anything in a figure
    """Return the pixels of a point of typography."""
    return float(artist.get_figure(root=True).dpi) / _PT_PER_INCH


def _n_within(box: _Box, places: _Numbers, radius: _Numbers) -> int:
    """Return how many circles touch a box."""
    x, y = places[:, 0], places[:, 1]
    is_level = (y > box.low - radius) & (y < box.high + radius)
    return int((is_level & (x > box.left - radius) & (x < box.right + radius)).sum())


def _overlap(box: _Box, other: _Box) -> bool:
    is_level = box.low < other.high and other.low < box.high
    return is_level and box.left < other.right and other.left < box.right
