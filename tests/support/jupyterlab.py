"""A real JupyterLab in a real browser, for the tests that use one."""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from gpulab.lessons import usable_port

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
RUN_TIMEOUT_MS = 180_000
# JupyterLab draws only the cells in view; the test wants to see them all
ALL_CELLS = {"windowingMode": "none"}
SETTINGS = "@jupyterlab/notebook-extension/tracker.jupyterlab-settings"

needs_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start `gpulab lab` in an empty folder, and return its address with the token."""
    with jupyter(tmp_path_factory.mktemp("learner")) as address:
        yield address


@contextmanager
def jupyter(folder: Path) -> Iterator[str]:
    """Start `gpulab lab` in a folder, and yield its address with the token."""
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


def put_notebook(lab: str, name: str, sources: Sequence[str]) -> str:
    """Put a notebook of these cells into the folder of JupyterLab, and return its address."""
    cells = [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "metadata": {},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }
        for number, source in enumerate(sources)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)"}}
    content = {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": cells}
    parts = urlsplit(lab)
    request = urllib.request.Request(
        f"{parts.scheme}://{parts.netloc}/api/contents/{name}.ipynb",
        data=json.dumps({"type": "notebook", "content": content}).encode(),
        headers={"Authorization": f"token {parse_qs(parts.query)['token'][0]}"},
        method="PUT",
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 201
    return lab.replace("/lab/tree/00_start_here", f"/lab/workspaces/{name}/tree/{name}")


@contextmanager
def chromium() -> Iterator["Page"]:
    """Open an empty page in headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1280, "height": 1000})
        browser.close()


def open_notebook(page: "Page", url: str) -> "Locator":
    """Open a notebook and wait until its cells are there."""
    page.goto(url)
    notebook = page.locator(".jp-NotebookPanel:visible .jp-Notebook")
    notebook.locator(".jp-CodeCell").first.wait_for(timeout=RUN_TIMEOUT_MS)
    return notebook


def run_all(page: "Page") -> None:
    """Run every cell from the menu, and wait until all have a number."""
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
