"""The explorers in a real JupyterLab, used with mouse, keys, and a kernel that measures."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpulab.views.explorers import crossover_explorer, roofline_explorer
from tests.browser.test_sketch import NO_KERNEL, SHUT_DOWN
from tests.support.jupyterlab import (
    Lab,
    first_cell,
    needs_browser,
    put_notebook,
    run_all,
    set_theme,
    take_picture,
    wait_for_light_ink,
)

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = needs_browser

CELLS = [
    """\
import gpulab
from gpulab.views.explorers import crossover_explorer, roofline_explorer
from gpulab.workloads import workload
gpulab.use("H200")
# So many sizes that Stop comes long before the last one.
object.__setattr__(workload("matmul"), "sizes", (64, 128, *range(256, 384), 8192))""",
    """\
crossed = crossover_explorer("matmul", transfers="both", link="PCIe 3")
crossed""",
    """roofline_explorer()""",
]
# Six steps measure both sides at the smallest sizes.
STOP_AFTER_SIX = """root => {
    if (!(parseInt(root.querySelector('[role=status]').textContent) > 6)) return false;
    [...root.querySelectorAll('button')].find(one => one.innerText === 'Stop').click();
    return true;
}"""


@pytest.fixture(scope="module")
def shown(lab: Lab) -> Iterator["Locator"]:
    """Run a notebook with both explorers, once for all tests of this file."""
    put_notebook(lab.address, "explorers", CELLS)
    with lab.notebook("explorers") as notebook:
        run_all(lab.page)
        notebook.locator(".explorer .curve, .explorer .roof").nth(1).wait_for()
        yield notebook


@pytest.fixture
def page(lab: Lab) -> "Page":
    """Return the page that contains the notebook."""
    return lab.page


def test_a_link_moves_the_crossing(shown: "Locator", page: "Page") -> None:
    """The title has the crossing, and a sentence says how another link moves it."""
    crossover = shown.locator(".explorer.crossover")
    title = "matmul in float32: from n = 678 the H200 beats the CPU, copies in and out included."
    assert crossover.locator("h2").inner_text().replace("\xa0", " ") == title
    crossover.locator("input[name=link][value='PCIe 5']").check(force=True)
    crossover.get_by_text(
        "With PCIe 5 in place of PCIe 3 the crossing falls from n = 678 to 256."
    ).wait_for()
    crossover.scroll_into_view_if_needed()
    take_picture(page, "explorer_crossover")


def test_the_handle_moves_by_mouse_and_keys(shown: "Locator", page: "Page") -> None:
    """Dragging the handle and pressing its keys change the size and the times at it."""
    crossover = shown.locator(".explorer.crossover")
    handle = crossover.get_by_role("slider", name="Size n")
    handle.focus()
    page.keyboard.press("End")
    page.keyboard.press("PageDown")
    assert handle.get_attribute("aria-valuenow") == "5120"
    chip = crossover.locator(".chip")
    box = chip.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] - 200, box["y"] + 10, steps=4)
    page.mouse.up()
    size = int(handle.get_attribute("aria-valuenow") or 0)
    assert size < 2048
    assert (
        crossover.locator(".detail").inner_text().startswith(f"At n = {size:,}: CPU, 16 threads ")
    )


def test_python_and_page_have_one_state(shown: "Locator", page: "Page") -> None:
    """The kernel knows what was chosen on the page, and the page follows what code chooses."""
    crossover = shown.locator(".explorer.crossover")
    crossover.locator("select[name=workload]").select_option("softmax")
    crossover.get_by_text("softmax in float32").wait_for()
    run_code(shown, page, "print(crossed.state.workload, 'in Python')")
    shown.get_by_text("softmax in Python").wait_for()
    run_code(shown, page, "crossed.choose(workload='matmul', gpu='computed:T4')")
    crossover.locator("h2", has_text="the CPU beats the T4").wait_for()
    crossover.locator("select[name=gpu]").select_option("computed:L4")
    crossover.locator("h2", has_text="the L4").wait_for()


def run_code(shown: "Locator", page: "Page", code: str) -> None:
    """Run code in the first cell."""
    cell = shown.locator(".jp-CodeCell").first
    cell.get_by_role("textbox").first.focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(code)
    page.keyboard.press("ControlOrMeta+Enter")


def test_measure_here_adds_points(shown: "Locator", page: "Page") -> None:
    """Measuring shows progress, Stop ends it, and the points can be chosen as curves."""
    crossover = shown.locator(".explorer.crossover")
    crossover.get_by_role("button", name="Measure here").click()
    page.wait_for_function(STOP_AFTER_SIX, arg=crossover.element_handle(), polling=100)
    crossover.get_by_text("press again for the rest.").wait_for()
    assert crossover.locator(".own").count() >= 4
    crossover.locator("select[name=gpu]").select_option("here")
    crossover.locator("select[name=cpu]").select_option("here")
    crossover.locator(".note", has_text="CPU measured, H200 virtual").wait_for()
    take_picture(page, "explorer_measured")


def test_keys_reach_every_point(shown: "Locator", page: "Page") -> None:
    """Arrow keys say each point."""
    roofline = shown.locator(".explorer.roofline")
    n_points = roofline.locator(".measured").count()
    said = set()
    roofline.locator(".plane").focus()
    for key in ["ArrowRight", "ArrowDown"] * (2 * n_points):
        page.keyboard.press(key)
        said.add(roofline.get_by_role("status").inner_text())
    assert all("measured" in sentence for sentence in said)


def test_the_legend_filters(shown: "Locator", page: "Page") -> None:
    """A family's name shows all of its operations; a model and a second GPU are said once."""
    roofline = shown.locator(".explorer.roofline")
    roofline.get_by_role("button", name="rows", exact=True).click()
    roofline.get_by_text("5 operations shown").wait_for()
    roofline.locator("input[name=model][value=refined]").check(force=True)
    roofline.get_by_text("From the plain to the refined model").wait_for()
    second = roofline.locator("select[name=beside]")
    second.select_option(second.locator("option").nth(2).get_attribute("value"))
    said = roofline.get_by_text("(hollow signs)")
    said.first.wait_for()
    assert said.count() == 1
    second.select_option("")
    roofline.scroll_into_view_if_needed()
    take_picture(page, "explorer_roofline")


