"""The machine in a real JupyterLab, used with drag and drop and with keys."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.jupyterlab import (
    Lab,
    axe_findings,
    needs_browser,
    put_notebook,
    run_all,
    set_theme,
    take_picture,
    wait_for_light_ink,
)

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = needs_browser

CELLS = ["import gpulab\nmachine = gpulab.explorers.machine_explorer()\nmachine"]

COUNT_HURRIES = """() => {
    const { send } = WebSocket.prototype;
    window.hurries = 0;
    WebSocket.prototype.send = function (data) {
        if (new TextDecoder().decode(data).includes('"do":"hurry"')) window.hurries += 1;
        return send.call(this, data);
    };
}"""
SAVE_AND_OPEN_WITHOUT_A_KERNEL = """async () => {
    const [panel] = [...window.jupyterapp.shell.widgets('main')].filter(each => each.context);
    await panel.context.save();
    await panel.sessionContext.shutdown();
    panel.dispose();
    await window.jupyterapp.commands.execute('docmanager:open', {
        path: 'machine.ipynb', factory: 'Notebook', kernelPreference: {canStart: false},
    });
}"""


@pytest.fixture(scope="module")
def shown(lab: Lab) -> Iterator["Locator"]:
    """Run a notebook with one machine, once for all tests of this file."""
    put_notebook(lab.address, "machine", CELLS)
    with lab.notebook("machine") as notebook:
        run_all(lab.page)
        notebook.locator(".gpulab-machine").wait_for()
        yield notebook


@pytest.fixture
def machine(shown: "Locator") -> "Hands":
    """Return helpers that use the machine as a person does."""
    return Hands(shown.locator(".gpulab-machine"))


class Hands:
    """Actions of a person on the machine, and what the person sees."""

    def __init__(self, root: "Locator") -> None:
        self.root, self.page = root, root.page
        self.picture = root.locator("svg.chart")

    def box(self, selector: str, number: int = 0) -> dict[str, float]:
        """Return the place of an element in the page."""
        found: Any = self.root.locator(selector).nth(number).bounding_box()
        assert found is not None
        return found

    def begin(self, challenge: str) -> None:
        """Choose a challenge, and wait until its goal is shown."""
        self.root.get_by_label("Challenge").select_option("")
        self.root.locator(".goal").wait_for(state="hidden")
        self.root.get_by_label("Challenge").select_option(challenge)
        self.root.locator(".goal", has_text="Not yet.").wait_for()
        self.picture.scroll_into_view_if_needed()

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press, move and release the mouse, and wait for the kernel's answer."""
        with self.answered():
            self.page.mouse.move(*start)
            self.page.mouse.down()
            self.page.mouse.move(*end, steps=6)
            self.page.mouse.up()

    @contextmanager
    def answered(self) -> Iterator[None]:
        """Wait until the kernel has answered what is done meanwhile."""
        before = self.root.get_attribute("data-answer")
        yield
        self.page.wait_for_function(
            "([root, before]) => root.dataset.answer !== before",
            arg=[self.root.element_handle(), before],
        )

    def stretch(self, kind: str, to_us: float) -> None:
        """Drag the end of a bar to about this length."""
        box, bar = self.box(f'[data-kind="{kind}"] .end'), self.box(f'[data-kind="{kind}"] .body')
        self.root.locator(f'[data-kind="{kind}"] .body').first.click()
        now_us = float(self.root.get_by_label("Length, µs").input_value())
        x, y = box["x"] + 2, box["y"] + box["height"] / 2
        self.drag((x, y), (x + bar["width"] * (to_us / now_us - 1), y))

    def carry(self, selector: str, lane: str, x: float) -> None:
        """Drag an element into a lane, to this x coordinate."""
        box, target = self.box(selector), self.box(f'.lane[data-lane="{lane}"]')
        start = (box["x"] + min(20, box["width"] / 2), box["y"] + box["height"] / 2)
        self.drag(start, (x, target["y"] + target["height"] / 2))

    def slide(self, name: str) -> None:
        """Drag the knob of a slider from its left end to its right end."""
        slider = self.root.get_by_label(name)
        slider.scroll_into_view_if_needed()
        box: Any = slider.bounding_box()
        y, half_a_knob = box["y"] + box["height"] / 2, 8
        self.drag((box["x"] + half_a_knob, y), (box["x"] + box["width"], y))

    def solved(self) -> None:
        """Wait until the challenge is solved."""
        self.root.locator(".goal.solved").wait_for()

    def keys(self, *keys: str) -> None:
        """Focus the picture and press keys one after the other."""
        self.picture.focus()
        for key in keys:
            self.page.keyboard.press(key)


