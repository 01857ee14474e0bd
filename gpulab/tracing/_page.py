"""Show a timeline in a notebook: a page to zoom and pan, which contains a picture and words."""

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean
from gpulab.figures import widgets
from gpulab.tracing._figure import most_of, timeline_plot, title_of
from gpulab.tracing._geometry import Drawing, drawing
from gpulab.tracing._spans import SPAN_KINDS

if TYPE_CHECKING:
    from gpulab.tracing._timeline import Timeline


# Short neighbours become one bar beyond this; a notebook keeps 64 characters for each bar.
MAX_BARS = 10_000
_PAGE = Path(__file__).with_name("timeline_page.js")
_MICRO = 1e6


def bundle(record: "Timeline") -> dict[str, str]:
    """Return the forms in which a notebook can show a timeline, by MIME type.

    The page needs no kernel and no server, so it also works in the book, in an exported notebook
    and after the kernel has ended. Where no script runs, as in a notebook that Jupyter does not
    trust, it is a picture.
    """
    summary = record.summary()
    if not record.spans:
        text = str(summary)
        return {"text/plain": text, "text/html": f"<p>{clean(text)}</p>"}
    plot = timeline_plot(record, summary)
    figure = plot.figure()
    headline = [*map(summary.headline, summary.devices), *plot.reads]
    sent = {
        "title": figure.title,
        "summary": str(summary),
        "headline": visible("\n".join(headline)),
        **content(record),
    }
    # The same timeline in two cells has the same mark, and the page shows it in both.
    mark = f"timeline-{hashlib.sha256(repr(sent).encode()).hexdigest()[:16]}"
    html = widgets.page_html(_PAGE, mark, sent, figure._repr_html_())
    return {"text/plain": figure.description, "text/html": html}


def content(record: "Timeline") -> dict[str, Any]:
    """Return what the page draws: columns as texts of base64, the rest as it is."""
    picture = drawing(record, max_bars=MAX_BARS)
    bars = picture.bars
    # Most spans share a few names, so each name is sent once and a column has its number.
    numbers: dict[str, int] = {}
    names = [numbers.setdefault(visible(name), len(numbers)) for name in bars.name]
    arrows = picture.arrows
    return {
        "note": picture.note,
        "n_spans": len(record.spans),
        "names": list(numbers),
        "kinds": list(SPAN_KINDS),
        "lanes": [{"name": visible(lane.name), "rows": lane.n_rows} for lane in picture.lanes],
        "series": _series(picture),
        "start": _floats(bars.start_s * _MICRO),
        "end": _floats(bars.end_s * _MICRO),
        "size": _floats(bars.size_bytes),
        "busy": _floats(bars.busy_s * _MICRO),
        "row": _int32s(bars.row),
        "kind": _int32s(bars.kind),
        "name": _int32s(names),
        "count": _int32s(bars.count),
        "arrows": {
            "kind": [arrow.kind for arrow in arrows],
            "source": _int32s([arrow.source for arrow in arrows]),
            "target": _int32s([arrow.target for arrow in arrows]),
        },
    }


def _series(picture: Drawing) -> list[dict[str, Any]]:
    return [
        {
            "name": visible(title_of(series, picture)),
            "most": most_of(series),
            "times": _floats(np.array(series.times_s) * _MICRO),
            "values": _floats(series.values),
        }
        for series in picture.series
    ]


def _floats(values: Any) -> str:  # noqa: ANN401  # anything that numpy makes a column of
    # Little-endian, as JavaScript's typed arrays are on all common machines.
    return base64.b64encode(np.asarray(values, dtype="<f8").tobytes()).decode()


def _int32s(values: Any) -> str:  # noqa: ANN401  # as above
    return base64.b64encode(np.asarray(values, dtype="<i4").tobytes()).decode()
