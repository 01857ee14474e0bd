"""Draw scenes on one matplotlib figure that is reused, so that only changes are drawn again.

The legend and the markers that move with a slider are returned as values; the page draws them.

Plotly, bqplot and ipympl were tried: their points cannot be reached by keyboard, and Plotly and
ipympl are slower. docs/explorers.md has the figures.
"""

import io
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpulab.core.foreign_text import visible
from gpulab.figures import describe, on_dark, place_labels, style
from gpulab.views.explorers._scene import Scene

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


_NONE = "None"  # matplotlib's name for no line and no marker
_PIXELS_PER_INCH = 100
_LEFT, _BOTTOM = 0.11, 0.14  # of the axes, as shares of the picture
_TITLE_LINE = 0.048  # height of a line of the title, as a share of the picture
_LEAST_LINES = 2  # of a title, so that most pictures have axes of one height
_ABOVE = 0.034  # height of the paper above and below the title
_MOST_SHARPNESS = 2.0  # device pixels for each CSS pixel; more is hardly visible
_N_KEPT = 64  # pictures, about 50 kB each


class LegendEntry(NamedTuple):
    """One series of the legend.

    Attributes
    ----------
    label
        Its name.
    colour
        Colour of line and marker, as ``"#rrggbb"``.
    marker
        matplotlib's name of the marker; empty for none.
    is_filled
        Whether the marker is filled; otherwise it is an outline.
    line
        ``"solid"``, ``"dashed"``, ``"band"`` for a filled area, or empty.
    """

    label: str
    colour: str
    marker: str
    is_filled: bool
    line: str


class RenderedPicture(NamedTuple):
    """A picture with positions on it, as shares of width and height from the top left.

    Attributes
    ----------
    png
        The picture, without markers.
    description
        The text alternative, made from the axes.
    spots
        Position of each spot of the scene.
    markers
        x, and y from and to: a vertical line, or a ring if both y are equal.
    legend
        The series and their looks.
    """

    png: bytes
    description: str
    spots: tuple[tuple[float, float], ...]
    markers: tuple[tuple[float, float, float], ...]
    legend: tuple[LegendEntry, ...]


class _KeptPicture(NamedTuple):
    """A picture of a scene that can be used again."""

    png: bytes
    description: str
    to_pixels: Any
    size: tuple[int, int]
    legend: tuple[LegendEntry, ...]

    def places(self, points: "Sequence[tuple[float, float]]") -> list[tuple[float, float]]:
        """Return the positions of points of the axes, as shares of the picture."""
        if not points:
            return []
        width, height = self.size
        pixels = self.to_pixels.transform(points)
        return [(float(x / width), float(1 - y / height)) for x, y in pixels]


