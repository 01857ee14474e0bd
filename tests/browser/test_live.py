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
left = [thread.name for thread in threading.enumerate() if "gpulab" in thread.name]
f"left: {left}, drained: {torch.cuda.current_stream().query()}\"""",
]
# The number of points of the clock, which grows while the cell runs.
GROWN = """([cell, n_before]) => {
    const line = cell.querySelector('.live polyline.curve');
    const n_points = line ? line.getAttribute('points').split(',').length / 2 : 0;
    if (n_points > n_before) return n_points;
    if (!cell.querySelector('.jp-InputArea-prompt').textContent.includes('*'))
        throw new Error(`the cell has ended after ${n_before} points`);
    return false;
}"""


def test_a_live_picture_grows_and_is_stopped(lab: Lab) -> None:
    """Several frames appear; the interrupt and the Stop button both leave a finished picture."""
    put_notebook(lab.address, "live", CELLS)
    with lab.notebook("live") as notebook:
        _watch(lab.page, notebook)


def _watch(page: "Page", notebook: "Locator") -> None:
    """Run the cells one by one, and stop the load by interrupt and by button."""
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    first, second, third = (notebook.locator(".jp-CodeCell").nth(n) for n in range(3))
    run_cell(first)
    _wait(page, first)
    stops = {
        "stopped by an interrupt": page.locator("[data-jp-item-name=interrupt]:visible").first,
        "stopped by the Stop button": second.get_by_role("button", name="Stop"),
    }
    for number, (words, button) in enumerate(stops.items()):
        run_cell(second)
        second.locator(".jp-InputArea-prompt", has_text="[*]").wait_for()
        n_points = 0
        for _ in range(3):
            grown = page.wait_for_function(
                GROWN, arg=[second.element_handle(), n_points], polling=100
            )
            n_points = grown.json_value()
        assert axe_findings(page, ".live") == []
        take_picture(page, f"live_{number}_running")
        button.click()
        _wait(page, second)
        picture = second.locator("figure.gpulab-figure img")
        second.locator(f'figure img[alt*="The GPU under load, {words} after"]').wait_for()
        take_picture(page, f"live_{number}_stopped")
        assert picture.count() == 1
        assert words in second.locator(".jp-OutputArea").inner_text()
        second.get_by_role("button", name="Stop").wait_for(state="detached")
        assert second.locator('[data-mime-type="application/vnd.jupyter.stderr"]').count() == 0
    run_cell(third)
    _wait(page, third)
    assert "left: [], drained: True" in third.locator(".jp-OutputArea").inner_text()


def _wait(page: "Page", cell: "Locator") -> None:
    """Wait until a cell that is running, or has not run yet, has its number."""
    prompt = cell.locator(".jp-InputArea-prompt").first
    page.wait_for_function(
        "element => /[0-9]/.test(element.textContent)", arg=prompt.element_handle(), polling=100
    )
