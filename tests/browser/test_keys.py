"""No key that is pressed in a widget or a form reaches the notebook, where D D deletes a cell."""

import string
from typing import TYPE_CHECKING

from tests.support.jupyterlab import Lab, needs_browser, put_notebook, run_all

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = needs_browser

CELLS = [
    """\
import gpulab, torch
from gpulab import exercises, explorers
from gpulab.exercises import lesson_09 as lab
gpulab.use("H200")
x = torch.ones(64, device="cuda")""",
    'exercises.draw("How long?", ..., name="09.keys-are-kept", axes=lab.MATMUL_TIMES)',
    'exercises.predict("How long?", ..., unit="s", name="09.keys-are-kept-too")',
    'exercises.predict("Which?", ..., choices=("yes", "no"), name="09.keys-choose")',
    'exercises.ask("01.what-was-timed")',
    'exercises.ask("02.who-blocks")',
    "explorers.crossover_explorer()",
    "explorers.roofline_explorer()",
    "explorers.machine_explorer()",
    "gpulab.timeline(lambda: x + x)",
]
PARTS = [
    ".sketch:visible [role=slider]",
    ".sketch:visible button",
    "form.guess input",
    "form.guess button",
    "form.answer input",
    "form.answer select",
    *(f".crossover {part}" for part in (".slider", ".plane", "select", "button", "[name=rate]")),
    ".roofline .plane",
    ".roofline button",
    ".gpulab-machine svg.chart",
    ".gpulab-machine button",
    ".gpulab-timeline [tabindex]",
    ".gpulab-timeline button",
]
# P presents a widget; test_presentation.py presses the keys there. A key that deletes a cell is
# pressed twice.
KEYS = [*(set(string.printable.strip()) - {"p", "P"}), "Delete", "Backspace", *"dd"]
CELLS_NOW = """() => window.jupyterapp.shell.currentWidget.content.widgets.map(
    cell => `${cell.model.type} ${cell.model.sharedModel.source}`)"""


def test_no_key_reaches_the_notebook(lab: Lab) -> None:
    """Every printable key and Delete, in each part of each widget, leave the cells as they are."""
    put_notebook(lab.address, "keys", CELLS)
    with lab.notebook("keys") as notebook:
        run_all(lab.page)
        before = _cells(lab.page)
        assert len(before) == len(CELLS)
        for part in PARTS:
            element = notebook.locator(part).first
            element.wait_for()
            for key in KEYS:
                element.focus()
                lab.page.keyboard.press(key)
                assert _cells(lab.page) == before, (part, key)


def _cells(page: "Page") -> list[str]:
    cells: list[str] = page.evaluate(CELLS_NOW)
    return cells
