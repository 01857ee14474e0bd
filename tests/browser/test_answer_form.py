"""The forms of exercises in a real JupyterLab: marked, chosen, typed, and judged."""

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
    from playwright.sync_api import Locator

pytestmark = needs_browser

CELLS = [
    "from gpulab import exercises",
    'exercises.ask("01.what-was-timed")',
    'exercises.ask("01.hidden-sync")',
    'exercises.ask("02.who-blocks")',
    'exercises.ask("11.overlap")',
    'exercises.continue_from("02.benchmark")  # run it, then change it',
]


@pytest.fixture(scope="module")
def shown(lab: Lab) -> Iterator["Locator"]:
    """Run a notebook with a form of each kind."""
    put_notebook(lab.address, "answers", CELLS)
    with lab.notebook("answers") as notebook:
        run_all(lab.page)
        notebook.locator("form.answer").nth(3).wait_for()
        yield notebook


def test_letters_and_digits_mark_and_enter_checks(shown: "Locator", lab: Lab) -> None:
    """One of the choices is marked, the verdict is below, and a new run keeps the mark."""
    keyboard, cell = lab.page.keyboard, shown.locator(".jp-CodeCell").nth(1)
    form = cell.locator("form.answer")
    marked = form.locator("label:has(:checked) kbd")
    form.get_by_role("radio").first.focus()
    keyboard.press("Enter")
    form.get_by_text("Nothing is marked yet.").wait_for()
    keyboard.press("3")
    assert marked.all_inner_texts() == ["c"]
    keyboard.press("b")
    assert marked.all_inner_texts() == ["b"]
    keyboard.press("Enter")
    form.get_by_text("Right.").wait_for()
    form.get_by_role("button", name="Hint").click()
    form.get_by_text("Hint 1 of 2.").wait_for()
    run_cell(cell)
    form.get_by_text("Hint 1 of 2.").wait_for(state="detached")
    form.wait_for()
    assert marked.all_inner_texts() == ["b"]
    # The words for a page without a kernel are in the notebook, and not shown beside the form.
    words = cell.get_by_text("Your answer goes in place of the dots")
    words.wait_for(state="attached")
    assert not words.is_visible()


def test_several_are_marked_in_a_set(shown: "Locator", lab: Lab) -> None:
    """A key marks a line, and takes the mark away again."""
    form = shown.locator("form.answer").nth(1)
    form.get_by_role("checkbox").first.focus()
    for key in "abceb7f":  # 7 is g
        lab.page.keyboard.press(key)
    form.get_by_role("button", name="Hint").click()  # it leaves the marks
    form.get_by_text("Hint 1 of 2.").wait_for()
    form.get_by_role("checkbox").first.focus()
    assert form.locator("label:has(:checked) kbd").all_inner_texts() == list("acefg")
    lab.page.keyboard.press("Enter")
    form.get_by_text("Right.").wait_for()
    take_picture(lab.page, "answers")


def test_a_table_and_numbers_are_filled_in(shown: "Locator", lab: Lab) -> None:
    """A row without a word is named; a text that is no number gets a sentence."""
    form = shown.locator("form.answer").nth(2)
    for row, box in enumerate(form.get_by_role("combobox").all()):
        box.select_option("host" if row < 3 else "")
    form.get_by_role("button", name="Check").click()
    form.get_by_text("no answer yet for stream.wait_event, stream.wait_stream.").wait_for()
    for box in form.get_by_role("combobox").all()[3:]:
        box.focus()
        lab.page.keyboard.press("g")
    lab.page.keyboard.press("Enter")
    form.get_by_text("Right.").wait_for()
    form = shown.locator("form.answer").nth(3)
    form.get_by_role("textbox", name="overlap_us").fill("35")
    form.get_by_role("textbox", name="saved_us").fill("many")
    lab.page.keyboard.press("Enter")
    form.get_by_text("'many' isn't a number.").wait_for()
    form.get_by_role("textbox", name="saved_us").fill("35.0")
    lab.page.keyboard.press("Enter")
    form.get_by_text("Right.").wait_for()


def test_a_benchmark_is_put_into_its_cell(shown: "Locator") -> None:
    """The cell has the code in place of the call, and the output says where it is from."""
    cell = shown.locator(".jp-CodeCell").nth(5)
    cell.get_by_text("This one solves 01.benchmark").wait_for()
    code = cell.get_by_role("textbox").first.inner_text()
    assert "def benchmark(fn" in code
    assert code.rstrip().endswith('exercises.check("02.benchmark", benchmark)')
    assert "continue_from" not in code


def test_forms_have_no_findings_of_axe(shown: "Locator", lab: Lab) -> None:
    """axe-core finds no violation of WCAG in the forms."""
    shown.locator("form.answer").first.wait_for()
    assert axe_findings(lab.page, "form.answer") == []
