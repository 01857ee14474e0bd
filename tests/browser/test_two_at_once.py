"""Two forms of one question in a real JupyterLab, and a kernel that restarts between answers."""

from typing import TYPE_CHECKING

from tests.support.jupyterlab import Lab, needs_browser, put_notebook, run_all, run_cell

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = needs_browser

ASK = 'exercises.ask("01.what-was-timed")'
PREDICT = 'exercises.predict("How long is it?", ..., unit="µs", name="01.tried-twice")'
CELLS = ["from gpulab import exercises", ASK, ASK, PREDICT, PREDICT]
RESTART = """async () => {
    const panel = window.jupyterapp.shell.currentWidget;
    await panel.sessionContext.session.kernel.restart();
}"""


def answered(forms: "list[Locator]", text: str) -> None:
    """Wait until all of these forms say a text."""
    for form in forms:
        form.get_by_text(text).wait_for()


def test_the_later_answer_is_in_both_forms_and_outlives_the_kernel(lab: Lab) -> None:
    """Marks, verdict and guess are those given last; the first form is not left behind."""
    put_notebook(lab.address, "twice", CELLS)
    with lab.notebook("twice") as notebook:
        run_all(lab.page)
        cells = notebook.locator(".jp-CodeCell")
        one, two = (cells.nth(place).locator("form.answer") for place in (1, 2))
        guesses = [cells.nth(place).locator("form.guess") for place in (3, 4)]
        for form, letter in ((one, "c"), (two, "b"), (one, "a")):
            form.get_by_role("radio").first.focus()
            lab.page.keyboard.press(letter)
            lab.page.keyboard.press("Enter")
            answered([one, two], "Right." if letter == "b" else "Not yet.")
            for each in (one, two):
                each.locator(f"label:has(:checked) kbd:text-is('{letter}')").wait_for()
        for form, typed in zip(guesses, ("1 ms", "2 ms"), strict=True):
            form.get_by_role("textbox").fill(typed)
            lab.page.keyboard.press("Enter")
            answered(guesses, f"You say {typed[0]},000 µs.")
        lab.page.evaluate(RESTART)
        guesses[0].get_by_role("textbox").fill("3 ms")
        lab.page.keyboard.press("Enter")
        guesses[0].get_by_text("No answer from the kernel yet").wait_for()
        run_cell(cells.nth(0))
        run_cell(cells.nth(3))
        # A new form, with what the kernel had heard.
        guesses[0].get_by_text("You say 2,000 µs.").wait_for()
