"""A saved notebook that Jupyter does not trust shows words; its exported page is alive."""

import json
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.jupyterlab import (
    Lab,
    axe_findings,
    needs_browser,
    put_notebook,
    run_all,
    upload,
)

pytestmark = needs_browser

DRAW = "exercises.draw('How long?', ..., name='04.saved', axes=TEN_CALLS)"
CELLS = [
    "import gpulab\nfrom gpulab import exercises, explorers\ngpulab.use('H200')",
    "exercises.predict('01.naive')",
    "exercises.ask('01.what-was-timed')",
    "explorers.crossover_explorer('matmul')",
    "explorers.roofline_explorer(operations=('add', 'exp'))",
    "explorers.machine_explorer()",
    "import torch\nx = torch.ones(1 << 20, device='cuda')\ngpulab.timeline(lambda: x + x)",
    "from gpulab.exercises.lesson_04 import TEN_CALLS\n" + DRAW,
]
WORDS = [
    'in place of the three dots in exercises.predict("01.naive", ...)',
    'in place of the dots: exercises.check("01.what-was-timed", ...)',
    "matmul float32: n = 178 [175, 180]",
    "14 points of 2 operations",
    "The machine in words",
    "cuda:0: busy",
    "How long? Draw it on the axes",
]
# What is alive in a page, and the part of it that takes keys.
ALIVE = {
    ".explorer >> nth=0": ".plane",
    ".explorer >> nth=1": ".plane",
    ".gpulab-timeline": "svg.chart",
    ".sketch": "[role=slider]",
}


@pytest.fixture(scope="module")
def saved(lab: Lab) -> dict[str, Any]:
    """Return a notebook with a form, an explorer and a machine, as JupyterLab saves it."""
    put_notebook(lab.address, "saved", CELLS)
    with lab.notebook("saved") as notebook:
        run_all(lab.page)
        notebook.locator("form.answer").wait_for()
        notebook.locator(".gpulab-machine").wait_for()
        notebook.locator(".sketch:visible").wait_for()
        lab.page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    parts = urlsplit(lab.address)
    request = urllib.request.Request(
        f"{parts.scheme}://{parts.netloc}/api/contents/saved.ipynb",
        headers={"Authorization": f"token {parse_qs(parts.query)['token'][0]}"},
    )
    with urllib.request.urlopen(request) as answer:
        content: dict[str, Any] = json.load(answer)["content"]
    return content


def test_an_untrusted_notebook_shows_words(saved: dict[str, Any], lab: Lab) -> None:
    """Without scripts and without a kernel, each form and explorer says what it would show."""
    # Jupyter trusts what it has saved itself: other code has no signature.
    cells = [{**cell, "metadata": {}} for cell in saved["cells"]]
    cells[0] |= {"source": "# from somebody else"}
    upload(lab.address, "theirs", {**saved, "cells": cells})
    with lab.notebook("theirs") as notebook:
        for number, words in enumerate(WORDS, start=1):
            notebook.locator(".jp-CodeCell").nth(number).get_by_text(words).first.wait_for()
        assert notebook.locator("form, .explorer, svg.chart").count() == 0


# nbconvert has no words for a widget; they are in the output beside it.
@pytest.mark.filterwarnings("ignore:Your element with mimetype")
def test_an_exported_page_is_alive(saved: dict[str, Any], lab: Lab, tmp_path: Path) -> None:
    """From a file, without kernel and server, pictures answer to keys, and forms are words."""
    import nbformat
    from nbconvert import HTMLExporter

    exporter: Any = HTMLExporter  # neither has types
    read: Any = nbformat.from_dict
    page, _ = exporter().from_notebook_node(read(saved))
    for words in WORDS:
        assert words.replace('"', "&quot;") in page or words in page
    path = tmp_path / "exported.html"
    path.write_text(page, "utf-8")
    opened = lab.page.context.new_page()
    opened.goto(path.as_uri())
    for root, stage in ALIVE.items():
        told = opened.locator(root).locator(".told")
        before = told.inner_text()
        opened.locator(root).locator(stage).focus()
        opened.keyboard.press("ArrowRight")
        opened.wait_for_function(
            "([told, before]) => told.innerText !== before",
            arg=[told.element_handle(), before],
            polling=100,
        )
    assert opened.locator("form.asked").count() == 0
    assert axe_findings(opened, ".gpulab") == []
    opened.close()