def test_challenges_by_mouse(machine: Hands) -> None:
    """Every challenge can be solved with the mouse, and the page says when it is solved."""
    machine.begin("right stopwatch")
    # A click adds at the end, where the wait is too late for the stopwatch.
    machine.keys("Home", "ArrowRight")  # to the kernel
    with machine.answered():
        machine.root.locator('.palette [data-kind="synchronize"]').click()
    assert machine.root.locator(".goal.solved").count() == 0
    with machine.answered():
        machine.keys("Delete")
    second_reading = machine.box(".dial", 1)
    machine.carry('.palette [data-kind="synchronize"]', "host", second_reading["x"] + 3)
    machine.solved()
    take_picture(machine.page, "machine_stopwatch")
    machine.begin("three times")
    machine.stretch("kernel", 3)
    machine.solved()
    machine.begin("hidden copy")
    copy = machine.box('[data-kind="copy in"] .body')
    machine.carry('[data-kind="copy in"] .body', "stream 1", copy["x"] + 40)
    machine.root.get_by_label("Host memory").select_option("pinned")
    machine.solved()
    take_picture(machine.page, "machine_copy")
    machine.begin("full queue")
    machine.slide("Repetitions n")
    machine.solved()
    machine.begin("race")
    second = machine.box('[data-kind="kernel"] .body', 1)
    machine.carry('[data-role="task"][data-place="1"] .body', "stream 1", second["x"])
    machine.root.locator(".remarks .race").wait_for()
    take_picture(machine.page, "machine_race")
    first = machine.box('[data-role="task"][data-place="0"] .body')
    machine.carry('.palette [data-kind="record"]', "stream 0", first["x"] + first["width"] + 2)
    second = machine.box('[data-kind="kernel"] .body', 1)
    machine.carry('.palette [data-kind="wait"]', "stream 1", second["x"] + 5)
    machine.solved()
    take_picture(machine.page, "machine_mended")


def test_challenges_by_keyboard(machine: Hands) -> None:
    """Every challenge can be solved with the keyboard alone."""
    machine.begin("right stopwatch")
    machine.keys("Home", "ArrowRight", "s")
    machine.solved()
    machine.begin("three times")
    machine.keys("Home", "ArrowRight", "Enter")
    machine.page.keyboard.press("ControlOrMeta+a")
    machine.page.keyboard.type("3")
    machine.page.keyboard.press("Enter")
    machine.solved()
    machine.begin("hidden copy")
    machine.keys("End", "Delete", "c", "ArrowDown")
    machine.solved()
    machine.begin("full queue")
    machine.root.get_by_label("Repetitions n").focus()
    for _ in range(6):
        machine.page.keyboard.press("ArrowRight")
    machine.solved()
    take_picture(machine.page, "machine_queue")
    machine.begin("race")
    machine.keys("End", "ArrowDown")
    machine.root.locator(".remarks .race").wait_for()
    machine.keys("Home", "e", "w", "ArrowDown")
    machine.solved()
    told = machine.root.locator(".told")
    assert told.get_attribute("aria-live") == "polite"
    assert told.inner_text() == "3. wait for event a on stream 1"


def test_the_page_hurries_the_answer(machine: Hands) -> None:
    """While it waits for an answer, the page acknowledges the messages of the kernel."""
    machine.page.evaluate(COUNT_HURRIES)
    machine.keys("k", "Delete")
    machine.page.wait_for_function("window.hurries > 0")


def test_mistakes_in_the_browser(machine: Hands) -> None:
    """A wrong length is refused beside its field, the typed text stays; undo and reset work."""
    machine.begin("right stopwatch")
    machine.keys("Home", "ArrowRight")
    length = machine.root.get_by_label("Length, µs")
    length.fill("0")
    length.press("Enter")
    machine.root.locator(".problem", has_text="duration_us=0; it must be a number").wait_for()
    assert length.input_value() == "0"
    assert length.get_attribute("aria-invalid") == "true"
    machine.keys("ArrowRight", "ArrowLeft")  # another operation, where nothing is wrong
    machine.root.locator(".problem").wait_for(state="hidden")
    assert length.input_value() == "200"
    length.fill("")
    length.press("Enter")
    machine.root.locator(".problem", has_text="duration_us=None; it must be").wait_for()
    length.fill("50")
    length.press("Enter")
    machine.root.locator(".title", has_text="stream 0, 50.0 µs").wait_for()
    assert machine.root.locator(".problem").is_hidden()
    machine.keys("ControlOrMeta+z")
    machine.root.locator(".title", has_text="stream 0, 200 µs").wait_for()
    machine.keys("Home", "Delete", "Delete", "Delete")
    machine.root.get_by_text(
        "There is no kernel, copy or graph: nothing to time."
    ).first.wait_for()
    machine.root.get_by_role("button", name="Reset").click()
    machine.root.locator(".title", has_text="the truth is 200 µs").wait_for()


