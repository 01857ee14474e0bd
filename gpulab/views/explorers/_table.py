"""The table below an explorer's picture: times with units, three or four digits."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpulab.core.markup import table
from gpulab.core.units import format_time

if TYPE_CHECKING:
    import pandas as pd


_MAX_ROWS = 300


def table_html(frame: "pd.DataFrame", caption: str) -> str:
    """Return a frame as an HTML table with a caption; every cell is escaped.

    Columns that end in ``_s`` are times. Columns with the same value in every row are left out,
    because the caption says it.
    """
    shown = frame.head(_MAX_ROWS)
    names = [name for name in shown.columns if len(shown) == 1 or _varies(shown[name])]
    more = f" The first {_MAX_ROWS} of {len(frame):,} rows." if len(frame) > _MAX_ROWS else ""
    writers = [_writer(name) for name in names]
    rows = (
        [write(cell) for write, cell in zip(writers, cells, strict=True)]
        for cells in shown[names].to_numpy()
    )
    return table(rows, caption=f"{caption}{more}", headings=map(_title, names))


def _varies(column: "pd.Series[Any]") -> bool:
    return bool((column != column.iloc[0]).any())


def _title(name: str) -> str:
    return name.removesuffix("_s").replace("_", " ")


def _writer(name: str) -> Callable[[Any], str]:
    # Rates such as flops_per_s end in _s, too.
    return _time if name.endswith("_s") and not name.endswith("per_s") else _plain


def _time(value: float) -> str:
    return "" if value is None or math.isnan(value) else format_time(value)


def _plain(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
