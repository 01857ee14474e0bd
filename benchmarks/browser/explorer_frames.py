"""Measure how soon an explorer answers on its page: from an event to its painted frame.

The pages are files in headless Chromium, which draws on the CPU; no kernel runs. The frame rate is
not limited, so that a step is not rounded up to that of the screen.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.browser.times import line
from gpulab import exercises
from gpulab.exercises import lesson_09
from gpulab.figures.widgets import page_html
from gpulab.views.explorers import crossover_explorer, roofline_explorer
from tests.support.jupyterlab import CHROMIUM, CHROMIUM_OPTIONS, axe_findings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

GOAL_MS, FIRST_GOAL_MS, SCRIPT_GOAL_BYTES = 16, 300, 200_000
N_STEPS, N_BACK, N_STARTS = 120, 24, 7  # steps, of which half go back
WINDOW: Any = {"width": 1366, "height": 768}
UNLIMITED = ["--disable-gpu-vsync", "--disable-frame-rate-limit"]
PROBE = """
window.steps = [];
for (const kind of ["pointermove", "wheel", "input", "keydown"]) {
  let start = 0;
  addEventListener(kind, () => { start = performance.now(); }, true);
  addEventListener(kind, event => {
    const began = start, channel = new MessageChannel();
    channel.port1.onmessage = () => steps.push(performance.now() - began);
    requestAnimationFrame(() => channel.port2.postMessage(0));
  }, true);
}
"""
# Not the first paint: that is of the words which a page without scripts shows.
FIRST_PICTURE = """
const look = () => requestAnimationFrame(() => {
  if (!document.querySelector(".plane .grid .tick")) return look();
  const channel = new MessageChannel();
  channel.port1.onmessage = () => { window.firstMs = performance.now(); };
  channel.port2.postMessage(0);
});
look();
"""


def run() -> None:
    """Print the size of each script, the time to the first picture, and that of each step."""
    from playwright.sync_api import sync_playwright

    def crossover() -> str:
        return _html(crossover_explorer("matmul", transfers="both", link="PCIe 3"))

    def sketch() -> str:
        made = exercises.draw("How long?", name="09.near", axes=lesson_09.MATMUL_TIMES)
        return made._bundle()["text/html"]

    makers: dict[str, Callable[[], str]] = {
        "crossover": crossover,
        "roofline": lambda: _html(roofline_explorer()),
        "sketch": sketch,
    }
    print(f"goals: {GOAL_MS} ms a step, {FIRST_GOAL_MS} ms to the first picture")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        options = [*CHROMIUM_OPTIONS, *UNLIMITED]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        for name, make in makers.items():
            size_bytes = len(page_html(name, "", {}, "").encode())
            print(f"{name}: {size_bytes:,} bytes of script (goal {SCRIPT_GOAL_BYTES:,})")
            one, ten = (_page(Path(folder) / f"{name}{n}.html", make, n) for n in (1, 10))
            starts = [_start(browser, one) for _ in range(N_STARTS)]
            print(line("first picture", [wall_ms for wall_ms, _ in starts]))
            print(line("the page's own work for it", [work_ms for _, work_ms in starts]))
            for title, path in (("", one), (" of ten", ten)):
                page = _opened(browser, path)
                if path is ten:
                    print(f"axe findings of ten: {axe_findings(page, '.charted')}")
                page.evaluate(PROBE)
                for gesture in GESTURES[name]:
                    page.evaluate("steps.length = 0")
                    gesture(page)
                    page.wait_for_timeout(200)
                    steps = page.evaluate("steps")
                    print(line(f"{gesture.__name__.strip('_')}{title}", steps))
                page.close()
        browser.close()


def _html(explorer: Any) -> str:  # noqa: ANN401 # of either kind
    html: str = explorer._shown()["text/html"]
    return html


def _page(path: Path, make: Callable[[], str], count: int) -> Path:
    html = "".join(make() for _ in range(count))
    path.write_text(f'<!doctype html><meta charset="utf-8">{html}', "utf-8")
    return path


def _opened(browser: "Browser", path: Path) -> "Page":
    for context in browser.contexts:
        context.close()
    page = browser.new_page(viewport=WINDOW)
    page.goto(path.as_uri())
    page.locator(".plane").first.wait_for()
    page.wait_for_timeout(300)
    return page


def _start(browser: "Browser", path: Path) -> tuple[float, float]:
    """Return when the first picture is there, and how long the page computed, in ms."""
    page = browser.new_page(viewport=WINDOW)
    page.add_init_script(FIRST_PICTURE)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(path.as_uri())
    first = page.wait_for_function("window.firstMs")
    metrics = session.send("Performance.getMetrics")["metrics"]
    (work_s,) = [each["value"] for each in metrics if each["name"] == "TaskDuration"]
    wall_ms: float = first.json_value()
    page.close()
    return wall_ms, 1e3 * work_s


def _box(page: "Page", selector: str) -> Any:  # noqa: ANN401 # playwright's dict, which is there
    return page.locator(selector).first.bounding_box()


def _drag(page: "Page") -> None:
    box = _box(page, ".chip")
    x, y = box["x"] + box["width"] / 2, box["y"] + 8
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(N_STEPS):
        page.mouse.move(x - 200 + 3 * step % 400, y)
    page.mouse.up()


def _key(page: "Page") -> None:
    slider = page.locator("[role=slider]")
    (slider if slider.count() else page.locator(".plane")).first.focus()
    for step in range(N_STEPS):
        page.keyboard.press("ArrowLeft" if step % N_BACK < N_BACK / 2 else "ArrowRight")


def _stroke(page: "Page") -> None:
    box = _box(page, ".plane")
    page.mouse.move(box["x"] + 100, box["y"] + 200)
    page.mouse.down()
    for step in range(N_STEPS):
        page.mouse.move(box["x"] + 100 + 5 * step % 600, box["y"] + 100 + step % 200)
    page.mouse.up()


def _hover(page: "Page") -> None:
    box = _box(page, ".stage")
    for step in range(N_STEPS):
        page.mouse.move(box["x"] + 100 + 5 * step, box["y"] + 250 + 100 * (step % 3 - 1))


def _zoom(page: "Page") -> None:
    box = _box(page, ".stage")
    page.mouse.move(box["x"] + 400, box["y"] + 200)
    page.keyboard.down("Control")
    for step in range(N_STEPS):
        page.mouse.wheel(0, -30 if step % N_BACK < N_BACK / 2 else 30)
        page.wait_for_timeout(5)
    page.keyboard.up("Control")


def _link(page: "Page") -> None:
    _slide(page, "input[name=rate]")


def _bytes(page: "Page") -> None:
    _slide(page, "input[name=span]")


def _slide(page: "Page", selector: str) -> None:
    page.locator(selector).first.focus()
    for step in range(N_STEPS):
        page.keyboard.press("ArrowRight" if step % N_BACK < N_BACK / 2 else "ArrowLeft")


GESTURES: dict[str, tuple[Callable[["Page"], None], ...]] = {
    "crossover": (_drag, _key, _hover, _zoom, _link),
    "roofline": (_key, _hover, _zoom, _bytes),
    "sketch": (_stroke, _key),
}
