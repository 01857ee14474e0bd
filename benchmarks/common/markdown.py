"""Make tables and sentences in Markdown, and put them into a page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

Cells = Sequence[str]


def put_between_markers(page: Path, name: str, text: str) -> None:
    """Replace the text between two markers of a page."""
    markers = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, begin, rest = page.read_text("utf-8").partition(markers[0])
    _, end, after = rest.partition(markers[1])
    if not begin or not end:
        raise SystemExit(f"{page} lacks {' or '.join(markers)}; put them where the text goes")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", "utf-8")


def print_or_write(text: str, page: Path | None, name: str) -> None:
    """Print a text, or put it between the markers of a page."""
    if page is None:
        print(text)
    else:
        put_between_markers(page, name, text)


def table(head: Cells, rows: Sequence[Cells], *, n_names: int = 1) -> list[str]:
    """Return the lines of a table whose first columns are names, and the others numbers."""
    rule = ["---"] * n_names + ["--:"] * (len(head) - n_names)
    return [_line(cells) for cells in (head, rule, *rows)]


def padded_table(head: Cells, rows: Sequence[Cells]) -> list[str]:
    """Return the lines of a table that also lines up as plain text: one name, then numbers."""
    widths = [max(3, *map(len, column)) for column in zip(head, *rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return [_line(_padded(cells, widths)) for cells in (head, rule, *rows)]


def percent(share: float, digits: int = 1, *, sign: bool = False) -> str:
    """Return a share in percent, such as "5.2 %"."""
    return f"{share:{'+' if sign else ''}.{digits}%}".replace("%", " %")


def _padded(cells: Cells, widths: Sequence[int]) -> Cells:
    name, *numbers = cells
    aligned = (text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True))
    return [name.ljust(widths[0]), *aligned]


def _line(cells: Cells) -> str:
    return f"| {' | '.join(cells)} |"


def source(at: dict[str, Any]) -> str:
    """Return a sentence that says where, when and with which versions results were measured.

    Parameters
    ----------
    at
        What :func:`benchmarks.common.environment.provenance` returned at that time.
    """
    kind = "Computed for the" if at["gpu"].startswith("virtual") else "Measured on"
    versions = ", ".join(f"{name} {number}" for name, number in at["versions"].items())
    driver = f"driver {at['driver']}, " if at["driver"] else ""
    return (
        f"{kind} {at['gpu']}, {driver}CUDA {at['cuda']}, {at['cpu']}, Python {at['python']}, "
        f"{versions}, gpulab {at['gpulab']}, on {at['taken_at'][:10]}."
    )
