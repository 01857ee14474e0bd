"""Find texts of a figure that are hard to read: over a point or a text, or far from their line."""

import itertools
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Annotation, Text

_PT = 1 / 72  # inches
_MOST_PT = 85.0  # from a name to the point or line that it names
_TOUCHES_PT = 1.5  # from the end of an arrow to its line
_EDGE_PT = 2.0  # boxes of texts have room for letters that go below the line


def overprints(figure: Canvas) -> list[str]:
    """Return each text of the figure that covers pixels of a point or of another text."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()  # also makes the ticks' labels
    texts, marks = [], []
    for ax in figure.axes:
        texts += _texts(ax)
        marks += [line for line in ax.lines if line.get_marker() not in {"None", "", None}]
    points = np.zeros(canvas.buffer_rgba().shape[:2], dtype=bool)
    for mark in marks:
        style = mark.get_linestyle()
        mark.set_linestyle("None")
        points |= _pixels(canvas, mark)
        mark.set_linestyle(style)
    found, taken = [], points
    names = np.full(points.shape, -1)
    shown = [text for text in texts if text.get_visible() and text.get_text().strip()]
    for number, text in enumerate(shown):
        # Without the paper behind a text, and without the line that leads to what it names.
        for part in (text.get_bbox_patch(), getattr(text, "arrow_patch", None)):
            if part is not None:
                part.set_visible(False)
        mine = _pixels(canvas, text)
        if (mine & taken).any():
            found.append(f"{text.get_text()!r} covers a point")
        found += [
            f"{text.get_text()!r} covers {shown[other].get_text()!r}"
            for other in np.unique(names[mine])
            if other >= 0
        ]
        names[mine] = number
    return found


def far_names(figure: Canvas) -> list[str]:
    """Return each name of the figure that is far from its line or point, or nearer to another."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    px = figure.dpi * _PT
    found = []
    for ax in figure.axes:
        lines = [line for line in ax.lines if len(np.asarray(line.get_xdata())) > 1]
        names = [text for text in ax.texts if isinstance(text, Annotation) and text.get_visible()]
        ends = {}
        for name in names:
            text = repr(name.get_text())
            coords: Any = name.xycoords
            at = (ax.transData if coords == "data" else coords).transform(name.xy)
            box = Text.get_window_extent(name)
            off = np.array([max(box.x0 - at[0], at[0] - box.x1, 0), _outside(at[1], box)])
            if np.hypot(*off) > _MOST_PT * px:
                found.append(f"{text} is {np.hypot(*off) / px:.0f} pt from what it names")
            if name.arrow_patch is not None and _nearest(lines, at) > _TOUCHES_PT * px:
                found.append(f"the arrow of {text} ends at no line")
            if box.x0 > ax.bbox.x1:  # beside the axes, where other lines end, too
                ends[text] = (at[1], box)
        for text, (own, box) in ends.items():
            for other, _ in ends.values():
                # Of two lines that end as near to one another as lines of text, no name is nearer.
                if abs(other - own) > box.height and _outside(other, box) < _outside(own, box):
                    found.append(f"{text} is nearer to another line")
    return found


def _outside(height: float, box: Any) -> float:  # noqa: ANN401  # matplotlib's, without types
    return max(box.y0 - height, height - box.y1, 0.0)


def _nearest(lines: Any, place: Any) -> float:  # noqa: ANN401  # as above
    """Return the pixels from a place to the nearest of the lines."""
    least = np.inf
    for line in lines:
        corners = line.get_transform().transform(np.asarray(line.get_xydata()))
        start, step = corners[:-1], np.diff(corners, axis=0)
        along = ((place - start) * step).sum(axis=1) / np.maximum((step**2).sum(axis=1), 1e-9)
        foot = start + np.clip(along, 0, 1)[:, None] * step
        least = min(least, np.hypot(*(foot - place).T).min())
    return float(least)


def _pixels(canvas: Any, artist: Any) -> Any:  # noqa: ANN401  # matplotlib's, without types
    renderer = canvas.get_renderer()
    renderer.clear()
    artist.draw(renderer)
    return np.asarray(canvas.buffer_rgba())[..., 3] > 96  # without the soft edge of a letter


def touching(figure: Canvas) -> list[str]:
    """Return each pair of texts whose boxes share more than an edge; quicker than `overprints`."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    edge = _EDGE_PT * figure.dpi * _PT
    boxes = [
        (text.get_text(), Text.get_window_extent(text))
        for ax in figure.axes
        for text in _texts(ax)
        if text.get_visible() and text.get_text().strip()
    ]
    return [
        f"{name!r} touches {other!r}"
        for (name, box), (other, beside) in itertools.combinations(boxes, 2)
        if min(box.x1, beside.x1) - max(box.x0, beside.x0) > edge
        and min(box.y1, beside.y1) - max(box.y0, beside.y0) > edge
    ]


def _texts(ax: Axes) -> list[Text]:
    """Return the texts of the axes, with the labels of those ticks that matplotlib draws."""
    legend = ax.get_legend()
    texts = [*ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label]
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        texts += [tick.label1 for tick in ticks]
    return texts if legend is None else texts + list(legend.get_texts())
