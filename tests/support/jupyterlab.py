"""A real JupyterLab in a real browser, for the tests that use one.

The only time limit is ``RUN_TIMEOUT_MS`` for one wait. It is so long that only a page that hangs
meets it; the whole test run has its own limit.
"""

import json
import os
import re
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
from tests.support.packages import STAND_INS
from tests.support.ports import PORTS

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
RUN_TIMEOUT_MS = 1_200_000  # a hundred times as long as the longest lesson takes
# On a busy machine Chromium stops drawing pages in the background, and then a wait for a change on
# the page never ends. Its GPU process is slow first, and nothing here needs it.
CHROMIUM_OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-renderer-backgrounding"),
    *("--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows"),
]
# JupyterLab draws only the cells in view; the tests need all of them.
ALL_CELLS = {"windowingMode": "none"}
SETTINGS = "@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
# Tests open and close notebooks in one page, with the commands of JupyterLab's menus. On a busy
# machine a kernel may need more than the minute that JupyterLab gives it to start.
CONFIGURATION = {
    "LabApp": {"expose_app_in_browser": True},
    "MappingKernelManager": {"kernel_info_timeout": 3600},
}
OPEN = """async path => {
    await window.jupyterapp.commands.execute('docmanager:open', {path, factory: 'Notebook'});
}"""
# A busy kernel does not answer a request to end, so interrupt it first.
CLOSE = """async () => {
    for (const panel of [...window.jupyterapp.shell.widgets('main')]) {
        const kernel = panel.sessionContext?.session?.kernel;
        if (kernel?.status === 'busy') await kernel.interrupt();
        await panel.sessionContext?.shutdown();
        panel.dispose();
    }
}"""
CHANGE_THEME = """async name => {
    await window.jupyterapp.commands.execute(
        'apputils:change-theme', { theme: `JupyterLab ${name}` });
}"""
# What a failed test reports: texts, the places of the sliders, and where a key would arrive.
STATE = """() => {
    const shown = '.jp-NotebookPanel:not(.lm-mod-hidden) .jp-OutputArea-output';
    const texts = [...document.querySelectorAll(shown)];
    const sliders = [...document.querySelectorAll('.widget-hslider')];
    return [
        ...texts.map(output => output.innerText),
        ...sliders.map(slider => `slider: ${slider.innerText}`),
        `focus: ${document.activeElement.outerHTML.slice(0, 300)}`,
    ].join('\\n');
}"""
ALL_HAVE_RUN = """() => {
    const cells = '.jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell';
    const prompts = [...document.querySelectorAll(`${cells} .jp-InputArea-prompt`)];
    const shown = prompts.map(prompt => prompt.textContent);
    return /[0-9]/.test(shown[0]) && !shown.some(text => text.includes('*'));
}"""

LIGHT_INK = re.compile(r"rgba?\((?:(?:15[1-9]|1[6-9]\d|2\d\d)(?:, |\))){3}")  # each part over 150
RUN_AXE = """async selectors => {
    const include = selectors.filter(one => document.querySelector(one)).map(one => [one]);
    const found = await axe.run({ include }, { resultTypes: ['violations'] });
    const said = one => one.nodes.map(node => node.html.slice(0, 200)).join(' ');
    return found.violations.map(one => `${one.id}: ${said(one)}`);
}"""
ERRORS = '.jp-NotebookPanel:visible [data-mime-type="application/vnd.jupyter.error"]'

needs_browser = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


