"""In a notebook, a timeline is text, picture, and a widget if the front end can show it."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpulab.figures import widgets
from gpulab.tracing import Timeline, _widget
from gpulab.tracing._counters import CounterSeries
from gpulab.tracing._widget import bundle, view
from tests.support.spans import US, host, mark, work

pytestmark = pytest.mark.usefixtures("no_pixels")

SHOWN = Timeline(
    (
        host("launch", 0, 10, 1),
        work(15, 80, 0, 1, size_bytes=64, engine="copy in"),
        mark("event", 80, 80, 0, 2),
        mark("wait", 30, 80, 7, 3, waits_for=2),
        host("host", 11, 12, 2),
    ),
    "virtual",
    "NVIDIA H200",
    (CounterSeries("memory", "B", 0, (0.0, 9 * US), (512.0, 1024.0)),),
)
WIDGET = "application/vnd.jupyter.widget-view+json"


def content(record: Timeline) -> dict[str, Any]:
    """Return the message that the widget gets."""
    return _widget.content(record, record.summary())


def floats(text: bytes) -> list[float]:
    """Return a column of floats."""
    return [float(value) for value in np.frombuffer(text, "<f8")]


def whole(text: bytes) -> list[int]:
    """Return a column of integers."""
    return [int(value) for value in np.frombuffer(text, "<i4")]


def test_columns_of_the_widget() -> None:
    """Bars are sorted by row and start, in microseconds, and each name is sent once."""
    sent = content(SHOWN)
    assert floats(sent["start"]) == pytest.approx([0, 11, 15, 80, 30])
    assert floats(sent["end"]) == pytest.approx([10, 12, 80, 80, 80])
    assert floats(sent["busy"]) == pytest.approx([10, 1, 65, 0, 50])
    assert whole(sent["row"]) == [0, 0, 1, 1, 2]
    assert [sent["kinds"][kind] for kind in whole(sent["kind"])] == [
        *["launch", "host", "copy", "event", "wait"]
    ]
    assert [sent["names"][name] for name in whole(sent["name"])] == [
        *["launch", "host", "copy", "event", "wait"]
    ]
    assert floats(sent["size"])[2] == 64
    assert whole(sent["count"]) == [1] * 5
    arrows = sent["arrows"]
    ends = zip(arrows["kind"], whole(arrows["source"]), whole(arrows["target"]), strict=True)
    assert list(ends) == [("launch", 0, 2), ("record", 1, 3), ("wait", 3, 4)]


def test_words_of_the_widget() -> None:
    """Place, summary, headline, lanes and series are sent as text."""
    sent = content(SHOWN)
    assert (sent["place"], sent["n_spans"], sent["note"]) == ("virtual NVIDIA H200", 5, "")
    assert sent["summary"] == str(SHOWN.summary())
    assert sent["headline"] == "cuda:0: busy 81.2 %, idle 18.8 %, one stream."
    assert [lane["name"] for lane in sent["lanes"]] == ["host", "stream 0", "stream 7"]
    assert [(one["name"], one["most"]) for one in sent["series"]] == [("memory", "1.00 KiB")]
    assert floats(sent["series"][0]["times"]) == pytest.approx([0, 9])


def test_names_are_sent_as_they_are() -> None:
    """Names are not escaped, because the page inserts them as text."""
    name = "<img src=x onerror=alert(1)>"
    assert name in content(replace(SHOWN, spans=(work(0, 1, name=name),)))["names"]


@pytest.mark.slow
def test_too_many_spans_are_thinned() -> None:
    """Many spans are thinned before sending, and the note says so."""
    spans = tuple(work(n, n + 0.5) for n in range(20_001))
    sent = content(replace(SHOWN, spans=spans))
    assert len(floats(sent["start"])) == 20_000
    assert sent["note"].startswith("20,001 spans, drawn as 20,000 bars")


def test_every_column_is_read_by_the_script() -> None:
    """The script reads every key of the message under the same name."""
    script = Path(_widget.__file__).with_name("timeline.js").read_text("utf-8")
    for name in content(SHOWN):
        assert re.search(rf"\b(?:drawing\.|this\.shown\.|[{{,] ?){name}\b", script), name


@pytest.mark.slow
def test_picture_and_text_are_always_there() -> None:
    """Without widgets, a page shows the picture and a terminal shows the text."""
    shown = SHOWN._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}
    assert str(SHOWN.summary()) in shown["text/plain"]
    assert shown["text/html"].startswith('<figure class="gpulab-figure" ')
    assert 'alt="Timeline: ' in shown["text/html"]


def test_empty_timeline_says_so() -> None:
    """An empty timeline is a sentence instead of a picture."""
    shown = bundle(replace(SHOWN, spans=()))
    text = "No spans on virtual NVIDIA H200: the work did nothing that leaves a trace."
    assert shown == {"text/plain": text, "text/html": f"<p>{text}</p>"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shell", "has_widget"),
    [
        (None, False),
        (SimpleNamespace(), False),
        (SimpleNamespace(kernel=object(), get_parent=lambda: {"metadata": {}}), False),
        (SimpleNamespace(kernel=object(), get_parent=lambda: None), False),
        (SimpleNamespace(kernel=object(), get_parent=lambda: {"metadata": {"cellId": "a"}}), True),
    ],
    ids=["no shell", "no kernel", "nbconvert", "no request", "JupyterLab"],
)
def test_widget_only_where_somebody_looks(
    monkeypatch: pytest.MonkeyPatch,
    shell: object,
    has_widget: bool,  # noqa: FBT001 # from the table
) -> None:
    """The widget is made only if the request names a cell, which nbconvert's does not."""
    made = {WIDGET: {"model_id": "m"}, "text/plain": "widget"}
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    widget = SimpleNamespace(_repr_mimebundle_=lambda: made)
    monkeypatch.setattr(_widget, "view", lambda _record, **_known: widget)
    shown = bundle(SHOWN)
    assert (WIDGET in shown) is has_widget
    assert shown["text/plain"] != "widget"


@pytest.mark.slow
def test_widget_of_a_version_that_returns_two_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Widgets that return data and metadata, or nothing, work as well."""
    monkeypatch.setattr(widgets, "is_watched", lambda: True)
    for returned, has_widget in ((({WIDGET: {}}, {}), True), (None, False)):
        widget = SimpleNamespace(_repr_mimebundle_=lambda returned=returned: returned)
        monkeypatch.setattr(_widget, "view", lambda _record, widget=widget, **_known: widget)
        assert (WIDGET in bundle(SHOWN)) is has_widget


def test_widget_contains_the_drawing() -> None:
    """The widget has the drawing, and the JavaScript next to the module."""
    widget: Any = view(SHOWN)
    try:
        assert widget.drawing == content(SHOWN)
        assert "export default" in str(widget._esm)
    finally:
        widget.close()


def test_times_begin_with_the_first_span() -> None:
    """Times sent to the widget count from the first span."""
    later = tuple(
        replace(span, start_s=span.start_s + 1, end_s=span.end_s + 1) for span in SHOWN.spans
    )
    assert floats(content(replace(SHOWN, spans=later))["start"])[1] == pytest.approx(11, abs=US)
