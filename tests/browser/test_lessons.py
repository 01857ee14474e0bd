"""The lessons as a learner sees them: a real JupyterLab in a real browser, all cells run."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.jupyterlab import ROOT, chromium, lab, needs_browser, open_notebook, run_all

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

__all__ = ["lab"]

LESSONS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))

pytestmark = needs_browser


@pytest.fixture
def page() -> Iterator["Page"]:
    """Open a page for one test."""
    with chromium() as opened:
        yield opened


@pytest.mark.parametrize("lesson", LESSONS)
def test_lesson_in_the_browser(lesson: str, lab: str, page: "Page", tmp_path: Path) -> None:
    """All cells run without an error, and every figure is drawn and has words for it."""
    # a workspace of its own, else JupyterLab brings back the notebooks of the test before
    url = lab.replace("/lab/tree/00_start_here", f"/lab/workspaces/{lesson}/tree/{lesson}")
    notebook = open_notebook(page, url)
    run_all(page)
    _take_pictures(page, notebook, lesson, Path(os.environ.get("GPULAB_SCREENSHOTS", tmp_path)))
    errors = notebook.locator('[data-mime-type="application/vnd.jupyter.error"]')
    assert errors.all_inner_texts() == []
    complaints = notebook.locator('[data-mime-type="application/vnd.jupyter.stderr"]')
    assert complaints.all_inner_texts() == []
    prompts = notebook.locator(".jp-CodeCell .jp-InputArea-prompt").all_inner_texts()
    assert [text.strip() for text in prompts] == [f"[{n + 1}]:" for n in range(len(prompts))]
    figures = notebook.locator(".jp-OutputArea figure[role=img]").all()
    assert figures
    for figure in figures:
        assert (figure.get_attribute("aria-label") or "").strip()
        assert _is_drawn(figure)


def _is_drawn(figure: "Locator") -> bool:
    """Return whether the figure has an SVG, or an image that the browser could decode."""
    if figure.locator("svg").count():
        return True
    return bool(figure.locator("img").evaluate("image => image.complete && image.naturalWidth"))


def _take_pictures(page: "Page", notebook: "Locator", lesson: str, folder: Path) -> None:
    """Save a screenshot of every part of the notebook, from top to bottom."""
    folder.mkdir(parents=True, exist_ok=True)
    scroller = notebook.locator(".jp-WindowedPanel-outer").first
    height, step = scroller.evaluate("panel => [panel.scrollHeight, panel.clientHeight]")
    for number, top in enumerate(range(0, height, step)):
        scroller.evaluate("(panel, top) => panel.scrollTo(0, top)", top)
        page.wait_for_timeout(200)
        page.screenshot(path=folder / f"{lesson}_{number:02d}.png")