def test_files_and_code(shown: "Locator", page: "Page") -> None:
    """The picture and the numbers can be saved, and Share shows a line of Python."""
    roofline = shown.locator(".explorer.roofline")
    for name, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("CSV", b"operation,")):
        with page.expect_download() as download:
            roofline.get_by_role("button", name=name).click()
        assert download.value.path().read_bytes().startswith(start)
    roofline.get_by_role("button", name="Share").click()
    line = roofline.get_by_label("This view as code").input_value()
    assert line.startswith("gpulab.explorers.roofline_explorer(model='refined', operations=(")
    roofline.locator("summary").click()
    roofline.locator("td", has_text="softmax").first.wait_for()
    roofline.locator("summary").click()


def test_controls_and_picture_fit(page: "Page", tmp_path: Path) -> None:
    """From a file, without a kernel, everything is in view, and nothing is wider than the page."""
    explorers = (crossover_explorer("matmul"), roofline_explorer())
    html = "".join(explorer._shown()["text/html"] for explorer in explorers)
    file = tmp_path / "page.html"
    file.write_text(f'<!doctype html><meta charset="utf-8">{html}', "utf-8")
    other = page.context.new_page()
    errors: list[str] = []
    other.on("pageerror", lambda error: errors.append(str(error)))
    for width, height in ((1366, 768), (600, 900)):
        other.set_viewport_size({"width": width, "height": height})
        other.goto(file.as_uri())
        assert other.locator(".explorer .plane").count() == 2
        clips = other.locator("clipPath").evaluate_all("all => all.map(one => one.id)")
        assert len(set(clips)) == 2  # with one id, the second picture would be cut like the first
        assert other.get_by_role("button", name="Measure here").first.is_disabled()
        assert other.evaluate("document.documentElement.scrollWidth") <= width
        for parts in other.locator(".parts").all() if width > 1000 else ():
            assert (parts.bounding_box() or {})["height"] <= 650
            for form in parts.locator("form").all():
                assert form.evaluate("form => form.scrollHeight <= form.clientHeight + 1")
        other.locator("select[name=workload]").select_option("add")
        other.get_by_text("add in float32: ").first.wait_for()
        take_picture(other, f"explorers_{width}")
    other.close()
    assert errors == []


def test_explorers_in_the_dark(shown: "Locator", page: "Page") -> None:
    """In JupyterLab's dark theme the text is light."""
    set_theme(page, "Dark")
    crossover = shown.locator(".explorer.crossover")
    crossover.scroll_into_view_if_needed()
    wait_for_light_ink(crossover.locator("h2"))
    take_picture(page, "explorer_dark")


@pytest.mark.usefixtures("shown")
def test_a_saved_explorer_is_alive_without_a_kernel(page: "Page") -> None:
    """Opened again without a kernel, it draws, follows its choices, and says what needs one."""
    page.evaluate(SHUT_DOWN)
    page.evaluate(NO_KERNEL, "explorers.ipynb")
    crossover = first_cell(page).locator(".explorer.crossover")
    # The bytes of other operations are not here, so no link can be reckoned for them.
    assert crossover.locator("option[value=add]").is_disabled()
    crossover.locator("input[name=transfers][value=none]").check(force=True)
    crossover.locator("select[name=workload]").select_option("add")
    crossover.locator("h2", has_text="add in float32").wait_for()
    assert crossover.get_by_role("button", name="Measure here").is_disabled()
