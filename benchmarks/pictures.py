"""Take the pictures of JupyterLab that README and docs show: today's widgets, in light Chromium.

    python -m benchmarks.pictures [NAME ...] [--out docs/images]

The virtual GPU computes all of them, so each run shows the same. Look at them afterwards.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import IMAGES
from tests.support.jupyterlab import chromium, jupyter, open_notebook, put_notebook, run_all

if TYPE_CHECKING:
    from playwright.sync_api import Page

# Pictures stay in every clone and in every version of the history, so they must be small.
MOST_BYTES = 200_000
_REST_MS = 1_500  # for what follows when nothing moves any more
_TIMELINE = """\
x, host = torch.randn(1024, 1024, device="cuda"), torch.empty(1 << 20).pin_memory()
side, done = torch.cuda.Stream(), torch.cuda.Event()
def work():
    y = x @ x
    done.record()
    with torch.cuda.stream(side):
        copied = host.to("cuda", non_blocking=True)
        side.wait_event(done)
        y.relu()
    torch.cuda.current_stream().wait_stream(side)
    y.sum().item()
gpulab.timeline(work)"""
_CROSSOVER = """\
gpulab.explorers.crossover_explorer("matmul", gpu="computed:H200", beside="computed:T4",
                                    transfers="both", link="PCIe 3", size=1024)"""
_ROOFLINE = """\
gpulab.explorers.roofline_explorer(view="roofline", beside="computed:A100", cache="hot",
                                   operations=("matmul", "softmax", "add"))"""
_COPY = (410.0, 104.0)
_SECOND = ".jp-Cell >> nth=1"
_MACHINE = 'gpulab.explorers.machine_explorer(challenge="hidden copy")'


class Shot(NamedTuple):
    """One picture.

    Attributes
    ----------
    sources
        The cells of a notebook.
    top
        What stands at the top of the picture: a selector in the notebook.
    height_px
        Of the window.
    click
        Where the timeline is clicked before, from its top left corner; None: nowhere.
    """

    sources: Sequence[str]
    top: str
    height_px: int = 1_000
    click: tuple[float, float] | None = None


SHOTS = {
    "timeline": Shot(
        ('import torch, gpulab\ngpulab.use("H200")', _TIMELINE), ".jp-Cell", 900, _COPY
    ),
    "explorer-crossover": Shot(("import gpulab", _CROSSOVER), _SECOND, 920),
    "explorer-roofline": Shot(("import gpulab", _ROOFLINE), _SECOND, 920),
    "machine": Shot(("import gpulab", _MACHINE), _SECOND),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Take the pictures of these names, all if there is none."""
    parser = parser_of("benchmarks.pictures", __doc__)
    parser.add_argument("names", nargs="*", help="only these, such as timeline or machine")
    parser.add_argument("--out", type=Path, default=IMAGES, help="where they go")
    options = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as folder,
        jupyter(Path(folder)) as address,
        chromium() as page,
    ):
        for name in options.names or SHOTS:
            path = options.out / f"{name}.png"
            _take(page, address, name, path)
            size = path.stat().st_size
            print(f"{path}: {size:,} bytes{', too large' if size > MOST_BYTES else ''}")


def _take(page: "Page", address: str, name: str, path: Path) -> None:
    shot = SHOTS[name]
    url = put_notebook(address, name, shot.sources)
    page.set_viewport_size({"width": 1_280, "height": shot.height_px})
    notebook = open_notebook(page, url)
    run_all(page)
    page.wait_for_timeout(_REST_MS)
    if shot.click is not None:
        x, y = shot.click
        notebook.locator(".gpulab-timeline svg.chart").click(position={"x": x, "y": y})
    else:
        page.mouse.move(0, 0)  # away from what would show that it is pointed at
    notebook.locator(shot.top).first.evaluate("element => element.scrollIntoView()")
    page.wait_for_timeout(_REST_MS)
    # Without menus and side bars, which depend on what else is installed.
    page.locator(".jp-NotebookPanel:visible .jp-WindowedPanel-outer").screenshot(path=path)


if __name__ == "__main__":
    main()
