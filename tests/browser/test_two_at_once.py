"""Two forms of one question, or two pages of one notebook, and a kernel that restarts."""

from contextlib import closing
from typing import TYPE_CHECKING

from tests.support.jupyterlab import (
    ROOT,
    Lab,
    needs_browser,
    open_notebook,
    put_notebook,
    run_all,
    run_cell,
)

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = needs_browser

ASK = 'exercises.ask("01.what-was-timed")'
PREDICT = 'exercises.predict("How long is it?", ..., unit="µs", name="01.tried-twice")'
DRAW = 'exercises.draw("How long?", ..., name="09.tried-twice", axes=lab.MATMUL_TIMES)'
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
        for form in (one, guesses[0]):
            form.get_by_text(
                "The kernel has ended or begun anew. What you gave is kept"
            ).wait_for()
            assert form.locator("input, button").evaluate_all("all => all.every(e => e.disabled)")
        run_cell(cells.nth(0))
        run_cell(cells.nth(1))
        run_cell(cells.nth(3))
        # New forms, with what the kernel had heard.
        guesses[0].get_by_text("You say 2,000 µs.").wait_for()
        one.locator("label:has(:checked) kbd:text-is('a')").wait_for()


def test_two_pages_on_one_notebook(lab: Lab) -> None:
    """What is given in one page is seen in the other, and reload and restart lose nothing."""
    cells = [f"{CELLS[0]}\nfrom gpulab.exercises import lesson_09 as lab", ASK, PREDICT, DRAW]
    url = put_notebook(lab.address, "shared", cells)
    errors: list[str] = []
    # Other tests share the server.
    n_logged = len(lab.log.read_text())
    with lab.notebook("shared"), closing(lab.page.context.new_page()) as page:
        page.on("pageerror", lambda error: errors.append(str(error)))
        lab.page.bring_to_front()
        run_all(lab.page)
        lab.page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
        page.bring_to_front()
        open_notebook(page, url)
        one, two = (shown.locator(".jp-NotebookPanel:visible") for shown in (lab.page, page))
        two.locator("form.guess").wait_for()
        two.locator(".sketch:visible").wait_for()
        guess_in(one, "1 ms")
        two.locator("form.guess").get_by_text("You say 1,000 µs.").wait_for()
        two.page.bring_to_front()
        two.get_by_role("radio").nth(1).check()
        two.get_by_role("button", name="Check", exact=True).click()
        one.locator("form.answer").get_by_text("Right.").wait_for()
        for shown, n_points in ((two, 1), (one, 2)):
            shown.page.bring_to_front()  # a page in the background is not drawn
            shown.get_by_role("slider").focus()
            for key in ["ArrowRight"] * n_points + ["PageUp"]:
                shown.page.keyboard.press(key)
            for each in (one, two):
                each.page.bring_to_front()
                each.locator(".sketch:visible .points circle").nth(n_points - 1).wait_for()
        guess_in(two, "3 ms")
        one.locator("form.guess").get_by_text("You say 3,000 µs.").wait_for()
        page.bring_to_front()
        page.reload()
        two.locator("form.guess").get_by_text("You say 3,000 µs.").wait_for()
        two.locator("label:has(:checked) kbd:text-is('b')").wait_for()
        page.evaluate(RESTART)
        two.get_by_text("The kernel has ended or begun anew").first.wait_for()
        # JupyterLab does not tell the other page.
        guess_in(one, "4 ms")
        one.get_by_text("No answer from the kernel yet").wait_for()
        page.bring_to_front()
        run_all(page)
        two.locator("form.guess").get_by_text("You say 3,000 µs.").wait_for()
        two.locator("label:has(:checked) kbd:text-is('b')").wait_for()
        assert two.locator(".sketch:visible .points circle").count() == 2
    assert errors == []
    # A restart may leave a traceback of Jupyter's own server; none may come from our code.
    assert f'File "{ROOT / "gpulab"}' not in lab.log.read_text()[n_logged:]


def guess_in(shown: "Locator", typed: str) -> None:
    """Type a guess and answer with it."""
    shown.page.bring_to_front()
    shown.locator("form.guess").get_by_role("textbox").fill(typed)
    shown.page.keyboard.press("Enter")
