"""Show a timeline in a notebook: as a widget to zoom and pan, or as a static picture."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean
from gpulab.figures import widgets
from gpulab.tracing._figure import draw_timeline, most_of, title_of
from gpulab.tracing._geometry import Drawing, drawing
from gpulab.tracing._spans import SPAN_KINDS
from gpulab.tracing._summary import Summary

if TYPE_CHECKING:
    from anywidget import AnyWidget

    from gpulab.tracing._timeline import Timeline


# Short neighbours become one bar beyond this, before anything is sent to the browser.
MAX_BARS = 20_000
_SCRIPT = Path(__file__).with_name("timeline.js")
_MICRO = 1e6


def view(record: "Timeline", *, summary: Summary | None = None) -> "AnyWidget":
    """Return the timeline as a widget, which works without the kernel once it is shown.

    If there are more than 20,000 spans, short neighbours become one bar, and the widget says so.
    Without spans it says that there are none. Pass the summary if you have it already.
    """
    return _widget_class()(drawing=content(record, summary or record.summary()))


def bundle(record: "Timeline") -> dict[str, Any]:
    """Return the forms in which a notebook can show a timeline, by MIME type.

    The picture is always there: exported notebooks and pages that show a notebook display it. The
    widget is added only if a front end such as JupyterLab runs the cell. A program that runs
    notebooks, such as nbconvert, would save the widget in place of the picture, and an exported
    page can show a widget only if it can load scripts from other servers.
    """
    summary = record.summary()
    if record.spans:
        # Drawn even beside a widget: exported pages and viewers without a kernel show the picture.
        figure = draw_timeline(record, summary=summary)
        shown = {"text/plain": figure.description, "text/html": figure._repr_html_()}
    else:
        text = str(summary)
        shown = {"text/plain": text, "text/html": f"<p>{clean(text)}</p>"}
    return {**shown, **_live(record, summary)}


def _live(record: "Timeline", summary: Summary) -> dict[str, Any]:
    if not widgets.is_watched():
        return {}
    return widgets.widget_data(view(record, summary=summary))


def content(record: "Timeline", summary: Summary) -> dict[str, Any]:
    """Return everything that the widget draws: columns as bytes, the rest as plain values."""
    shown = drawing(record, max_bars=MAX_BARS)
    bars = shown.bars
    # Most spans share a few names, so each name is sent once and a column has its number.
    numbers: dict[str, int] = {}
    names = [numbers.setdefault(visible(name), len(numbers)) for name in bars.name]
    arrows = shown.arrows
    return {
        "place": record.place,
        "summary": str(summary),
        "headline": visible("\n".join(map(summary.headline, summary.devices))),
        "note": shown.note,
        "n_spans": len(record.spans),
        "names": list(numbers),
        "kinds": list(SPAN_KINDS),
        "lanes": [{"name": visible(lane.name), "rows": lane.n_rows} for lane in shown.lanes],
        "series": _series(shown),
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


def _series(shown: Drawing) -> list[dict[str, Any]]:
    return [
        {
            "name": visible(title_of(series, shown)),
            "most": most_of(series),
            "times": _floats(np.array(series.times_s) * _MICRO),
            "values": _floats(series.values),
        }
        for series in shown.series
    ]


def _floats(values: Any) -> bytes:  # noqa: ANN401  # anything that numpy makes a column of
    # Little-endian, as JavaScript's typed arrays are on all common machines.
    return np.asarray(values, dtype="<f8").tobytes()


def _int32s(values: Any) -> bytes:  # noqa: ANN401  # as above
    return np.asarray(values, dtype="<i4").tobytes()


@cache  # made on first use, so that importing gpulab does not import anywidget
def _widget_class() -> "type[AnyWidget]":
    import anywidget
    import traitlets

    class TimelineView(anywidget.AnyWidget):
        """A timeline in the browser."""

        set_state = widgets.ignore_state
        _esm = widgets.script(_SCRIPT)
        drawing = traitlets.Dict().tag(sync=True)

    return TimelineView