@contextmanager
def jupyter(folder: Path, *, without: Sequence[str] = (), **environment: str) -> Iterator[str]:
    """Start `gpulab lab` in a folder, without some extensions, and yield its address."""
    settings, configuration = folder / "settings", folder / "configuration"
    (settings / SETTINGS).parent.mkdir(parents=True)
    (settings / SETTINGS).write_text(json.dumps(ALL_CELLS))
    configuration.mkdir()
    (configuration / "jupyter_lab_config.json").write_text(json.dumps(CONFIGURATION))
    (configuration / "labconfig").mkdir()
    page = {"disabledExtensions": dict.fromkeys(without, True)}
    (configuration / "labconfig" / "page_config.json").write_text(json.dumps(page))
    environment |= {
        "CUDA_VISIBLE_DEVICES": "",
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "JUPYTER_CONFIG_PATH": str(configuration),
        "PYTHONPATH": os.pathsep.join([STAND_INS, str(ROOT)]),
    }
    command = [sys.executable, "-u", "-m", "gpulab.cli", "lab", "--no-browser"]
    # Warnings of JupyterLab and its kernels would be mixed with what tests and benchmarks print.
    log = folder / "jupyterlab.log"
    with PORTS, log.open("w") as errors:
        server = subprocess.Popen(
            [*command, "--port", str(usable_port())],
            cwd=folder,
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        assert server.stdout is not None
        lines = iter(server.stdout.readline, "")
        found = (line.split()[1] for line in lines if line.startswith("JupyterLab: "))
        address = next(found, "")
        assert address, log.read_text()
    with server:
        yield address
        server.terminate()


def put_notebook(lab: str, name: str, sources: Sequence[str]) -> str:
    """Write a notebook with these cells into JupyterLab's folder, and return its address."""
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
    upload(lab, name, {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": cells})
    return lab.replace("/lab/tree/00_start_here", f"/lab/workspaces/{name}/tree/{name}")


def upload(lab: str, name: str, notebook: dict[str, object]) -> None:
    """Write a notebook into JupyterLab's folder."""
    parts = urlsplit(lab)
    request = urllib.request.Request(
        f"{parts.scheme}://{parts.netloc}/api/contents/{name}.ipynb",
        data=json.dumps({"type": "notebook", "content": notebook}).encode(),
        headers={"Authorization": f"token {parse_qs(parts.query)['token'][0]}"},
        method="PUT",
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.status in {200, 201}


@contextmanager
def chromium() -> Iterator["Page"]:
    """Open an empty page in headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Without a limit: the default of 30 s is too short for a busy machine.
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=CHROMIUM_OPTIONS, timeout=0
        )
        # With a context of its own, further pages can share its cache: JupyterLab is megabytes.
        context = browser.new_context(viewport={"width": 1280, "height": 1000})
        context.set_default_timeout(RUN_TIMEOUT_MS)
        page = context.new_page()
        yield page
        browser.close()


class Lab:
    """One JupyterLab in one page, in which notebooks are opened one after the other."""

    def __init__(self, address: str, page: "Page", log: Path) -> None:
        self.address, self.page, self.log = address, page, log
        page.goto(address.replace("/tree/00_start_here.ipynb", ""))
        page.wait_for_function("window.jupyterapp", polling=100)
        page.evaluate("window.jupyterapp.restored.then(() => {})")

    @contextmanager
    def notebook(self, name: str) -> Iterator["Locator"]:
        """Open a notebook with its own kernel; at the end close it and restore light colours."""
        self.page.evaluate(OPEN, f"{name}.ipynb")
        try:
            yield first_cell(self.page)
        finally:
            self._close()

    def _close(self) -> None:
        self.page.evaluate(CLOSE)
        if self.page.evaluate("document.body.dataset.jpThemeLight") == "false":
            set_theme(self.page, "Light")


def open_notebook(page: "Page", url: str) -> "Locator":
    """Open a notebook at its address and wait until its cells are there."""
    page.goto(url)
    return first_cell(page)


def first_cell(page: "Page") -> "Locator":
    """Return the notebook in view as soon as its cells are there."""
    notebook = page.locator(".jp-NotebookPanel:visible .jp-Notebook")
    notebook.locator(".jp-CodeCell").first.wait_for()
    return notebook


def run_all(page: "Page") -> None:
    """Run every cell from the menu, wait until all have run, and expect no error."""
    idle = page.get_by_text("Python 3 (ipykernel) | Idle")
    idle.wait_for()  # without a kernel the menu item does nothing
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(ALL_HAVE_RUN, polling=100)
    idle.wait_for()
    assert page.locator(ERRORS).all_inner_texts() == []


def run_cell(cell: "Locator") -> None:
    """Run one cell, and leave the cursor in it."""
    # Not by a click: an output above may still grow and move the cell away from the mouse.
    cell.get_by_role("textbox").first.focus()
    cell.page.keyboard.press("ControlOrMeta+Enter")


def set_theme(page: "Page", name: str) -> None:
    """Choose JupyterLab's theme Light or Dark, and wait until it is active."""
    page.evaluate(CHANGE_THEME, name)
    page.wait_for_function(
        "light => document.body.dataset.jpThemeLight === light",
        arg=str(name == "Light").lower(),
        polling=100,
    )


def wait_for_light_ink(text: "Locator", property_name: str = "color") -> None:
    """Wait until a text is light: a theme's style sheet may load after its name is set."""
    from playwright.sync_api import expect

    # expect() looks for the text again each time, because the page may replace it meanwhile.
    expect(text).to_have_css(property_name, LIGHT_INK, timeout=RUN_TIMEOUT_MS)


def axe_findings(page: "Page", *selectors: str) -> list[str]:
    """Return axe-core's findings in the parts of the page that exist."""
    axe = pytest.importorskip("axe_playwright_python")
    # JupyterLab's body has no height, and axe takes all that is below a clipped body for hidden:
    # it would not look at the contrast of a single text.
    page.add_style_tag(content="body { height: 100vh }")
    page.evaluate(Path(axe.__file__).with_name("axe.min.js").read_text("utf-8"))
    found: list[str] = page.evaluate(RUN_AXE, selectors)
    return found


def take_picture(page: "Page", name: str) -> None:
    """Save a screenshot for a person to look at, if GPULAB_SCREENSHOTS names a folder."""
    if folder := os.environ.get("GPULAB_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")
