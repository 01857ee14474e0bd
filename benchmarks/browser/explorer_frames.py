"""Measure how soon an explorer answers: from a key at a control to the new picture on screen.

A real JupyterLab in headless Chromium, which draws on the CPU. The clock is the page's: it
starts with the key's event and stops after the frame in which the new picture was painted.
For comparison it also times ``interact`` with matplotlib's inline figures.
"""

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.browser.times import line
from tests.support.jupyterlab import (
    RUN_TIMEOUT_MS,
    chromium,
    jupyter,
    open_notebook,
    put_notebook,
    run_all,
)

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

N_KEYS = 40
PAUSE_MS = 120
GOAL_MS = (60, 100)
EXPLORER, INTERACT = ".gpulab-picture", ".widget-interact"
SETUP = """\
import gpulab
from gpulab.views.explorers import crossover_explorer, roofline_explorer
from gpulab.workloads.sweeps import Point, Task
from gpulab.workloads import WORKLOADS, workload

def point(task, name):
    work = workload(task.workload)
    flops, size_bytes = work.flops(task.size), work.bytes(task.size, task.dtype)
    speeds = {"cpu": (3e-6, 1e12, 5e10), "gpu": (1e-5, 4e13, 4e12)}
    fixed_s, flops_per_s, bytes_per_s = speeds[task.on]
    time_s = fixed_s + max(flops / flops_per_s, size_bytes / bytes_per_s) / (task.n_threads or 1)
    return Point(task, median_s=time_s, low_s=0.98 * time_s, high_s=1.02 * time_s, n_samples=20,
                 device_name=name)

points = [point(Task("matmul", n, on="cpu", n_threads=1 << k), "a CPU")
          for n in workload("matmul").sizes for k in range(8)]
points += [point(Task("matmul", n, cache="hot", method="synchronized"), "NVIDIA H200")
           for n in workload("matmul").sizes]
crossed = crossover_explorer("matmul", gpu="here", cpu="here", points=points)
found = [point(Task(work.name, n), "NVIDIA H200")
         for work in WORKLOADS.values() for n in work.sizes]
roofed = roofline_explorer(gpu="here", span=2**20, found=found)"""


class Control(NamedTuple):
    """A control on the page, and the two keys that move it forward and back."""

    selector: str
    keys: tuple[str, str]


def slider(text: str) -> Control:
    """Return the slider with this label."""
    selector = f".widget-hslider:has-text('{text}') .noUi-handle"
    return Control(selector, ("ArrowRight", "ArrowLeft"))


CELLS = {
    "crossover, size": ("crossed", EXPLORER, slider("Size n")),
    "crossover, link": ("crossed.choose(transfers='both')\ncrossed", EXPLORER, slider("Link")),
    "roofline, bytes": ("roofed.choose(view='roofline')\nroofed", EXPLORER, slider("Bytes")),
    "prediction, bytes": ("roofed", EXPLORER, slider("Bytes moved")),
    "interact, inline": (
        """\
import matplotlib.pyplot as plt
from ipywidgets import interact
from gpulab.views.plots import crossover as plot_crossover
record = gpulab.crossover("matmul", source=points, n_threads=1)
@interact(size=(64, 8192, 64))
def draw(size=512):
    figure, ax = plt.subplots(figsize=(7.6, 4.4))
    plot_crossover(record, ax)
    ax.axvline(size)
    plt.show()""",
        INTERACT,
        slider("size"),
    ),
}
# A message that is sent within a frame arrives after the frame was painted. An explorer sets
# data-number within the frame that shows the picture; any other image waits for the next frame.
WATCH = """([root, selector]) => {
  const painted = () => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => { window.painted.push(performance.now()); };
    channel.port2.postMessage(0);
  };
  window.pressed = []; window.painted = [];
  root.addEventListener("keydown", () => window.pressed.push(performance.now()), true);
  if (selector === ".gpulab-picture") {
    new MutationObserver(painted).observe(root.querySelector(`${selector} img`),
      { attributes: true, attributeFilter: ["data-number"] });
  } else {
    new MutationObserver(changes => {
      for (const change of changes) for (const node of change.addedNodes) {
        const image = node.querySelector && node.querySelector("img");
        const next = () => requestAnimationFrame(painted);
        if (image) image.decode().then(next, next);
      }
    }).observe(root, { childList: true, subtree: true });
  }
}"""


def run_cell(page: "Page", url: str, shown: str) -> "Locator":
    """Run a notebook that consists of the set-up and a cell, and return the cell's output."""
    notebook = open_notebook(page, url)
    run_all(page)
    output = notebook.locator(".jp-OutputArea").nth(1)
    output.locator(f"{shown} img").first.wait_for(state="attached", timeout=RUN_TIMEOUT_MS)
    # Scripts of the page still load after the first picture; the times would contain that.
    page.wait_for_timeout(2_000)
    return output


def press(page: "Page", output: "Locator", shown: str, control: Control) -> list[float]:
    """Press keys at a control, one after the other, and return the times to the new picture."""
    handle = output.locator(control.selector)
    handle.scroll_into_view_if_needed()
    handle.focus()
    output.evaluate("(root, shown) => (%s)([root, shown])" % WATCH, shown)  # noqa: UP031 # braces
    times_ms = []
    for step in range(N_KEYS):
        page.evaluate("window.pressed.length = window.painted.length = 0")
        # Alternate the direction, so that a short slider never reaches its end.
        page.keyboard.press(control.keys[step % 2])
        page.wait_for_function("window.painted.length > 0")
        times_ms.append(page.evaluate("window.painted[0] - window.pressed[0]"))
        page.wait_for_timeout(PAUSE_MS)
    return times_ms


def drag(page: "Page", shown: str, control: Control) -> tuple[int, int]:
    """Hold a key down, faster than anything can draw; return keys and painted pictures."""
    page.evaluate("window.pressed.length = window.painted.length = 0")
    for step in range(N_KEYS):
        page.keyboard.down(control.keys[step >= N_KEYS / 2])
    page.wait_for_timeout(2_000 if shown == EXPLORER else 6_000)
    found = page.evaluate("[window.pressed.length, window.painted.length]")
    return int(found[0]), int(found[1])


def run(sharpness: float) -> None:
    """Print the times of each slider, with ``sharpness`` device pixels for each CSS pixel."""
    print(f"goal: median {GOAL_MS[0]} ms, p90 {GOAL_MS[1]} ms; sharpness {sharpness:g}")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    with (
        tempfile.TemporaryDirectory() as name,
        jupyter(Path(name)) as address,
        chromium() as first,
    ):
        browser = first.context.browser
        for number, (what, (cell, shown, control)) in enumerate(CELLS.items()):
            url = put_notebook(address, f"explorer_{number}", [SETUP, cell])
            page = browser.new_page(  # type: ignore[union-attr] # it was launched
                viewport=first.viewport_size, device_scale_factor=sharpness
            )
            output = run_cell(page, url, shown)
            print(line(what, press(page, output, shown, control)))
            n_keys, n_painted = drag(page, shown, control)
            print(f"{'':<24} held down: {n_keys} keys, {n_painted} pictures")
            page.close()
