"""The form of a guess in a real JupyterLab: typed, chosen, kept, and compared in a later cell."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.jupyterlab import (
    Lab,
    axe_findings,
    needs_browser,
    put_notebook,
    run_all,
    run_cell,
    take_picture,
)

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = needs_browser

CELLS = [
    "from gpulab import exercises",
    'long = exercises.predict("How long is it?", ..., unit="µs", name="01.tried-long")\nlong',
    "long.compare(5.2e-3)",
    (
        'which = exercises.predict("Which is it?", ..., choices=("naive", "events", "graph"),'
        ' name="01.tried-which")\nwhich'
    ),
    'which.compare("events")',
    'never = exercises.predict("Never?", ..., unit="times", name="01.tried-never")\nnever',
    "never.compare(2)",
]
N_CELLS = "document.querySelectorAll('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell').length"


@pytest.fixture(scope="module")
def shown(lab: Lab) -> Iterator["Locator"]:
    """Open a notebook with questions, and run those of the first two."""
    put_notebook(lab.address, "guesses", CELLS)
    with lab.notebook("guesses") as notebook:
        lab.page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
        for number in (0, 1, 3):
            run_cell(notebook.locator(".jp-CodeCell").nth(number))
        notebook.locator("form.guess").nth(1).wait_for()
        yield notebook


def test_a_typed_guess_is_compared_in_a_later_cell(shown: "Locator", lab: Lab) -> None:
    """A text that is no number gets a sentence; "5 ms" counts, and a cell run again keeps it."""
    page, form = lab.page, shown.locator("form.guess").first
    cells = shown.locator(".jp-CodeCell")
    form.get_by_role("textbox").fill("many")
    page.keyboard.press("Enter")
    form.get_by_text("'many' isn't a number; give a number in µs.").wait_for()
    form.get_by_role("textbox").fill("5 ms")
    page.keyboard.press("Enter")
    form.get_by_role("button", name="likely").click()
    form.get_by_text("You say 5,000 µs (likely). Now see what comes out.").wait_for()
    run_cell(cells.nth(2))
    cells.nth(2).get_by_text("You said 5,000 µs, it was 5.20 ms").wait_for()
    run_cell(cells.nth(1))
    again = cells.nth(1).locator("form.guess")
    again.get_by_text("You say 5,000 µs (likely).").wait_for()
    assert again.get_by_role("textbox").input_value() == "5000"


def test_a_digit_chooses_and_enter_answers(shown: "Locator", lab: Lab) -> None:
    """Choices are buttons, for keys too, and no key of the form reaches the notebook."""
    page, form = lab.page, shown.locator("form.guess").nth(1)
    n_cells = page.evaluate(N_CELLS)
    form.get_by_role("button", name="naive").focus()
    for key in "xdbac0":
        page.keyboard.press(key)
    page.keyboard.press("2")
    # What a digit chooses is marked at once, and does not look answered.
    assert form.locator("[data-chosen]").all_inner_texts() == ["2events"]
    assert form.locator(".answers [aria-pressed=true]").count() == 0
    form.get_by_text('Enter answers with "events".').wait_for()
    page.keyboard.press("Enter")
    form.get_by_text("You say events.").wait_for()
    assert form.get_by_role("button", name="events").get_attribute("aria-pressed") == "true"
    assert page.evaluate(N_CELLS) == n_cells
    cell = shown.locator(".jp-CodeCell").nth(4)
    run_cell(cell)
    cell.get_by_text("You said events, and so it is.").wait_for()
    form.scroll_into_view_if_needed()
    take_picture(page, "guesses")


def test_forms_have_no_findings_of_axe(shown: "Locator", page: "Page") -> None:
    """axe-core finds no violation of WCAG in the forms."""
    shown.locator("form.guess").first.wait_for()
    assert axe_findings(page, "form.guess") == []


def test_a_run_of_all_cells_needs_no_guess(shown: "Locator", page: "Page") -> None:
    """A question without an answer says the outcome, and a guess after it is marked as late."""
    run_all(page)
    shown.get_by_text("It was 2 times.").wait_for()
    form = shown.locator("form.guess").last
    form.get_by_role("textbox").fill("1/2")
    page.keyboard.press("Enter")
    form.get_by_text("You say 0.5 times. The outcome was shown before this guess").wait_for()


@pytest.fixture
def page(lab: Lab) -> "Page":
    """Return the page that contains the notebook."""
    return lab.page
