"""Measure how smoothly a timeline zooms and pans: frame times in a real, headless Chromium.

A page contains the widget as a notebook would show it, without the notebook around it. The mouse
zooms and pans; the page notes when each frame is drawn, and how long its drawing took. The
headless browser draws on the CPU, so with a GPU the timeline is at least as smooth as this.
"""

import base64
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from benchmarks.browser.times import line
from gpulab.figures import widgets
from gpulab.tracing import Span, Timeline, _widget

if TYPE_CHECKING:
    from playwright.sync_api import Page

N_STEPS = 60
WARMUP_MS = 500
PAGE = """<!doctype html><meta charset="utf-8"><body><div id="root" style="width:1100px"></div>
<script type="module">
const module = await import(URL.createObjectURL(new Blob([%s], {type: "text/javascript"})));
const bytes = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
const plain = value => Array.isArray(value) ? value.map(plain)
  : value === null || typeof value !== "object" ? value
  : "bytes" in value ? new DataView(bytes(value.bytes).buffer)
  : Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
const drawing = plain(%s);
const model = {get: () => drawing, on() {}, off() {}};
window.frames_ms = []; window.work_ms = [];
const request = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = draw => request(now => {
  const began = performance.now();
  draw(now);
  window.work_ms.push(performance.now() - began);
});
let before = 0;
const tick = now => { window.frames_ms.push(now - before); before = now; request(tick); };
request(tick);
module.default.render({model, el: document.getElementById("root")});
</script>"""


def example(n_spans: int) -> Timeline:
    """Make a timeline of launches on the host and kernels on four streams, with arrows."""
    spans: list[Span] = []
    free_s = dict.fromkeys(range(4), 0.0)
    for number in range(n_spans // 2):
        stream, called_s = number % 4, number * 6e-6
        start_s = max(free_s[stream], called_s + 7e-6)
        free_s[stream] = end_s = start_s + (3 + number % 11) * 1e-6
        spans.append(
            Span(
                "launch", "cudaLaunchKernel", "host", called_s, called_s + 5e-6, correlation=number
            )
        )
        lane, name = f"stream {stream}", f"kernel_{number % 13}"
        kernel = Span("kernel", name, lane, start_s, end_s, stream, 0, "compute", number)
        spans.append(kernel)
    return Timeline(tuple(spans), "virtual", "NVIDIA H200")


def as_plain(value: object) -> object:
    """Replace bytes by base64 text, in nested lists and dictionaries, too."""
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, dict):
        return {key: as_plain(each) for key, each in value.items()}
    return [as_plain(each) for each in value] if isinstance(value, list) else value


def write_page(record: Timeline, path: Path) -> None:
    """Write a page that shows the widget and notes its frames."""
    script = widgets.script(Path(_widget.__file__).with_name("timeline.js"))
    parts = (
        json.dumps(part) for part in (script, as_plain(_widget.content(record, record.summary())))
    )
    path.write_text(PAGE % tuple(part.replace("</", "<\\/") for part in parts), "utf-8")


def drive(page: "Page") -> tuple[list[float], list[float]]:
    """Zoom in and out with the wheel and pan with the mouse; return frame and drawing times."""
    canvas = page.locator("canvas.chart")
    canvas.wait_for()
    box = canvas.bounding_box()
    if box is None:
        raise RuntimeError("the timeline has no place on the page")
    x, y = box["x"] + 600, box["y"] + 60
    canvas.click(position={"x": 600, "y": 60})
    page.wait_for_timeout(WARMUP_MS)
    page.evaluate("window.frames_ms.length = window.work_ms.length = 0")
    page.mouse.move(x, y)
    for step in range(2 * N_STEPS):
        page.mouse.wheel(0, -60 if step < N_STEPS else 60)
    page.mouse.wheel(0, -300)
    page.mouse.down()
    for step in range(N_STEPS):
        page.mouse.move(x - 5 * step, y)
    page.mouse.up()
    frames, work = page.evaluate("[window.frames_ms, window.work_ms]")
    # The first frame began before the movement.
    return frames[1:], work


def run(sizes: Sequence[int]) -> None:
    """Print the frame times of a timeline for each number of spans."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for n_spans in sizes:
            path = Path(folder) / f"{n_spans}.html"
            write_page(example(n_spans), path)
            page = browser.new_page(viewport={"width": 1200, "height": 800})
            page.goto(path.as_uri())
            frames_ms, work_ms = drive(page)
            print(f"{n_spans:,} spans, page of {path.stat().st_size / 1e6:.1f} MB")
            print(line("frames", frames_ms))
            print(line("drawing", work_ms))
            page.close()
        browser.close()
