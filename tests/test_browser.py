"""The lessons as a learner sees them: a real JupyterLab in a real browser, all cells run."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpulab.lessons import usable_port

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium")
RUN_TIMEOUT_MS = 180_000
# JupyterLab draws only the cells in view; the test wants to see them all
ALL_CELLS = {"windowingMode": "none"}
SETTINGS = "@jupyterlab/notebook-extension/tracker.jupyterlab-settings"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start `gpulab lab` in an empty folder, and return its address with the token."""
    folder = tmp_path_factory.mktemp("learner")
    settings = folder / "settings"
    (settings / SETTINGS).parent.mkdir(parents=True)
    (settings / SETTINGS).write_text(json.dumps(ALL_CELLS))
    environment = os.environ | {
        "CUDA_VISIBLE_DEVICES": "",
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-u", "-m", "gpulab.cli", "lab", "--no-browser"]
    with subprocess.Popen(
        [*command, "--port", str(usable_port())],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        lines = iter(server.stdout.readline, "")
        yield next(line.split()[1] for line in lines if line.startswith("JupyterLab: "))
        server.terminate()


@pytest.fixture
def page() -> Iterator["Page"]:
    """Open an empty page in headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1280, "height": 1000})
        browser.close()


@pytest.mark.parametrize("lesson", ["01_naive_timing", "03_events"])
def test_lesson_in_the_browser(lesson: str, lab: str, page: "Page", tmp_path: Path) -> None:
    """All cells run without an error, and every figure is drawn and has words for it."""
    # a workspace of its own, else JupyterLab brings back the notebooks of the test before
    url = lab.replace("/lab/tree/00_start_here", f"/lab/workspaces/{lesson}/tree/{lesson}")
    notebook = _open(page, url)
    _run_all(page)
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


def _open(page: "Page", url: str) -> "Locator":
    page.goto(url)
    notebook = page.locator(".jp-NotebookPanel:visible .jp-Notebook")
    notebook.locator(".jp-CodeCell").first.wait_for(timeout=RUN_TIMEOUT_MS)
    return notebook


def _run_all(page: "Page") -> None:
    idle = page.get_by_text("Python 3 (ipykernel) | Idle")
    idle.wait_for(timeout=RUN_TIMEOUT_MS)  # before the kernel is there, running does nothing
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(
        """() => {
            const cells = '.jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell';
            const prompts = [...document.querySelectorAll(`${cells} .jp-InputArea-prompt`)];
            const shown = prompts.map(prompt => prompt.textContent);
            return /[0-9]/.test(shown[0]) && !shown.some(text => text.includes('*'));
        }""",
        timeout=RUN_TIMEOUT_MS,
    )
    idle.wait_for()


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
