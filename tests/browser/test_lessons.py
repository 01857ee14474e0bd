"""Lessons in a real JupyterLab and a real browser, with all cells run.

Every lesson runs in a kernel elsewhere (``tests/lessons``). Here are those whose cells use the
learner's answers and must also run without them.
"""

import os
from typing import TYPE_CHECKING

import pytest

from gpulab.lessons import _build as build
from tests.support.jupyterlab import Lab, needs_browser, run_all, take_picture, upload
from tests.support.lessons import USING_ANSWERS, checked, source_of

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = needs_browser


@pytest.mark.parametrize("lesson", USING_ANSWERS)
def test_lesson_in_the_browser(lesson: str, lab: Lab) -> None:
    """All cells of a shipped lesson run without an error, and figures have a text alternative."""
    import nbformat

    notebook = nbformat.reads(build.build(source_of(lesson)).decode(), as_version=4)
    upload(lab.address, lesson, checked(notebook, "not tried"))
    with lab.notebook(lesson) as shown:
        run_all(lab.page)
        _take_pictures(lab.page, shown, lesson)
        _assert_clean(shown)


def _assert_clean(notebook: "Locator") -> None:
    """Expect that each cell ran without writing to stderr, and that all figures are drawn."""
    complaints = notebook.locator('[data-mime-type="application/vnd.jupyter.stderr"]')
    # On a slow machine a progress bar appears; it erases itself and leaves spaces on stderr.
    assert [text for text in complaints.all_inner_texts() if text.strip()] == []
    prompts = notebook.locator(".jp-CodeCell .jp-InputArea-prompt").all_inner_texts()
    assert [text.strip() for text in prompts] == [f"[{n + 1}]:" for n in range(len(prompts))]
    figures = notebook.locator(".jp-OutputArea figure.gpulab-figure").all()
    assert figures
    for figure in figures:
        assert (figure.locator("img").get_attribute("alt") or "").strip()
        assert _is_drawn(figure)


def _is_drawn(figure: "Locator") -> bool:
    """Return whether the figure has an SVG or an image that the browser decoded."""
    if figure.locator("svg").count():
        return True
    return bool(figure.locator("img").evaluate("image => image.complete && image.naturalWidth"))


def _take_pictures(page: "Page", notebook: "Locator", lesson: str) -> None:
    """Save screenshots of the whole notebook if ``GPULAB_SCREENSHOTS`` is set."""
    if "GPULAB_SCREENSHOTS" not in os.environ:  # they take as long as the lesson itself
        return
    scroller = notebook.locator(".jp-WindowedPanel-outer").first
    height, step = scroller.evaluate("panel => [panel.scrollHeight, panel.clientHeight]")
    for number, top in enumerate(range(0, height, step)):
        scroller.evaluate("(panel, top) => panel.scrollTo(0, top)", top)
        take_picture(page, f"{lesson}_{number:02d}")
