"""The timeline in a real JupyterLab, used with mouse, wheel and keyboard."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.jupyterlab import (
    Lab,
    needs_browser,
    put_notebook,
    run_all,
    set_theme,
    take_picture,
    wait_for_light_ink,
)

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = needs_browser

CELLS = [
    """\
import torch, gpulab
from gpulab.tracing import Span, Timeline, timeline
gpulab.use("H200")""",
    """\
x, host = torch.randn(1024, 1024, device="cuda"), torch.empty(1 << 20).pin_memory()
side, done = torch.cuda.Stream(), torch.cuda.Event()
def work():
    y = x @ x
    done.record()
    with torch.cuda.stream(side):
        copied = host.to("cuda", non_blocking=True)
        side.wait_event(done)
        y.relu()
    torch.cuda.current_stream().wait_stream(side)
    y.sum().item()
timeline(work)""",
    """\
name = "<img src=x onerror='document.title=1'> & <b>bold</b>"
Timeline((Span("kernel", name, "stream <i>0</i>", 0.0, 1e-5, 0),), "virtual", "NVIDIA H200")""",
    """Timeline((), "virtual", "NVIDIA H200")""",
    """\
starts_s = [n * 2e-6 for n in range(12_000)]
many = [Span("kernel", "k", "stream 0", start_s, start_s + 1e-6, 0) for start_s in starts_s]
Timeline(tuple(many), "virtual", "NVIDIA H200")""",
]


@pytest.fixture(scope="module")
def shown(lab: Lab) -> Iterator["Locator"]:
    """Run a notebook with timelines, once for all tests of this file."""
    put_notebook(lab.address, "timelines", CELLS)
    with lab.notebook("timelines") as notebook:
        run_all(lab.page)
        notebook.locator(".gpulab-timeline").nth(2).wait_for()
        yield notebook


@pytest.fixture
def page(lab: Lab) -> "Page":
    """Return the page that contains the notebook."""
    return lab.page


def view_us(timeline: "Locator") -> tuple[float, float]:
    """Return the times at the left and the right edge of the picture, in microseconds."""
    data = timeline.evaluate("root => [root.dataset.fromUs, root.dataset.toUs]")
    return float(data[0]), float(data[1])


# An animated zoom changes the view in each frame; five frames without a change are its end.
SETTLED = """() => new Promise(done => {
    const roots = () => [...document.querySelectorAll('.gpulab-timeline')];
    const views = () => JSON.stringify(roots().map(root => ({...root.dataset})));
    let before = views(), n_calm = 0;
    const look = () => {
        const now = views();
        n_calm = now === before ? n_calm + 1 : 0;
        before = now;
        n_calm < 5 ? requestAnimationFrame(look) : done();
    };
    requestAnimationFrame(look);
})"""


def settle(page: "Page") -> None:
    """Wait until an animated zoom or pan is over."""
    page.evaluate(SETTLED)


def turn_wheel(page: "Page", by: int) -> None:
    """Turn the mouse wheel, and wait until the page has received it and is still."""
    page.evaluate(
        "window.turned = new Promise(done => addEventListener('wheel', () => done(), "
        "{once: true, capture: true})); 0"
    )
    page.mouse.wheel(0, by)
    page.evaluate("window.turned")
    settle(page)


def centre(canvas: "Locator") -> tuple[float, float]:
    """Return a point in the second lane of a timeline, in pixels of the page."""
    box = canvas.bounding_box()
    assert box is not None
    return box["x"] + 500, box["y"] + 70


def test_mouse_in_the_browser(shown: "Locator", page: "Page") -> None:
    """The wheel zooms after a click on the picture, dragging pans, and buttons zoom and reset."""
    first = shown.locator(".gpulab-timeline").first
    first.scroll_into_view_if_needed()
    canvas = first.locator("svg.chart")
    settle(page)
    whole = view_us(first)
    take_picture(page, "timeline_whole")
    page.mouse.move(*centre(canvas))
    turn_wheel(page, -200)
    assert view_us(first) == whole  # before a click the wheel scrolls the page
    canvas.scroll_into_view_if_needed()
    canvas.click(position={"x": 500, "y": 70})
    turn_wheel(page, -400)
    near = view_us(first)
    assert whole[0] < near[0] < near[1] < whole[1]
    take_picture(page, "timeline_zoomed")
    x, y = centre(canvas)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 100, y, steps=4)
    page.mouse.up()
    settle(page)
    moved = view_us(first)
    assert moved[0] > near[0]
    assert moved[1] - moved[0] == pytest.approx(near[1] - near[0])
    first.get_by_role("button", name="Show all of the timeline").click()
    settle(page)
    assert view_us(first) == pytest.approx(whole)
    first.get_by_role("button", name="Zoom in").click()
    settle(page)
    assert view_us(first)[1] - view_us(first)[0] == pytest.approx((whole[1] - whole[0]) / 1.6)


def test_keys_in_the_browser(shown: "Locator", page: "Page") -> None:
    """Keys select spans, follow links, zoom and pan, and each selection is announced."""
    first = shown.locator(".gpulab-timeline").first
    canvas, told = first.locator("svg.chart"), first.locator(".told")
    assert told.get_attribute("aria-live") == "polite"
    canvas.focus()
    page.keyboard.press("Escape")
    page.keyboard.press("0")
    settle(page)
    told.filter(has_text=re.compile("^From 0 to 1")).wait_for()
    whole = view_us(first)
    page.keyboard.press("ArrowRight")
    assert told.inner_text().startswith("launch cudaLaunchKernel, on host, from ")
    assert "starts mm on stream 0" in told.inner_text()
    page.keyboard.press("l")
    assert told.inner_text().startswith("kernel mm, on stream 0, from ")
    page.keyboard.press("ArrowDown")
    assert ", on stream 1, " in told.inner_text()
    page.keyboard.press("Enter")
    settle(page)
    near = view_us(first)
    assert near[1] - near[0] < whole[1] - whole[0]
    take_picture(page, "timeline_selected")
    page.keyboard.press("-")
    settle(page)
    assert view_us(first)[1] - view_us(first)[0] > near[1] - near[0]
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.keyboard.press("Shift+ArrowRight")
    settle(page)
    assert view_us(first)[0] > near[0]
    page.keyboard.press("End")
    assert told.inner_text().startswith("event, on stream 1, at ")
    page.keyboard.press("ArrowRight")
    assert told.inner_text() == "This is the last span of the lane."
    # No key has reached the notebook, where 0 0 would restart the kernel.
    assert len(shown.locator(".jp-CodeCell").all()) == len(CELLS)


def test_names_are_escaped_in_the_browser(shown: "Locator", page: "Page") -> None:
    """Markup in a name is shown as text, and no script in it runs."""
    second = shown.locator(".gpulab-timeline").nth(1)
    second.locator("svg.chart").focus()
    page.keyboard.press("ArrowRight")
    assert "<img src=x onerror='document.title=1'> & <b>bold</b>, on stream <i>0</i>" in (
        second.locator(".told").inner_text()
    )
    assert second.locator("img, b, i").count() == 0
    assert page.title() != "1"


def test_nothing_and_too_much_in_the_browser(shown: "Locator", page: "Page") -> None:
    """A timeline without spans says so; one with too many says that only some are drawn."""
    words = "No spans on virtual NVIDIA H200: the work did nothing that leaves a trace."
    assert shown.get_by_text(words).is_visible()
    many = shown.locator(".gpulab-timeline").nth(2)
    assert many.locator(".note").inner_text().startswith("12,000 spans, drawn as ")
    many.scroll_into_view_if_needed()
    settle(page)
    take_picture(page, "timeline_many")


def test_timeline_in_the_dark(shown: "Locator", page: "Page") -> None:
    """The picture changes to dark colours when JupyterLab's theme does."""
    first = shown.locator(".gpulab-timeline").first
    set_theme(page, "Dark")
    first.scroll_into_view_if_needed()
    wait_for_light_ink(first.locator("svg.chart text").first, "fill")
    take_picture(page, "timeline_dark")


def test_busy_kernel_in_the_browser(shown: "Locator", page: "Page") -> None:
    """Zooming works while the kernel is busy."""
    first = shown.locator(".gpulab-timeline").first
    shown.locator(".jp-CodeCell .cm-content").first.click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("while True: pass")
    page.keyboard.press("ControlOrMeta+Enter")
    page.get_by_text("Python 3 (ipykernel) | Busy").wait_for()
    before = view_us(first)
    first.get_by_role("button", name="Zoom out").click()
    first.get_by_role("button", name="Zoom in").click()
    first.get_by_role("button", name="Zoom in").click()
    settle(page)
    assert view_us(first) != before
    assert page.get_by_text("Python 3 (ipykernel) | Busy").is_visible()
