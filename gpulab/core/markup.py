"""HTML for a notebook's output: text made safe, and tables with a caption and headings.

pandas' Styler cannot replace :func:`table`. It does not escape cells by default, it gives every
cell an id or a class, and importing it takes 0.7 s with pandas, for which ``gpulab doctor`` and
every measurement would wait.
"""

from collections.abc import Iterable
from html import escape
from typing import Protocol

from gpulab.core.foreign_text import visible

__all__ = ["Html", "PrettyPrinter", "clean", "table"]


_LEFT = ' style="text-align:left"'


def clean(text: str) -> str:
    """Return ``text`` escaped for HTML, with its control characters made visible.

    It fits into an element and into a quoted attribute.
    """
    return escape(visible(text))


class Html(str):
    """Text that is HTML already; :func:`table` does not escape a cell of this class.

    Use :func:`clean` for the parts of it that come from elsewhere.
    """

    __slots__ = ()


class PrettyPrinter(Protocol):
    """The method of IPython's pretty-printer that records call; IPython has no types for it."""

    def text(self, text: str) -> None:
        """Print this text."""


def table(
    rows: Iterable[Iterable[object]],
    *,
    caption: str = "",
    headings: Iterable[str] = (),
    has_row_headings: bool = False,
    is_text: bool = False,
) -> str:
    """Return an HTML table that a screen reader can read, with all text escaped but `Html`.

    With ``has_row_headings`` the first cell of each row is its heading. Jupyter's own style aligns
    all cells right, which suits numbers only; ``is_text`` aligns them left.
    """
    style = _LEFT if is_text else ""
    titled = f"<caption>{clean(caption)}</caption>" if caption else ""
    head = "".join(f'<th scope="col"{style}>{clean(text)}</th>' for text in headings)
    head = f"<thead><tr>{head}</tr></thead>" if head else ""
    body = "".join(f"<tr>{_cells(row, style, has_heading=has_row_headings)}</tr>" for row in rows)
    return f"<table>{titled}{head}<tbody>{body}</tbody></table>"


def _cells(row: Iterable[object], style: str, *, has_heading: bool) -> str:
    texts = [cell if isinstance(cell, Html) else clean(str(cell)) for cell in row]
    first = f'<th scope="row"{style}>{texts.pop(0)}</th>' if has_heading else ""
    return first + "".join(f"<td{style}>{text}</td>" for text in texts)
