"""The live picture in a real JupyterLab: it grows, and is stopped in two ways."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.jupyterlab import (
    RUN_TIMEOUT_MS,
    chromium,
    lab,
    needs_browser,
    open_notebook,
    put_notebook,
)

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

__all__ = ["lab"]

pytestmark = needs_browser

CELLS = [
    """\
import threading, torch, gpulab
from gpulab import live
gpulab.use("H200")
a = torch.randn(8192, 8192, device="cuda", dtype=torch.half)
out = torch.empty_like(a)""",
    """\
trace = live.load(lambda: torch.mm(a, a, out=out), duration_s=90)
trace""",
    """\
left = [thread.name for thread in threading.enumerate() if "gpulab" in thread.name]
f"left: {left}, drained: {torch.cuda.current_stream().query()}\"""",
]


@pytest.fixture(scope="module")
def notebook_url(lab: str) -> str:  # the fixture
    """Put a notebook with a long load into the folder of JupyterLab, and return its address."""
    return put_notebook(lab, "live", CELLS)


@pytest.fixture
def page() -> Iterator["Page"]:
    """Open a page for one test."""
    with chromium() as opened:
        yield opened


@pytest.mark.timeout(240)
def test_a_live_picture_grows_and_is_stopped(
    notebook_url: str, page: "Page", tmp_path: Path
) -> None:
    """It is drawn again and again; the interrupt and the button each leave the part there is."""
    pictures = Path(os.environ.get("GPULAB_SCREENSHOTS", tmp_path))
    pictures.mkdir(parents=True, exist_ok=True)
    notebook = open_notebook(page, notebook_url)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=RUN_TIMEOUT_MS)
    first, second, third = (notebook.locator(".jp-CodeCell").nth(n) for n in range(3))
    _run(page, first)
    _wait(page, first)
    stops = {
        "stopped by an interrupt": page.locator("[data-jp-item-name=interrupt]").first,
        "stopped by the Stop button": second.get_by_role("button", name="Stop"),
    }
    for number, (words, button) in enumerate(stops.items()):
        _run(page, second)
        second.locator(".jp-InputArea-prompt", has_text="[*]").wait_for(timeout=RUN_TIMEOUT_MS)
        assert len(_frames(page, second)) == 3
        page.screenshot(path=pictures / f"live_{number}_running.png")
        button.click()
        _wait(page, second)
        page.wait_for_timeout(500)
        page.screenshot(path=pictures / f"live_{number}_stopped.png")
        figure = second.locator("figure[role=img]")
        assert figure.count() == 1
        assert f"The GPU under load, {words} after" in (figure.get_attribute("aria-label") or "")
        assert words in second.locator(".jp-OutputArea").inner_text()
        assert second.get_by_role("button", name="Stop").count() == 0
        assert second.locator('[data-mime-type="application/vnd.jupyter.stderr"]').count() == 0
    _run(page, third)
    _wait(page, third)
    assert "left: [], drained: True" in third.locator(".jp-OutputArea").inner_text()


def _run(page: "Page", cell: "Locator") -> None:
    """Run a cell, and leave the cursor in it."""
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")


def _wait(page: "Page", cell: "Locator") -> None:
    """Wait until a cell is done that is running, or that has not run before."""
    prompt = cell.locator(".jp-InputArea-prompt").first
    page.wait_for_function(
        "element => /[0-9]/.test(element.textContent)",
        arg=prompt.element_handle(),
        timeout=RUN_TIMEOUT_MS,
    )


def _frames(page: "Page", cell: "Locator") -> set[str]:
    """Collect three different pictures of a running cell."""
    seen: set[str] = set()
    image = cell.locator("figure[role=img] img")
    while len(seen) < 3:
        image.wait_for(timeout=RUN_TIMEOUT_MS)
        seen.add(image.get_attribute("src") or "")
        page.wait_for_timeout(100)
    return seen
