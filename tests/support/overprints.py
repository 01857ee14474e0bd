"""Find texts of a figure that overprint a point or another text, by the pixels they cover."""

from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas


def overprints(figure: Canvas) -> list[str]:
    """Return each text of the figure that covers pixels of a point or of another text."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()  # also makes the ticks' labels
    texts, marks = [], []
    for ax in figure.axes:
        legend = ax.get_legend()
        texts += [*ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            # matplotlib has ticks outside the limits, too, and does not draw them.
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            texts += [tick.label1 for tick in ticks]
        texts += [] if legend is None else legend.get_texts()
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
        box = getattr(text, "get_bbox_patch", lambda: None)()
        if box is not None:
            box.set_visible(False)
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


def _pixels(canvas: Any, artist: Any) -> Any:  # noqa: ANN401  # matplotlib's, without types
    renderer = canvas.get_renderer()
    renderer.clear()
    artist.draw(renderer)
    return np.asarray(canvas.buffer_rgba())[..., 3] > 96  # without the soft edge of a letter
