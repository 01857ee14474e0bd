"""A figure with its text alternative: picture, description and data in one display object."""

import io
import pickle
import sys
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean
from gpulab.figures._labels import place_labels
from gpulab.figures._svg import picture_address, shortened, themed

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


MAX_TABLE_ROWS = 100
WIDTH_IN = 9.0  # about the width of a notebook's page
_PIXELS_PER_INCH = 100
_SHARPNESS = 2  # device pixels for each CSS pixel, for screens of high resolution
_MOST_HEIGHT_VH = 85  # percent of the window's height, so that a figure is seen whole
_MOST_LINES = 6  # of a caption; a longer caption can be folded
# The most points of one artist. As SVG shapes, more would make a page slow: they become pixels.
_MOST_MARKS = 2_000
# Without a date and with fixed ids, so that the same picture gives the same file.
_SVG: Any = {"svg.fonttype": "path", "svg.hashsalt": "gpulab"}
_NO_DATE = {"Date": None, "Creator": None, "Format": None, "Type": None}
# An SVG image takes its colour scheme from the element that shows it.
_THEME = (
    '[data-jp-theme-light="true"] .gpulab-figure{color-scheme:light}'
    '[data-jp-theme-light="false"] .gpulab-figure{color-scheme:dark}'
    ".gpulab-figure figcaption p{margin:2px 0}"
)


