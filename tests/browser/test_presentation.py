"""Presenting a widget: it fills the window in large type, and all widgets are accessible."""

import string
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from gpulab.core import palette
from tests.support.jupyterlab import (
    Lab,
    axe_findings,
    needs_browser,
    put_notebook,
    run_all,
    set_theme,
    take_picture,
)

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = needs_browser

CELLS = [
    "import torch, gpulab\nfrom gpulab import animations, explorers\ngpulab.use('H200')",
    "explorers.crossover_explorer('matmul')",
    "explorers.roofline_explorer(operations=('add', 'exp'))",
    "x = torch.ones(1 << 20, device='cuda')\ngpulab.timeline(lambda: (x + x, x.sum()))",
    "explorers.machine_explorer()",
    "animations.show('queue')",
    "from gpulab import exercises\nexercises.predict('01.many-calls')",
    "exercises.predict('01.naive')",
    "exercises.ask('01.what-was-timed')",
    "exercises.ask('02.snippet-quiz')",
    "exercises.ask('11.overlap')",
    "from gpulab.exercises import lesson_04 as lab",
    "exercises.draw('How long?', ..., name='04.keys', axes=lab.TEN_CALLS)",
]
SIZES = ({"width": 1280, "height": 720}, {"width": 1920, "height": 1080})
# The picture of a presented widget fills the window, and nothing needs scrolling. The machine
# keeps the rest of the window for streams that a reader adds.
FILLS = """root => {
    const ends = [...root.querySelectorAll('*')].map(part => part.getBoundingClientRect().bottom);
    const stage = root.querySelector('.stage');
    const picture = stage.querySelector('svg').getBoundingClientRect();
    const isFull = Math.max(...ends) > 0.9 * innerHeight
        && picture.height > 0.9 * stage.clientHeight;
    return (isFull || root.matches('.gpulab-machine')) && root.scrollHeight <= innerHeight;
}"""
PRINTABLE = "".join(sign for sign in string.printable if sign.isprintable())
# The element of each widget that receives its keys; a film has no keys of its own.
WIDGETS = {
    ".explorer >> nth=0": ".plane",
    ".explorer >> nth=1": ".plane",
    ".gpulab-timeline": "svg.chart",
    ".gpulab-machine": "svg.chart",
}

# These have no picture to present: choices, a text, marks, words to choose from, and empty axes.
FORMS = {
    "form.guess >> nth=0": "button >> nth=1",
    "form.guess >> nth=1": "input",
    "form.answer >> nth=0": "input >> nth=2",
    "form.answer >> nth=1": "select >> nth=0",
    "form.answer >> nth=2": "input >> nth=1",
    ".sketch:visible": "[role=slider]",
}


@pytest.fixture(scope="module")
def shown(lab: Lab) -> Iterator["Locator"]:
    """Run a notebook with a widget of each kind, once for all tests of this file."""
    put_notebook(lab.address, "presented", CELLS)
    with lab.notebook("presented") as notebook:
        run_all(lab.page)
        notebook.locator(".explorer .plane").nth(1).wait_for()
        notebook.locator(".sketch:visible").wait_for()
        yield notebook


@pytest.mark.parametrize("widget", WIDGETS)
def test_one_key_presents_a_widget(widget: str, shown: "Locator", lab: Lab) -> None:
    """P fills the window in large type without controls, D changes the theme, Esc ends it."""
    page, root = lab.page, shown.locator(widget)
    stage = root.locator(WIDGETS[widget])
    stage.scroll_into_view_if_needed()
    before = size_of(root)
    stage.focus()
    page.keyboard.press("p")
    page.wait_for_function("document.querySelector('.gpulab-presents')", polling=100)
    box = root.bounding_box()
    assert box is not None
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 1280, 1000)
    assert size_of(root) > 1.3 * before
    assert not [each for each in root.locator(".gpulab-controls").all() if each.is_visible()]
    for size in SIZES:
        page.set_viewport_size(size)
        page.wait_for_function(FILLS, arg=root.element_handle(), polling=100)
        take_picture(page, f"presented_{list(WIDGETS).index(widget)}_{size['width']}")
    page.set_viewport_size({"width": 1280, "height": 1000})
    assert root.locator(".gpulab-exit").is_visible()
    assert paper_of(root) == palette.PAPER.light
    page.keyboard.press("d")
    assert paper_of(root) == palette.PAPER.dark
    page.keyboard.press("d")
    page.evaluate(
        "document.activeElement.blur()"
    )  # wherever the focus is, keys are not the page's
    page.keyboard.press("x")
    page.keyboard.press("Escape")
    page.wait_for_function("!document.querySelector('.gpulab-presents')", polling=100)
    assert stage.evaluate("stage => stage === document.activeElement")
    assert size_of(root) == before


@pytest.mark.parametrize("widget", [*WIDGETS, *FORMS])
def test_no_key_reaches_the_notebook(widget: str, shown: "Locator", lab: Lab) -> None:
    """Printable keys and Delete stay in a widget that has the focus; Ctrl + B is JupyterLab's."""
    page = lab.page
    stage = shown.locator(widget).locator((WIDGETS | FORMS)[widget])
    cells = shown.locator(".jp-Cell")
    before = cells.count(), cells.all_inner_texts()[0]
    # Some commands of JupyterLab are a key that is pressed twice.
    for keys in (PRINTABLE, "ddii00zz"):
        stage.focus()
        page.keyboard.type(keys)
        # 0 0 asks whether to restart the kernel.
        assert (cells.count(), page.locator(".jp-Dialog").count()) == (before[0], 0)
    for key in ("Delete", "Enter", "Escape"):
        stage.press(key)
    page.keyboard.press("Escape")
    assert (cells.count(), cells.all_inner_texts()[0]) == before
    stage.focus()
    side_bar = page.locator("#jp-left-stack")
    was_visible = side_bar.is_visible()
    page.keyboard.press("ControlOrMeta+b")
    side_bar.wait_for(state="hidden" if was_visible else "visible")
    page.keyboard.press("ControlOrMeta+b")


def size_of(root: "Locator") -> float:
    """Return the font size of a widget in pixels."""
    size: float = root.evaluate("root => parseFloat(getComputedStyle(root).fontSize)")
    return size


def paper_of(root: "Locator") -> str:
    """Return the background colour of a widget."""
    value: str = root.evaluate("root => getComputedStyle(root).backgroundColor")
    numbers = value.strip("rgba()").split(",")[:3]
    return "#" + "".join(f"{int(number):02x}" for number in numbers)


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_widgets_have_no_findings_of_axe(theme: str, shown: "Locator", lab: Lab) -> None:
    """axe-core finds no violation of WCAG in any widget, in both themes."""
    page = lab.page
    set_theme(page, theme)
    shown.locator(".gpulab").first.wait_for()
    assert axe_findings(page, ".gpulab", ".gpulab-figure") == []
