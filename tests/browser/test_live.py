"""The live picture in a real JupyterLab: it grows, and stops in two ways."""

from typing import TYPE_CHECKING

from tests.support.jupyterlab import (
    Lab,
    axe_findings,
    needs_browser,
    put_notebook,
    run_cell,
    take_picture,
)

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = needs_browser

CELLS = [
    """\
import threading, torch, gpulab
from gpulab import live
gpulab.use("H200")
a = torch.randn(8192, 8192, device="cuda", dtype=torch.half)
out = torch.empty_like(a)""",
    """\
trace = live.load(lambda: torch.mm(a, a, out=out), duration_s=3600)
trace""",
    """\
from itertools import count
from gpulab import plots
rows = ({"size": n, "duration_s": 1e-6 * n, "series": "x"} for n in count(1))
live.series(
    (threading.Event().wait(0.1) or row for row in rows),
    plots.scaling, title="A series", alt="It rises.",
)""",
    """live.ladder(lambda: threading.Event().wait(0.1) or a + a)""",
    """\
left = [thread.name for thread in threading.enumerate() if "gpulab" in thread.name]
f"left: {left}, drained: {torch.cuda.current_stream().query()}\"""",
]
# The number of points of the first curve, which grows while the cell runs.
GROWN = """([cell, n_before]) => {
    const line = cell.querySelector('.live polyline.curve');
    const n_points = line ? line.getAttribute('points').split(',').length / 2 : 0;
    if (n_points > n_before) return n_points;
    if (!cell.querySelector('.jp-InputArea-prompt').textContent.includes('*'))
        throw new Error(`the cell has ended after ${n_before} points`);
    return false;
}"""


def test_a_live_picture_grows_and_is_stopped(lab: Lab) -> None:
    """Frames appear, without a finding of axe; the interrupt and Stop leave a finished picture."""
    put_notebook(lab.address, "live", CELLS)
    with lab.notebook("live") as notebook:
        _watch(lab.page, notebook)


def _watch(page: "Page", notebook: "Locator") -> None:
    """Run the cells one by one, and stop the load by interrupt and by button."""
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    first, load, series, ladder, last = (notebook.locator(".jp-CodeCell").nth(n) for n in range(5))
    run_cell(first)
    _wait(page, first)
    interrupt = page.locator("[data-jp-item-name=interrupt]:visible").first
    _stop(page, load, "MHz, stopped by an interrupt", interrupt)
    for cell, title in ((load, "MHz"), (series, "A series")):
        button = cell.get_by_role("button", name="Stop")
        _stop(page, cell, f"{title}, stopped by the Stop button", button, has_axe=cell is load)
    run_cell(ladder)
    ladder.locator(".live .point").first.wait_for()
    _try_axe(page, "ladder")
    ladder.get_by_role("button", name="Stop").click()
    ladder.locator('figure img[alt*="stopped by the Stop button"]').wait_for()
    run_cell(last)
    _wait(page, last)
    assert "left: [], drained: True" in last.locator(".jp-OutputArea").inner_text()


def _stop(
    page: "Page", cell: "Locator", words: str, button: "Locator", *, has_axe: bool = False
) -> None:
    """Watch a cell's picture grow, try keys in it, stop it, and look at what stays."""
    run_cell(cell)
    cell.locator(".jp-InputArea-prompt", has_text="[*]").wait_for()
    n_points = 0
    for _ in range(3):
        grown = page.wait_for_function(GROWN, arg=[cell.element_handle(), n_points], polling=100)
        n_points = grown.json_value()
    cells = page.locator(".jp-Cell:visible")
    n_cells = cells.count()
    for key in ("d", "d", "x", "a", "Delete", "ArrowRight"):
        cell.locator(".live .plane").first.focus()
        page.keyboard.press(key)
    assert cells.count() == n_cells
    assert ": " in cell.locator(".live .told").inner_text()
    name = words.replace(" ", "_").replace(",", "")
    if has_axe:
        _try_axe(page, name)
    button.click()
    _wait(page, cell)
    picture = cell.locator("figure.gpulab-figure img")
    cell.locator(f'figure img[alt*="{words} after"]').wait_for()
    take_picture(page, f"live_{name}_stopped")
    assert picture.count() == 1
    cell.get_by_role("button", name="Stop").wait_for(state="detached")
    assert cell.locator('[data-mime-type="application/vnd.jupyter.stderr"]').count() == 0


def _try_axe(page: "Page", name: str) -> None:
    """Expect no finding of axe in a growing picture, in the colours of both themes."""
    for is_light in (False, True):
        page.evaluate("light => { document.body.dataset.jpThemeLight = light; }", is_light)
        assert axe_findings(page, ".live") == []
        take_picture(page, f"live_{name}_{'light' if is_light else 'dark'}")


def _wait(page: "Page", cell: "Locator") -> None:
    """Wait until a cell that is running, or has not run yet, has its number."""
    prompt = cell.locator(".jp-InputArea-prompt").first
    page.wait_for_function(
        "element => /[0-9]/.test(element.textContent)", arg=prompt.element_handle(), polling=100
    )
