"""Measure how soon the machine answers: from a movement to the new picture on the screen.

A real JupyterLab in headless Chromium, which draws on the CPU. The clock is the page's: it starts
with the event of mouse or key and stops after the frame in which the new picture was painted. A
drag asks Python for a new run at each step; zooming and panning need no answer from Python.
"""

import os
import tempfile
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.browser.times import line
from tests.support.jupyterlab import chromium, jupyter, open_notebook, put_notebook, run_all

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

# A view that follows the mouse should miss no frame, and a frame is 16 ms at 60 Hz. An answer
# needs a run of the simulator.
GOAL_MS, VIEW_GOAL_MS = 60, 16
PAUSE_MS = 60
CELL = """\
import gpulab
gpulab.explorers.machine_explorer("streams", repetitions=3)"""
# A message that is sent within a frame arrives after the frame was painted.
WATCH = """root => {
  const painted = list => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => list.push(performance.now());
    channel.port2.postMessage(0);
  };
  const next = list => requestAnimationFrame(() => painted(list));
  window.began = []; window.answered = []; window.viewed = [];
  for (const name of ["pointermove", "keydown", "wheel"]) {
    root.addEventListener(name, () => window.began.push(performance.now()), true);
  }
  const watch = (name, act) => new MutationObserver(act)
    .observe(root, { attributes: true, attributeFilter: [name] });
  watch("data-answer", () => next(window.answered));
  watch("data-drawn", () => painted(window.viewed)); // it is set within its own frame
}"""


def timed(page: "Page", what: str, act: Callable[[], object]) -> float:
    """Do something, and return the time from its first event to the picture, in milliseconds."""
    page.evaluate("window.began.length = window.answered.length = window.viewed.length = 0")
    act()
    page.wait_for_function(f"window.{what}.length > 0")
    time_ms = page.evaluate(f"window.{what}[0] - window.began[0]")
    page.wait_for_timeout(PAUSE_MS)
    return float(time_ms)


def dragged(page: "Page", machine: "Locator", n_steps: int) -> list[float]:
    """Drag the end of a kernel to and fro, and return the time of each step."""
    end = machine.locator('[data-kind="kernel"] .end').first.bounding_box()
    if end is None:
        raise RuntimeError("the machine has no kernel on the page")
    x, y = end["x"] + 2, end["y"] + end["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    times_ms = [
        timed(page, "answered", lambda by=4 * (step % 20) - 42: page.mouse.move(x + by, y))
        for step in range(n_steps)
    ]
    page.mouse.up()
    page.wait_for_timeout(PAUSE_MS)
    return times_ms


def slid(page: "Page", machine: "Locator", name: str, n_steps: int) -> list[float]:
    """Press keys at a slider, to and fro, and return the time of each."""
    machine.get_by_label(name).focus()
    return [
        timed(
            page,
            "answered",
            lambda key="ArrowLeft" if step // 3 % 2 else "ArrowRight": page.keyboard.press(key),
        )
        for step in range(n_steps)
    ]


def pressed(page: "Page", machine: "Locator", keys: tuple[str, ...], n_steps: int) -> list[float]:
    """Press keys in the picture, in turn, and return the time of each."""
    machine.locator("svg.chart").focus()
    in_turn = islice(cycle(keys), n_steps)
    return [timed(page, "answered", lambda key=key: page.keyboard.press(key)) for key in in_turn]


def viewed(page: "Page", machine: "Locator", n_steps: int) -> list[float]:
    """Zoom with the wheel, in and out, and return the time of each step."""
    box = machine.locator("svg.chart").bounding_box()
    if box is None:
        raise RuntimeError("the machine has no picture on the page")
    machine.locator("svg.chart").focus()
    page.mouse.move(box["x"] + 500, box["y"] + 60)
    return [
        timed(
            page,
            "viewed",
            lambda by=-60 if step < n_steps / 2 else 60: page.mouse.wheel(0, by),
        )
        for step in range(n_steps)
    ]


def run(n_steps: int, n_widgets: int) -> None:
    """Print the times of each interaction, with ``n_widgets`` machines in the notebook."""
    print(f"goals: median {GOAL_MS} ms for an answer, {VIEW_GOAL_MS} ms while the view moves")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    with (
        tempfile.TemporaryDirectory() as name,
        jupyter(Path(name)) as address,
        chromium() as page,
    ):
        notebook = open_notebook(page, put_notebook(address, "machine", [CELL] * n_widgets))
        run_all(page)
        machine = notebook.locator(".gpulab-machine").first
        notebook.locator(".gpulab-machine").nth(n_widgets - 1).wait_for()
        machine.locator("svg.chart").scroll_into_view_if_needed()
        page.wait_for_timeout(2_000)
        machine.evaluate(WATCH)
        print(line("drag of an end", dragged(page, machine, n_steps)))
        for slider in ("Launch of a kernel", "Launch queue", "Repetitions n"):
            print(line(slider, slid(page, machine, slider, n_steps)))
        keys = ("k", "ControlOrMeta+z")
        print(line("drop in, undo", pressed(page, machine, keys, n_steps)))
        print(line("zoom", viewed(page, machine, n_steps)))
