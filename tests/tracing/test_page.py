"""In a notebook, a timeline is text, and a page that draws itself or contains a picture."""

import base64
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpulab.tracing import Timeline, _page
from gpulab.tracing._counters import CounterSeries
from gpulab.tracing._page import bundle
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
FINDING = "The GPU is busy 81 % of 80.0 µs (virtual NVIDIA H200)"


def content(record: Timeline) -> dict[str, Any]:
    """Return the numbers in the page."""
    html = bundle(record)["text/html"]
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', html)
    made: dict[str, Any] = json.loads(data)
    return made


def floats(text: str) -> list[float]:
    """Return a column of floats."""
    return [float(value) for value in np.frombuffer(base64.b64decode(text), "<f8")]


def whole(text: str) -> list[int]:
    """Return a column of integers."""
    return [int(value) for value in np.frombuffer(base64.b64decode(text), "<i4")]


def test_columns_of_the_page() -> None:
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


def test_words_of_the_page() -> None:
    """Title, summary, headline, lanes and series are sent as text."""
    sent = content(SHOWN)
    assert (sent["title"], sent["n_spans"], sent["note"]) == (FINDING, 5, "")
    assert sent["summary"] == str(SHOWN.summary())
    assert sent["headline"] == "cuda:0: busy 81.2 %, idle 18.8 %, one stream."
    assert [lane["name"] for lane in sent["lanes"]] == ["host", "stream 0", "stream 7"]
    assert [(one["name"], one["most"]) for one in sent["series"]] == [("memory", "1.00 KiB")]
    assert floats(sent["series"][0]["times"]) == pytest.approx([0, 9])


def test_every_column_is_read_by_the_script() -> None:
    """The script reads every key of the message under the same name."""
    script = Path(_page.__file__).with_name("timeline.js").read_text("utf-8")
    for name in content(SHOWN):
        assert re.search(rf"\b(?:drawing\.|this\.shown\.|[{{,] ?){name}\b", script), name


@pytest.mark.slow
def test_picture_and_text_are_always_there() -> None:
    """A page without scripts shows the picture, a terminal the text, and a name ends no script."""
    shown = replace(SHOWN, spans=(work(0, 1, name="</script>"),))._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}
    assert "cuda:0: busy" in shown["text/plain"]
    page = shown["text/html"]
    assert re.match(r'<div data-gpulab-page="timeline-\w+"><figure class="gpulab-figure" ', page)
    assert page.count("</script>") == 2


def test_the_same_timeline_has_the_same_page() -> None:
    """Two cells that show one timeline are one text, which a kernel keeps once."""
    assert bundle(SHOWN) == bundle(replace(SHOWN))
    assert bundle(SHOWN) != bundle(replace(SHOWN, source="measured"))


def test_empty_timeline_says_so() -> None:
    """An empty timeline is a sentence instead of a picture."""
    shown = bundle(replace(SHOWN, spans=()))
    text = "No spans on virtual NVIDIA H200: the work did nothing that leaves a trace."
    assert shown == {"text/plain": text, "text/html": f"<p>{text}</p>"}
