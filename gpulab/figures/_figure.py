"""A figure that also reads as text: picture, description and data in one display object."""

import base64
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpulab.foreign_text import visible
from gpulab.markup import clean

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


MAX_TABLE_ROWS = 100
WIDTH_IN = 9.0  # about the width of a notebook's page
_PIXELS_PER_INCH = 100
_SHARPNESS = 2


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture with the text that says what is on it, and its data.

    Attributes
    ----------
    png
        The picture, two device pixels for each CSS pixel.
    width_px
        Width at which it is shown, in CSS pixels.
    title
        Title, which ends with where the numbers come from.
    description
        The text alternative: type, axes with units, ranges, and what is to be seen.
    caption
        What is to be seen, shown under the picture; the last part of the description.
    frame
        The numbers drawn; the table under the picture shows its first rows.
    """

    png: bytes
    width_px: int
    title: str
    description: str
    caption: str
    frame: "pd.DataFrame"

    def __str__(self) -> str:
        return self.description

    __repr__ = __str__

    def _repr_html_(self) -> str:
        text = clean(self.description)
        source = base64.b64encode(self.png).decode("ascii")
        return (
            f'<figure role="img" aria-label="{text}" style="margin:0">'
            f'<img src="data:image/png;base64,{source}" alt="{text}" width="{self.width_px}" '
            f'style="max-width:100%;height:auto">'
            f"<figcaption>{clean(self.caption)}</figcaption></figure>"
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
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(ax.figure)  # type: ignore[arg-type]  # no subfigures here
    file = io.BytesIO()
    canvas.figure.set_dpi(_PIXELS_PER_INCH * _SHARPNESS)
    canvas.print_png(file, metadata={"Software": None})  # type: ignore[no-untyped-call]  # its gap
    width_px = round(canvas.figure.get_figwidth() * _PIXELS_PER_INCH)
    title = visible(ax.get_title().replace("\n", " "))
    caption = visible(alt.strip())
    return Figure(file.getvalue(), width_px, title, describe(ax, alt), caption, frame)


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
