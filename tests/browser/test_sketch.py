"""Drawing a curve in a real JupyterLab: by mouse, by keys alone, and shown without a kernel."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.jupyterlab import (
    Lab,
    axe_findings,
    first_cell,
    needs_browser,
    put_notebook,
    run_cell,
    take_picture,
)

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = needs_browser

# The name belongs to no lesson: the lessons run in the same folder, and a prediction that one of
# them has revealed would count as late here.
CELLS = [
    """\
from gpulab import exercises
from gpulab.exercises import lesson_09 as lab
near = exercises.draw("How long?", ..., name="09.sketched-here", axes=lab.MATMUL_TIMES)
near""",
    """\
sizes = near.axes.x
near.compare({"CPU": (sizes, [n * 1e-7 for n in sizes]), "GPU": (sizes, [2e-5] * len(sizes))})""",
    "exercises.progress()",
    "print(*(name for name, (_, drawn) in near.curves.items() if drawn))",
]
HAS_RUN = re.compile(r"\[\d+\]")
SHUT_DOWN = """async () => {
    const panel = window.jupyterapp.shell.currentWidget;
    await window.jupyterapp.commands.execute('docmanager:save');
    await panel.sessionContext.shutdown();
    await panel.context.ready;
    panel.dispose();
}"""
NO_KERNEL = """async path => {
    await window.jupyterapp.commands.execute('docmanager:open', {
        path, factory: 'Notebook', kernelPreference: {shouldStart: false, canStart: false},
    });
}"""


@pytest.fixture(scope="module")
def shown(lab: Lab) -> Iterator["Locator"]:
    """Open a notebook with axes to draw on, and run its first cell."""
    put_notebook(lab.address, "sketch", CELLS)
    with lab.notebook("sketch") as notebook:
        lab.page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
        run(notebook, 0)
        notebook.locator(".sketch:visible svg").first.wait_for()
        yield notebook


@pytest.fixture
def page(lab: Lab, shown: "Locator") -> "Page":
    """Return the page that contains the notebook."""
    del shown
    return lab.page


def run(notebook: "Locator", number: int) -> None:
    """Run a cell, and wait until it has its number."""
    cell = notebook.locator(".jp-CodeCell").nth(number)
    run_cell(cell)
    cell.locator(".jp-InputArea-prompt", has_text=HAS_RUN).wait_for()


def wait_for_drawing(notebook: "Locator", page: "Page", names: str) -> None:
    """Wait until the kernel has what was drawn.

    JupyterLab sends it to a thread of the kernel, which may lag behind the cells.
    """
    run(notebook, 3)
    output = notebook.locator(".jp-CodeCell").nth(3).locator(".jp-OutputArea-output")
    for _ in range(300):
        if output.count() and output.first.inner_text().strip() == names:
            return
        page.wait_for_timeout(100)
        run(notebook, 3)
    raise AssertionError(output.all_inner_texts())


def told(notebook: "Locator") -> str:
    """Return the widget's last announcement for screen readers."""
    return notebook.locator(".sketch:visible .told").inner_text()


def test_the_mouse_draws_a_curve(shown: "Locator", page: "Page") -> None:
    """Each size that the pointer passes gets a point, even if the pointer moves fast."""
    svg = shown.locator(".sketch:visible svg")
    svg.scroll_into_view_if_needed()
    box = svg.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 0.8 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.86 * box["width"], box["y"] + 0.1 * box["height"], steps=3)
    page.mouse.up()
    assert svg.locator(".points circle").count() == 10
    heights = svg.locator(".points circle").evaluate_all(
        "all => all.map(one => +one.getAttribute('cy'))"
    )
    assert heights == sorted(heights, reverse=True)
    assert heights[0] - heights[-1] > 100
    assert told(shown).startswith("CPU, n 2,048: ")


def test_keys_alone_draw_a_curve(shown: "Locator", page: "Page") -> None:
    """The button and the arrow keys draw the second curve, and each value is announced."""
    button = shown.get_by_role("button", name="Draw GPU")
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    # The other curve keeps a mark at each point, or a single point would vanish.
    assert shown.locator(".sketch:visible .points circle").count() == 10
    shown.get_by_role("slider").focus()  # one stop of Tab for all points
    for _ in range(10):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Delete")
    page.keyboard.press("ArrowUp")
    assert told(shown) == "GPU, n 4: 398 µs"
    page.keyboard.press("PageDown")
    assert told(shown) == "GPU, n 4: 39.8 µs"
    for _ in range(9):
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowUp")
    assert told(shown).startswith("GPU, n 2,048: 31")
    page.keyboard.press("Delete")
    assert told(shown) == "GPU, n 2,048: not drawn"
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused == "GPU, n 2,048"
    # No key has reached the notebook, where some keys delete or cut cells.
    assert shown.locator(".jp-CodeCell").count() == len(CELLS)
    take_picture(page, "sketch_drawn")


def test_the_sketch_has_no_findings_of_axe(shown: "Locator", page: "Page") -> None:
    """axe-core finds no violation in the widget for drawing."""
    del shown
    assert axe_findings(page, ".sketch") == []


def test_the_truth_is_drawn_over_it(shown: "Locator", page: "Page") -> None:
    """The review compares the curves; the saved picture is hidden while the widget is alive."""
    wait_for_drawing(shown, page, "CPU GPU")
    run(shown, 1)
    box = shown.locator(".jp-CodeCell").nth(1).locator('[role="status"]')
    box.wait_for()
    assert "The GPU gets ahead at n: you drew " in box.inner_text()
    # The page may send the last point while the next cell starts; it must arrive all the same.
    assert "not in your drawing" not in box.inner_text()
    still = shown.locator('[class^="gpulab-still-"]')
    assert "Drawn CPU:" in (still.text_content() or "")
    assert not still.is_visible()
    run(shown, 2)
    shown.get_by_text("of 1 prediction right").first.wait_for()
    take_picture(page, "sketch_compared")


def test_the_drawing_is_seen_and_goes_on_without_a_kernel(shown: "Locator", page: "Page") -> None:
    """A saved notebook without a kernel shows the drawing, and says that nobody keeps more."""
    del shown
    page.evaluate(SHUT_DOWN)
    page.evaluate(NO_KERNEL, "sketch.ipynb")
    sketch = first_cell(page).locator(".sketch:visible")
    sketch.get_by_text("Without a kernel nobody keeps or compares what you draw").wait_for()
    points = sketch.locator(".points circle")
    n_drawn = points.count()
    assert n_drawn >= 10
    sketch.get_by_role("slider").focus()
    page.keyboard.press("Delete")
    assert points.count() == n_drawn - 1
    take_picture(page, "sketch_without_kernel")