def test_what_a_stranger_tries(machine: Hands) -> None:
    """A drag straight down keeps the order of the calls, and keys work after any mouse action."""
    machine.begin("right stopwatch")
    kernel = machine.box('[data-kind="kernel"] .body')
    middle = kernel["x"] + kernel["width"] / 2
    machine.carry('[data-kind="kernel"] .body', "+ stream", middle)
    machine.root.locator(".told", has_text="2. kernel on x on stream 1").wait_for()
    assert machine.picture.get_by_text("no work").count() == 1
    machine.page.keyboard.press("ControlOrMeta+z")
    machine.root.locator(".told", has_text="2. kernel on x on stream 0").wait_for()
    machine.carry('.palette [data-kind="copy out"]', "stream 0", middle)
    copy = machine.root.locator('[data-kind="copy out"] .body').first
    copy.wait_for()
    machine.page.keyboard.press("Delete")  # in the picture, which has the focus
    copy.wait_for(state="detached")
    machine.root.get_by_role("button", name="Undo").click()
    copy.wait_for()
    machine.page.keyboard.press("ControlOrMeta+z")  # the button has the focus
    copy.wait_for(state="detached")
    machine.slide("Repetitions n")
    machine.picture.get_by_text("560 \u00d7 kernel").wait_for()


def test_a_deadlock_is_shown_where_it_is(machine: Hands) -> None:
    """Operations of a deadlock have a frame, and there is no reading."""
    machine.begin("race")
    # Stream 0 waits for b and records a, stream 1 waits for a and records b.
    machine.keys("Home", "e", "w", "ArrowDown", "e", "Home", "w")
    machine.root.locator(".remarks .deadlock").wait_for()
    frames = machine.picture.locator(".task:has(.frame)")
    places = {frames.nth(i).get_attribute("data-place") for i in range(frames.count())}
    assert places == {"1", "2", "3", "4"}
    assert machine.root.locator(".title", has_text="No readings").is_visible()


def err(machine: Hands) -> None:
    """Begin a challenge, let two kernels race, open all texts, and give a wrong length."""
    machine.begin("race")
    machine.keys("End", "ArrowDown")
    machine.root.locator(".remarks .race").wait_for()
    machine.root.evaluate("root => root.querySelectorAll('details').forEach(d => d.open = true)")
    length = machine.root.get_by_label("Length, µs")
    length.fill("0")
    length.press("Enter")
    machine.root.locator(".problem").wait_for()


def test_axe_finds_nothing_in_any_state(machine: Hands) -> None:
    """axe-core finds nothing beside an error, with a challenge, or in a presentation."""
    err(machine)
    assert axe_findings(machine.page, ".gpulab-machine") == []
    machine.keys("p")
    machine.root.locator(".problem").wait_for(state="hidden")
    assert machine.root.evaluate("root => root.scrollHeight <= window.innerHeight")
    for theme in ("light", "dark"):
        assert machine.root.evaluate("root => getComputedStyle(root).colorScheme") == theme
        assert axe_findings(machine.page, ".gpulab-machine") == []
        machine.keys("d")
    machine.keys("Escape")


def test_the_machine_in_the_dark(machine: Hands) -> None:
    """Texts of the picture are light in the dark theme, and axe-core finds nothing."""
    page = machine.page
    set_theme(page, "Dark")
    err(machine)
    take_picture(page, "machine_dark")
    wait_for_light_ink(machine.root.locator("svg.chart text").first, "fill")
    assert axe_findings(page, ".gpulab-machine") == []


def test_a_saved_machine_without_a_kernel(machine: Hands) -> None:
    """A saved notebook shows the last picture, which is hidden while the widget is alive."""
    page = machine.page
    still = page.locator("figure[id^=gpulab-still] img")
    machine.begin("race")
    machine.keys("End", "ArrowDown")
    page.wait_for_function(
        "document.querySelector('figure[id^=gpulab-still] img').alt.includes('Race: ')",
        polling=100,
    )
    assert still.is_hidden()
    page.evaluate(SAVE_AND_OPEN_WITHOUT_A_KERNEL)
    still.wait_for()
    assert page.locator(".gpulab-machine").count() == 0
    assert "Race: operation 1" in (still.get_attribute("alt") or "")
    take_picture(page, "machine_still")