class Renderer:
    """Draws pictures on one figure that is reused, so that little must be drawn again.

    Ticks and labels take most of the time of a picture. Their pixels are reused while limits,
    labels and title stay the same. Whole pictures are cached by the key of their scene. The page
    draws the markers that move with a slider, and the legend, whose text would take as long as all
    else.

    Parameters
    ----------
    width_px, height_px
        Size of a picture in CSS pixels.
    """

    def __init__(self, *, width_px: int = 840, height_px: int = 460) -> None:
        self.width_px, self.height_px = width_px, height_px
        self._pictures: OrderedDict[Hashable, _KeptPicture] = OrderedDict()
        self._lay(sharpness=1.0, is_dark=False)

    def _lay(self, *, sharpness: float, is_dark: bool) -> None:
        """Start with empty axes, on light or dark paper, and drop all cached pictures."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas

        self.sharpness, self.is_dark = sharpness, is_dark
        size = (self.width_px / _PIXELS_PER_INCH, self.height_px / _PIXELS_PER_INCH)
        with style(is_dark=is_dark):
            # Not pyplot, which keeps a list of all figures and so keeps them alive.
            figure = Canvas(figsize=size, dpi=_PIXELS_PER_INCH * sharpness)
            self._canvas: Any = FigureCanvasAgg(figure)  # its methods have no types
            self._ax: Axes = figure.add_subplot()
        # The artists of empty axes (spines, axes, title); all others were drawn by a scene.
        self._fixed = frozenset(self._ax.get_children())
        self._empty: tuple[Hashable, Any] = (None, None)
        self._pictures.clear()

    def suit(self, sharpness: float, *, is_dark: bool) -> None:
        """Set sharpness and paper of the page; if they differ, cached pictures are dropped.

        Parameters
        ----------
        sharpness
            Device pixels for each CSS pixel; at least 1 and at most 2 are drawn.
        is_dark
            Whether the paper is dark.
        """
        wanted = min(max(float(sharpness), 1.0), _MOST_SHARPNESS)
        if (wanted, is_dark) != (self.sharpness, self.is_dark):
            self._lay(sharpness=wanted, is_dark=is_dark)

    def draw(self, scene: Scene) -> RenderedPicture:
        """Return the picture of a scene; only what has changed is drawn."""
        kept = self._pictures.get(scene.key)
        # A scene without a key may show anything, so its picture is never used again.
        if kept is None or scene.key is None:
            kept = self._pictures[scene.key] = self._draw(scene)
            if len(self._pictures) > _N_KEPT:
                self._pictures.popitem(last=False)
        self._pictures.move_to_end(scene.key)
        spots = kept.places([(spot.x, spot.y) for spot in scene.spots])
        top, bottom = 1 - _top(scene), 1 - _BOTTOM
        # A vertical line uses only x, so its y may be any number that a log axis accepts.
        ends = kept.places([(marker.x, marker.y or 1.0) for marker in scene.markers])
        markers = (
            (x, y, y) if marker.y is not None else (x, top, bottom)
            for (x, y), marker in zip(ends, scene.markers, strict=True)
        )
        return RenderedPicture(
            kept.png, kept.description, tuple(spots), tuple(markers), kept.legend
        )

    def _draw(self, scene: Scene) -> _KeptPicture:
        ax = self._ax
        for artist in self._contents():
            artist.remove()
        ax.set_prop_cycle(None)  # start again with the first colour
        # Fixed margins: the axes must not move while somebody drags a slider.
        margins = {"left": _LEFT, "right": scene.right, "bottom": _BOTTOM, "top": _top(scene)}
        self._canvas.figure.subplots_adjust(**margins)
        with style(is_dark=self.is_dark):
            scene.plot(ax)
        ax.set_title(visible(scene.title), parse_math=False)
        place_labels(ax)
        contents = self._contents()
        if self.is_dark:
            on_dark(contents)
        description, legend = describe(ax, scene.alt), take_legend(ax)
        contents = self._contents()
        self._draw_empty(contents)
        # draw_artist() draws one artist at once; only a full draw would sort them.
        for artist in sorted(contents, key=lambda each: each.get_zorder()):
            ax.draw_artist(artist)
        size = self._canvas.get_width_height(physical=True)
        # frozen(): the axes are used again for other scenes, and their transform changes.
        return _KeptPicture(self._encode(), description, ax.transData.frozen(), size, legend)

    def _draw_empty(self, contents: "list[Artist]") -> None:
        """Put empty axes on the canvas: cached pixels, or new ones if the axes have changed."""
        key, pixels = self._empty
        if key == self._look():
            self._canvas.restore_region(pixels)
            return
        # Not all of them: a name that has no room is hidden, and must stay so.
        shown = [artist for artist in contents if artist.get_visible()]
        for artist in shown:
            artist.set_visible(False)
        self._canvas.draw()
        for artist in shown:
            artist.set_visible(True)
        self._empty = (self._look(), self._canvas.copy_from_bbox(self._canvas.figure.bbox))

    def _look(self) -> "tuple[Hashable, ...]":
        """Return everything that the look of empty axes depends on."""
        ax = self._ax
        # Axes without a label have names of rows as ticks, which can differ at the same limits.
        ticks = [label.get_text() for label in ax.get_yticklabels()] if not ax.get_ylabel() else []
        return (
            ax.get_position().bounds,
            *(ax.get_xlim(), ax.get_ylim(), ax.get_xscale(), ax.get_yscale()),
            *(ax.get_xlabel(), ax.get_ylabel(), ax.get_title(), *ticks),
        )

    def _contents(self) -> "list[Artist]":
        """Return the artists that were drawn on the axes, without those of the empty axes."""
        return [artist for artist in self._ax.get_children() if artist not in self._fixed]

    def _encode(self) -> bytes:
        from PIL import Image

        size = self._canvas.get_width_height(physical=True)
        pixels = Image.frombuffer("RGBA", size, self._canvas.buffer_rgba(), "raw", "RGBA", 0, 1)
        file = io.BytesIO()
        # Without alpha there is a quarter less to compress; level 1 is enough for flat colours.
        pixels.convert("RGB").save(file, "png", compress_level=1)
        return file.getvalue()

    def close(self) -> None:
        """Free the figure and all cached pictures."""
        self._canvas.figure.clear()
        self._empty = (None, None)
        self._pictures.clear()


def _top(scene: Scene) -> float:
    """Return the upper end of the axes, which leaves room for the lines of the title."""
    return 1 - _ABOVE - _TITLE_LINE * max(_LEAST_LINES, len(scene.title.splitlines()))


def take_legend(ax: "Axes") -> tuple[LegendEntry, ...]:
    """Remove the legend from the axes, and return its entries; none if names are at the lines."""
    drawn = ax.get_legend()
    if drawn is None:
        return ()
    shown = {text.get_text() for text in drawn.get_texts()}
    drawn.remove()
    pairs = zip(*ax.get_legend_handles_labels(), strict=True)
    named = ((handle, visible(str(label))) for handle, label in pairs)
    return tuple(_entry(handle, label) for handle, label in named if label in shown)


def _entry(handle: Any, label: str) -> LegendEntry:  # noqa: ANN401 # its parts have many types
    from matplotlib.colors import to_hex, to_rgba
    from matplotlib.lines import Line2D

    if not isinstance(handle, Line2D):
        colour = to_hex(np.reshape(handle.get_facecolor(), (-1, 4))[0])
        return LegendEntry(label, colour, "", is_filled=True, line="band")
    dashes, marker = handle.get_linestyle(), handle.get_marker()
    line = "" if dashes == _NONE else "solid" if dashes == "-" else "dashed"
    colour = to_hex(handle.get_color() if line else handle.get_markeredgecolor())
    filling = to_rgba(handle.get_markerfacecolor())
    return LegendEntry(
        label,
        colour,
        "" if marker in {_NONE, None, ""} else str(marker),
        is_filled=filling[3] > 0 and to_hex(filling) == colour,
        line=line,
    )