class PackedCanvas:
    """A figure of matplotlib that takes a tenth of its memory while nobody uses it.

    A notebook keeps each figure that it has shown. After :meth:`pack` only bytes remain.
    """

    __slots__ = ("_bytes", "_find", "_is_lent", "_live")

    def __init__(self, canvas: "Canvas") -> None:
        self._live: Canvas | None = canvas
        self._find: Callable[[], Canvas | None] = ref(canvas)
        self._bytes = b""
        self._is_lent = False

    def peek(self) -> "Canvas":
        """Return the canvas for a use that ends before the next :meth:`pack`."""
        live = self._live
        if live is None:
            # A function that drew on its axes may still hold them, and may have changed them.
            live = self._find() or pickle.loads(zlib.decompress(self._bytes))  # noqa: S301 # own bytes
        self._live = live
        return live

    def lend(self) -> "Canvas":
        """Return the canvas for good: its holder may change it, so it is never packed again."""
        self._is_lent = True
        return self.peek()

    def pack(self) -> None:
        """Keep only bytes, unless the canvas was lent or has parts that cannot be pickled."""
        if self._is_lent or self._live is None:
            return
        try:
            self._bytes = zlib.compress(pickle.dumps(self._live))
        except Exception:  # noqa: BLE001 # any artist of a program may refuse, in its own way
            self._is_lent = True
            return
        self._find = ref(self._live)
        self._live = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture with a text that describes it, and its data.

    In a page it is as wide as the page, unless it would be higher than the window. It follows the
    page's light or dark theme.

    Attributes
    ----------
    picture
        Holds the figure of matplotlib; :attr:`canvas` returns it.
    title
        The title, which ends with the source of the numbers.
    description
        The text alternative: kind of plot, axes with units and ranges, and the caption.
    caption
        What the picture shows; it is printed below it.
    frame
        The numbers in the picture; the table below it has the first rows.
    """

    picture: PackedCanvas = field(repr=False, compare=False)
    title: str
    description: str
    caption: str
    frame: "pd.DataFrame"

    @property
    def canvas(self) -> "Canvas":
        """The figure of matplotlib; what you change in it is seen the next time it is drawn."""
        return self.picture.lend()

    @property
    def width_px(self) -> int:
        """Width in CSS pixels at which text has its intended size."""
        return round(self.picture.peek().get_figwidth() * _PIXELS_PER_INCH)

    @property
    def png(self) -> bytes:
        """The picture as PNG on light paper, with two device pixels for each CSS pixel."""
        return self.saved("png")

    def saved(self, kind: str) -> bytes:
        """Return the picture as a file of matplotlib: ``"png"``, ``"svg"`` or ``"pdf"``."""
        file = io.BytesIO()
        self._place_labels()
        dpi = _PIXELS_PER_INCH * _SHARPNESS
        self.picture.peek().savefig(file, format=kind, dpi=dpi)
        return file.getvalue()

    @property
    def svg(self) -> str:
        """The picture as SVG, which is light or dark as the page that shows it."""
        from matplotlib import rc_context
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        file = io.StringIO()
        for artist in _many_marks(self.picture.peek()):
            artist.set_rasterized(True)
        self._place_labels()
        with rc_context(_SVG):
            FigureCanvasSVG(self.picture.peek()).print_svg(file, metadata=_NO_DATE)  # type: ignore[no-untyped-call]  # its gap
        # A second layout would move everything by part of a pixel.
        self.picture.peek().set_layout_engine("none")
        return shortened(themed(file.getvalue()))

    def _place_labels(self) -> None:
        """Place the names at points and lines; here, because it needs the layout of all texts."""
        self.picture.peek().set_dpi(_PIXELS_PER_INCH * _SHARPNESS)
        for ax in self.picture.peek().axes:
            place_labels(ax)

    @property
    def _most_width(self) -> str:
        """The width, in CSS, at which it fits into the window or its text becomes small."""
        shape = self.picture.peek().get_figwidth() / self.picture.peek().get_figheight()
        return f"max({self.width_px}px, {_MOST_HEIGHT_VH * shape:.0f}vh)"

    def __str__(self) -> str:
        return self.description

    __repr__ = __str__

    def _repr_html_(self) -> str:
        text = clean(self.description)
        caption = "".join(f"<p>{clean(line)}</p>" for line in self.caption.splitlines())
        if caption.count("<p>") > _MOST_LINES:
            caption = f"<details><summary>In words</summary>{caption}</details>"
        # A kernel keeps all that it has shown. A cell that runs again on a virtual GPU shows the
        # same picture, which is then kept once.
        return sys.intern(
            '<figure class="gpulab-figure" style="margin:0">'
            f'<img src="{picture_address(self.svg)}" alt="{text}" '
            f'style="display:block;width:100%;max-width:{self._most_width};height:auto">'
            f"<figcaption>{caption}</figcaption><style>{_THEME}</style></figure>"
            f"<details><summary>Data</summary>{_table(self.frame)}</details>"
        )

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        html = self._repr_html_()
        self.picture.pack()
        return {"text/html": html, "text/plain": self.description}


def render(ax: "Axes", *, alt: str, frame: "pd.DataFrame") -> Figure:
    """Return a :class:`Figure` of axes that have been drawn on, with title, labels and data.

    ``alt`` says in a sentence or two what it shows. Its description is made from the axes, so that
    the two cannot disagree.
    """
    title = visible(ax.get_title().replace("\n", " "))
    caption = visible(alt.strip())
    # root=True: the axes may be in a subfigure, which cannot be drawn alone.
    canvas: Any = ax.get_figure(root=True)
    return Figure(PackedCanvas(canvas), title, describe(ax, alt), caption, frame)


def _many_marks(canvas: "Canvas") -> "list[Artist]":
    """Return the artists with so many marks that they should be pixels and not shapes."""
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D

    def n_marks(artist: "Artist") -> int:
        if isinstance(artist, Line2D):
            return len(np.asarray(artist.get_xdata()))
        if isinstance(artist, Collection):
            return max(len(artist.get_paths()), len(np.asarray(artist.get_offsets())))
        return 0

    artists = (artist for ax in canvas.axes for artist in ax.get_children())
    return [artist for artist in artists if n_marks(artist) > _MOST_MARKS]


def describe(ax: "Axes", alt: str) -> str:
    """Return the axes in words: kind of plot, title, axes with units and ranges, ``alt``."""
    # finish() stores the kind of plot as the group id.
    kind = ax.get_gid() or "Plot"
    names = ax.get_legend_handles_labels()[1]
    series = f" Series: {', '.join(names)}." if names else ""
    axes = f"{_axis(ax, 'x')} {_axis(ax, 'y')}".strip()
    title = ax.get_title().replace("\n", " ")
    return visible(f"{kind}: {title}. {axes}{series} {alt.strip()}".strip())


def _axis(ax: "Axes", which: str) -> str:
    """Return a sentence on one axis: its label with the unit, its range, its scale."""
    axis: Any = getattr(ax, f"{which}axis")
    label = axis.get_label_text()
    if not label:
        names = [tick.get_text() for tick in axis.get_ticklabels() if tick.get_text()]
        if names and not all(map(_is_number, names)):
            return f"The {which} axis has the rows {', '.join(names)}."
        label = "numbers" if names else ""
    if not label:
        return ""
    low, high = sorted(axis.get_view_interval())
    data_low, data_high = sorted(axis.get_data_interval())
    # The range of the data that is in view, without the margins of the axes.
    low, high = max(low, data_low), min(high, data_high)
    log = ", logarithmic" if axis.get_scale() == "log" else ""
    return f"The {which} axis shows {label}, from {_number(low)} to {_number(high)}{log}."


def _is_number(text: str) -> bool:
    return text.replace("\N{MINUS SIGN}", "").replace(".", "").replace(",", "").isdigit()


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004  # thousand


def _table(frame: "pd.DataFrame") -> str:
    """Return the first rows as an HTML table, with a note if there are more."""
    rows = frame.head(MAX_TABLE_ROWS)
    table: str = visible(
        rows.to_html(index=False, border=0, float_format=lambda value: f"{value:.6g}")
    )
    if len(frame) <= MAX_TABLE_ROWS:
        return table
    return f"<p>The first {MAX_TABLE_ROWS} of {len(frame):,} rows.</p>{table}"
