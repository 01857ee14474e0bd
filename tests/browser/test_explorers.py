"""The explorers in a real JupyterLab, used with sliders, buttons and keys."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.jupyterlab import (
    Lab,
    go_dark,
    needs_browser,
    put_notebook,
    run_all,
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
    """crossover_explorer("matmul", gpu="computed:H200", cpu="here", n_threads=1)""",
    """\
roofline_explorer(gpu="computed:A100", view="roofline", span=2**20,
                  operations=("add", "exp", "softmax"))""",
]

# Six steps measure both sides at the sizes up to 256, which the first test uses.
STOP_AFTER_SIX = """root => {
    if (!(parseInt(root.querySelector('.progress').textContent) > 6)) return false;
    [...root.querySelectorAll('button')].find(one => one.innerText.includes('Stop')).click();
    return true;
}"""
# A timer of the page that is set later and is longer than the one before an announcement.
LATER = "() => new Promise(done => setTimeout(done, 800))"
IS_DARK = """image => {
    const canvas = document.createElement('canvas');
    const pen = canvas.getContext('2d');
    pen.drawImage(image, 0, 0, 1, 1, 0, 0, 1, 1);
    return pen.getImageData(0, 0, 1, 1).data[0] < 50;
}"""


@pytest.fixture(scope="module")
def shown(lab: Lab) -> Iterator["Locator"]:
    """Run a notebook with both explorers, once for all tests of this file."""
    put_notebook(lab.address, "explorers", CELLS)
    with lab.notebook("explorers") as notebook:
        run_all(lab.page)
        notebook.locator(".gpulab-picture").nth(1).wait_for()
        yield notebook


@pytest.fixture
def page(lab: Lab) -> "Page":
    """Return the page that contains the notebook."""
    return lab.page


def explorer(shown: "Locator", number: int) -> "Locator":
    """Return the output area of one of the explorers."""
    return shown.locator(".jp-OutputArea-output", has=shown.page.locator(".gpulab-picture")).nth(
        number
    )


def press(output: "Locator", slider: str, key: str) -> None:
    """Focus a slider and press a key."""
    handle = output.locator(".widget-hslider", has_text=slider).locator(".noUi-handle")
    handle.scroll_into_view_if_needed()
    handle.press(key)


def words(output: "Locator") -> "Locator":
    """Return the first sentence below the picture."""
    return output.locator(".words p").first


def test_crossover_in_the_browser(shown: "Locator", page: "Page") -> None:
    """An empty explorer asks for a measurement, measures, stops, and follows its sliders."""
    output = explorer(shown, 0)
    assert (
        output.locator(".empty")
        .inner_text()
        .startswith("No times of matmul float32 on this machine's CPU yet. Press “Measure here”")
    )
    output.get_by_role("button", name="Measure here").click()
    output.locator("img").wait_for()  # as soon as both sides have a point
    page.wait_for_function(STOP_AFTER_SIX, arg=output.element_handle(), polling=100)
    output.get_by_text("press again for the rest.").wait_for()
    legend = output.locator(".legend").inner_text()
    assert "GPU here: virtual NVIDIA H200" in legend
    press(output, "Size n", "Home")
    output.get_by_text("At n = 64: CPU ").first.wait_for()
    line = output.locator(".marks .line")
    before = line.evaluate("mark => mark.style.left")
    press(output, "Size n", "ArrowRight")
    output.get_by_text("At n = 76: CPU ").first.wait_for()
    assert line.evaluate("mark => mark.style.left") != before
    assert "At n = 76: CPU " in (output.locator("img").get_attribute("alt") or "")
    first = output.locator("img").get_attribute("src")
    output.locator(".widget-dropdown", has_text="Transfers").locator("select").select_option(
        "both"
    )
    output.get_by_text("GPU with transfers both").first.wait_for()
    assert output.locator("img").get_attribute("src") != first
    press(output, "Link", "ArrowRight")
    output.get_by_text("computed for PCIe 3 (15.8 GB/s)").first.wait_for()
    take_picture(page, "explorer_crossover")


def test_the_last_of_many_choices_is_drawn(shown: "Locator", page: "Page") -> None:
    """After a slider moved faster than pictures are drawn, the picture shows its last place."""
    output = explorer(shown, 0)
    press(output, "Size n", "Home")
    for _ in range(25):
        page.keyboard.down("ArrowRight")
    for _ in range(17):
        page.keyboard.down("ArrowLeft")
    page.keyboard.up("ArrowLeft")
    output.get_by_text("At n = 256: CPU ").first.wait_for()


def test_keys_select_points_of_the_picture(shown: "Locator", page: "Page") -> None:
    """Arrow keys select points one by one, and a screen reader reads out each of them."""
    output = explorer(shown, 0)
    press(output, "Size n", "Home")
    output.get_by_text("At n = 64: CPU ").first.wait_for()
    output.locator(".stage").focus()
    page.keyboard.press("ArrowRight")
    page.evaluate(LATER)
    assert output.locator(".tip").inner_text().startswith("matmul float32, n = 64\nCPU: ")
    assert output.locator(".told").text_content() == output.locator(".tip").text_content()
    assert output.locator(".told").get_attribute("aria-live") == "polite"
    page.keyboard.press("Escape")
    assert output.locator(".tip").is_hidden()


def test_roofline_in_the_browser(shown: "Locator", page: "Page") -> None:
    """A data sheet gives predictions only; a measurement adds roofs, hints and a table."""
    output = explorer(shown, 1)
    assert words(output).inner_text() == (
        "Ringed, about 1.00 MiB moved: 3 points of 3 operations; predictions only."
    )
    press(output, "Bytes moved", "ArrowRight")
    output.get_by_text("Ringed, about 4.00 MiB moved: ").first.wait_for()
    output.get_by_label("GPU", exact=True).select_option("measured here")
    output.locator(".empty", has_text="Nothing of float32").wait_for()
    output.get_by_role("button", name="Measure here").click()
    output.get_by_text("3 points measured.").wait_for()
    output.locator(".legend", has_text="prediction").wait_for()
    roofs = output.locator(".words p", has_text="Roofs: ")
    for evidence in ("data sheet", "live clocks", "measured"):
        roofs.filter(has_text=evidence).wait_for()
    ring, tip = output.locator(".marks .dot").first, output.locator(".tip:visible")
    while not tip.count():  # the last picture may still arrive and move the rings
        ring.hover(force=True)  # rings ignore the pointer, which meets the picture below
        page.wait_for_timeout(100)
    assert "predicted, refined: " in tip.inner_text()
    take_picture(page, "explorer_roofline")
    output.locator("summary", has_text="Data as a table").click()
    output.locator(".table td", has_text="softmax").first.wait_for()
    with page.expect_download() as download:
        output.get_by_role("button", name="Download data").click()
    assert download.value.suggested_filename == "roofline.csv"
    assert (
        download.value.path().read_text("utf-8").startswith("workload,size,dtype,cache,measured_s")
    )


def test_explorers_in_the_dark(shown: "Locator", page: "Page") -> None:
    """In JupyterLab's dark theme the text is light and the picture's background dark."""
    go_dark(page)
    output = explorer(shown, 0)
    output.scroll_into_view_if_needed()
    take_picture(page, "explorer_dark")
    wait_for_light_ink(words(output))
    page.wait_for_function(IS_DARK, arg=output.locator("img").element_handle(), polling=100)
