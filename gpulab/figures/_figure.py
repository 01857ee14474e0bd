"""A figure that also reads as text: picture, description and data in one display object."""

import base64
import io
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab import palette
from gpulab.foreign_text import visible
from gpulab.markup import clean

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas


MAX_TABLE_ROWS = 100
WIDTH_IN = 9.0  # about the width of a notebook's page
_PIXELS_PER_INCH = 100
_SHARPNESS = 2
_MOST_LINES = 6  # of a caption; more of them fold
_MOST_MARKS = 2_000  # of one artist; as shapes more of them make a page slow, so they are pixels
# The same picture gives the same file.
_SVG: Any = {"svg.fonttype": "path", "svg.hashsalt": "gpulab"}
_NO_DATE = {"Date": None, "Creator": None, "Format": None, "Type": None}
# A picture in an SVG file takes its theme from the element that shows it.
_THEME = (
    '[data-jp-theme-light="true"] .gpulab-figure{color-scheme:light}'
    '[data-jp-theme-light="false"] .gpulab-figure{color-scheme:dark}'
    ".gpulab-figure figcaption p{margin:2px 0}"
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture with the text that says what is on it, and its data.

    In a page the picture is as wide as the page, and has the page's theme, light or dark.

    Attributes
    ----------
    canvas
        The figure of matplotlib.
    title
        Title, which ends with where the numbers come from.
    description
        The text alternative: type, axes with units, ranges, and what is to be seen.
    caption
        What is to be seen, shown under the picture; the last part of the description.
    frame
        The numbers drawn; the table under the picture shows its first rows.
    """

    canvas: "Canvas" = field(repr=False, compare=False)
    title: str
    description: str
    caption: str
    frame: "pd.DataFrame"

    @property
    def width_px(self) -> int:
        """Width in CSS pixels at which text has the size that it was drawn for."""
        return round(self.canvas.get_figwidth() * _PIXELS_PER_INCH)

    @property
    def png(self) -> bytes:
        """The picture on light paper, two device pixels for each CSS pixel."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        file = io.BytesIO()
        self.canvas.set_dpi(_PIXELS_PER_INCH * _SHARPNESS)
        FigureCanvasAgg(self.canvas).print_png(file, metadata={"Software": None})  # type: ignore[no-untyped-call]  # its gap
        self._keep_layout()
        return file.getvalue()

    @property
    def svg(self) -> str:
        """The picture as shapes, on light paper, or on dark paper where the page is dark."""
        from matplotlib import rc_context
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        file = io.StringIO()
        for artist in _many_marks(self.canvas):
            artist.set_rasterized(True)
        self.canvas.set_dpi(_PIXELS_PER_INCH * _SHARPNESS)
        with rc_context(_SVG):
            FigureCanvasSVG(self.canvas).print_svg(file, metadata=_NO_DATE)  # type: ignore[no-untyped-call]  # its gap
        self._keep_layout()
        return themed(file.getvalue())

    def _keep_layout(self) -> None:
        """Leave everything where it is: laid out again, a drawn figure moves by a fraction."""
        self.canvas.set_layout_engine("none")

    def __str__(self) -> str:
        return self.description

    __repr__ = __str__

    def _repr_html_(self) -> str:
        text = clean(self.description)
        source = base64.b64encode(self.svg.encode()).decode("ascii")
        caption = "".join(f"<p>{clean(line)}</p>" for line in self.caption.splitlines())
        if caption.count("<p>") > _MOST_LINES:
            caption = f"<details><summary>In words</summary>{caption}</details>"
        return (
            '<figure class="gpulab-figure" style="margin:0">'
            f'<img src="data:image/svg+xml;base64,{source}" alt="{text}" '
            f'style="display:block;width:100%;height:auto">'
            f"<figcaption>{caption}</figcaption><style>{_THEME}</style></figure>"
            f"<details><summary>Data</summary>{_table(self.frame)}</details>"
        )

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": self.description}


def render(ax: "Axes", *, alt: str, frame: "pd.DataFrame") -> Figure:
    """Turn drawn axes into a display object.

    Parameters
    ----------
    ax
        Axes with title, labels and data.
    alt
        What is to be seen, in a sentence or two.
    frame
        The numbers drawn.

    Returns
    -------
    Figure
        Its description is built from the axes, so it cannot disagree with them.
    """
    title = visible(ax.get_title().replace("\n", " "))
    caption = visible(alt.strip())
    canvas: Any = ax.get_figure(root=True)
    return Figure(canvas, title, describe(ax, alt), caption, frame)


def themed(svg: str) -> str:
    """Return an SVG file of matplotlib with each colour of the palette in both of its shades."""

    def variable(found: re.Match[str]) -> str:
        return f"var(--c{found[1]})" if found[0] in palette.ON_DARK else found[0]

    start = re.search(r"<svg[^>]*>", svg)
    if start is None:
        return svg
    drawn = re.sub(r"#([0-9a-f]{6})\b", variable, svg[start.end() :])
    used = [light for light in palette.ON_DARK if f"--c{light[1:]})" in drawn]
    shades = (
        ":root{" + ";".join(f"--c{light[1:]}:{shade}" for light, shade in pairs) + "}"
        for pairs in (
            [(light, light) for light in used],
            [(light, palette.ON_DARK[light]) for light in used],
        )
    )
    light, dark = shades
    style = f"<style>{light}@media (prefers-color-scheme: dark){{{dark}}}</style>"
    return f"{svg[: start.end()]}{style}{drawn}"


def _many_marks(canvas: "Canvas") -> "list[Artist]":
    """Return the artists that are made of more marks than a page should have as shapes."""
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
    """Say in words what the axes show: kind, title, axes with units and range, series."""
    kind = ax.get_gid() or "Plot"
    names = ax.get_legend_handles_labels()[1]
    series = f" Series: {', '.join(names)}." if names else ""
    axes = f"{_axis(ax, 'x')} {_axis(ax, 'y')}".strip()
    title = ax.get_title().replace("\n", " ")
    return visible(f"{kind}: {title}. {axes}{series} {alt.strip()}".strip())


def _axis(ax: "Axes", which: str) -> str:
    """One sentence about an axis: its label with the unit, its range, its scale."""
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
    low, high = max(low, data_low), min(high, data_high)
    log = ", logarithmic" if axis.get_scale() == "log" else ""
    return f"The {which} axis shows {label}, from {_number(low)} to {_number(high)}{log}."


def _is_number(text: str) -> bool:
    return text.replace("\N{MINUS SIGN}", "").replace(".", "").replace(",", "").isdigit()


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004  # thousand


def _table(frame: "pd.DataFrame") -> str:
    """Write the first rows as an HTML table, and say so when there are more."""
    rows = frame.head(MAX_TABLE_ROWS)
    table: str = visible(
        rows.to_html(index=False, border=0, float_format=lambda value: f"{value:.6g}")
    )
    if len(frame) <= MAX_TABLE_ROWS:
        return table
    return f"<p>The first {MAX_TABLE_ROWS} of {len(frame):,} rows.</p>{table}"
