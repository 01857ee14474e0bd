"""The crossover explorer without a browser: its choices, and what follows from them."""

import asyncio
import re
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import gpulab
from gpulab import recordings, widgets
from gpulab.errors import InvalidOptionError, UnknownNameError
from gpulab.explorers import Explorer, _open, crossover_explorer
from gpulab.explorers._crossover import CrossoverState
from gpulab.sweeps import Point, Task
from tests.support.explored import formula, points, recording, take

pytestmark = pytest.mark.usefixtures("no_pixels")

HERE = {"gpu": "here", "cpu": "here"}
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(autouse=True)
def _formula_in_place_of_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_open, "measure_step", take)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr("gpulab.recordings.list", tuple)  # what is shipped changes


@pytest.fixture
def explorer() -> Explorer[CrossoverState]:
    """Return an explorer of additions that were measured with one thread and with four."""
    known = points("add", n_threads=(1, 4))
    return crossover_explorer("add", points=known, n_threads=1, size=1024, **HERE)


def options(explorer: Explorer[Any], name: str) -> list[Any]:
    """Return the values that are offered for a choice."""
    return next(list(choice.offered) for choice in explorer.choices if choice.name == name)


def widget(explorer: Explorer[Any], name: str) -> Any:  # noqa: ANN401  # ipywidgets has no types
    """Return the widget of a choice."""
    assert explorer.widget is not None
    return explorer._panel._controls.widgets[name]  # type: ignore[union-attr]  # just made


def picture(explorer: Explorer[Any]) -> Any:  # noqa: ANN401  # as above
    """Return the widget of the picture."""
    assert explorer.widget is not None
    return explorer._panel.picture  # type: ignore[union-attr]  # just made


def test_both_sides_at_a_size(explorer: Explorer[CrossoverState]) -> None:
    """The main line has both times at the slider's size, and how many times faster one is."""
    assert explorer.scene.words[0] == (
        "At n = 1,024: CPU 2.31 µs, GPU 10.0 µs; the CPU is 4.34 times as fast."
    )
    explorer.choose(size=2**24)
    assert explorer.scene.words[0] == (
        "At n = 16,777,216: CPU 5.04 ms, GPU 60.3 µs; the GPU is 83.5 times as fast."
    )
    assert explorer.scene.words[1].startswith("Crossing: n = 25,900 [")


def test_markers_lie_on_the_curves(explorer: Explorer[CrossoverState]) -> None:
    """Between two sizes a time lies on a straight line in both logarithms."""
    explorer.choose(size=1024)
    here = [(marker.x, marker.y) for marker in explorer.scene.markers]
    spots = [(spot.x, spot.y) for spot in explorer.scene.spots]
    assert here[0] == (1024, None)
    assert sorted(here[1:]) == [pytest.approx(spot) for spot in sorted(spots) if spot[0] == 1024]
    explorer.choose(size=2048)
    between = explorer.scene.markers[1].y
    ends = [spot.y for spot in explorer.scene.spots if spot.x in {1024, 4096}][:2]
    assert between == pytest.approx(np.sqrt(ends[0] * ends[1]))


def test_threads_of_the_cpu(explorer: Explorer[CrossoverState]) -> None:
    """More threads are offered than the machine was asked for; without times it says so."""
    assert options(explorer, "n_threads") == [4, 2, 1]
    explorer.choose(n_threads=4, size=2**24)
    assert "CPU 1.26 ms" in explorer.scene.words[0]
    explorer.choose(n_threads=2)
    assert explorer.scene.empty == (
        "No times of add float32 on this machine's CPU yet. Press “Measure here”, or choose "
        "another CPU above."
    )


def test_link_counts_with_transfers_only(explorer: Explorer[CrossoverState]) -> None:
    """A link is offered once something is copied; a slower one takes longer."""
    assert options(explorer, "link") == [None]
    explorer.choose(transfers="both", size=2**24)
    assert options(explorer, "link") == [None, "PCIe 3", "PCIe 4", "PCIe 5", "NVLink"]
    times = []
    for link in ("PCIe 3", "PCIe 4", "PCIe 5", "NVLink"):
        explorer.choose(link=link)
        times.append(explorer.scene.markers[2].y)
    assert times == sorted(times, reverse=True)
    explorer.choose(transfers="none")
    assert explorer.state.link is None


def test_axes_stay_while_link_and_threads_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """The axes do not move with a slider, and contain all that it can show."""
    from matplotlib.figure import Figure

    monkeypatch.setattr("os.cpu_count", lambda: 128)
    explorer = crossover_explorer("add", points=points("add", n_threads=(64, 128)), **HERE)
    seen = set()
    for n_threads, link in ((64, "PCIe 3"), (128, "NVLink"), (64, None)):
        explorer.choose(transfers="both", n_threads=n_threads, link=link)
        ax = Figure().add_subplot()
        explorer.scene.plot(ax)
        scale = {"µs": 1e-6, "ms": 1e-3}[re.findall(r"\((.*)\)", ax.get_ylabel())[0]]
        seen.add((ax.get_xlim(), tuple(float(f"{end * scale:.6g}") for end in ax.get_ylim())))
        assert all(0 <= spot.y <= ax.get_ylim()[1] for spot in explorer.scene.spots)
    assert len(seen) == 1


def test_recording_of_ones_own(tmp_path: Path) -> None:
    """Both sides of a file, with the threads that it has; it is what is chosen at first."""
    path = recording(points("add", n_threads=(2, 8)), tmp_path)
    explorer = crossover_explorer("add", recordings=path, size=2**24)
    assert explorer.state.gpu == explorer.state.cpu == f"recorded:{path}"
    assert options(explorer, "n_threads") == [8, 2]
    assert explorer.state.n_threads == 8
    assert "(CPU a CPU, recorded; GPU NVIDIA H200, recorded)" in explorer.scene.title
    assert explorer.scene.words[0].startswith("At n = 16,777,216: CPU 631 µs, GPU 60.3 µs;")


def test_recording_of_ones_own_is_read_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides and every choice share what was read; a changed file is read again."""
    path = recording(points("add"), tmp_path)
    loaded = []
    load = recordings.load
    monkeypatch.setattr(recordings, "load", lambda name: loaded.append(name) or load(name))
    crossover_explorer("add", recordings=path).choose(size=1024)
    assert loaded == [path]
    recording(points("add", n_threads=(2, 8)), tmp_path)
    assert options(crossover_explorer("add", recordings=path), "n_threads") == [8, 2]
    assert loaded == [path, path]


def test_virtual_gpu_against_a_cpu() -> None:
    """A data sheet gives the GPU's side; its title says so, and the words that it is mixed."""
    explorer = crossover_explorer("add", gpu="computed:A100", cpu="here", points=points("add"))
    explorer.choose(n_threads=1)
    assert "CPU a CPU, measured; GPU virtual NVIDIA A100" in explorer.scene.title
    assert "extrapolated" in explorer.scene.title
    assert explorer.scene.words[-1].startswith("The two sides come from different sources")


def test_measured_points_over_other_curves() -> None:
    """What was measured here is drawn over a virtual GPU's curve, and has hints."""
    here = points("add")
    explorer = crossover_explorer("add", gpu="computed:A100", cpu="here", points=here)
    explorer.choose(n_threads=1)
    hints = [spot.hint for spot in explorer.scene.spots if "GPU here" in spot.hint]
    assert len(hints) == 10
    assert (
        hints[0] == "add float32, n = 1,024\nGPU here: NVIDIA H200, measured\n10.0 µs [9.9, 10.1]"
    )


def test_nothing_measured_says_what_to_do() -> None:
    """Without any time there is no picture, but a sentence in its place."""
    explorer = crossover_explorer("add", **HERE)
    text = (
        "No times of add float32 on this machine's CPU yet. Press “Measure here”, or choose "
        "another CPU above."
    )
    assert str(explorer) == text
    assert explorer._repr_mimebundle_() == {
        "text/plain": text,
        "text/html": f"<p>{text}</p>".replace("'", "&#x27;"),
    }
    for refused in (explorer.figure, lambda: explorer.save("x.png")):
        with pytest.raises(InvalidOptionError, match="No times of add"):
            refused()
    assert explorer.to_frame().empty


def test_unknown_choices_are_refused(explorer: Explorer[CrossoverState]) -> None:
    """The message names what there is; nothing has changed then."""
    before = explorer.state
    with pytest.raises(UnknownNameError) as unknown:
        explorer.choose(sise=4)
    assert str(unknown.value).startswith(
        "unknown choice 'sise'; did you mean 'size'? Known: beside, cpu,"
    )
    with pytest.raises(InvalidOptionError) as refused:
        explorer.choose(transfers="up")
    assert str(refused.value) == "transfers='up'; choose one of 'none', 'in', 'out', 'both'"
    assert explorer.state == before


def test_a_choice_settles_the_others(explorer: Explorer[CrossoverState]) -> None:
    """What another operation does not offer moves to the nearest that it does."""
    explorer.choose(dtype="float64", size=2**20)
    explorer.choose(workload="attention")
    assert (explorer.state.dtype, explorer.state.size) == ("float32", 1024)  # in the middle
    explorer.choose(size=2000)
    explorer.choose(workload="matmul")
    assert explorer.state.size == 2048


def test_measure_takes_both_sides() -> None:
    """Both sides at each size, smallest first; the curves are there afterwards."""
    explorer = crossover_explorer("add", n_threads=1, transfers="in", size=1024, **HERE)
    found = explorer.measure()
    assert [(p.task.on, p.task.transfers) for p in found[:3]] == [
        *[("cpu", "none"), ("gpu", "none"), ("gpu", "in")]
    ]
    assert [p.task.size for p in found[:4]] == [1024, 1024, 1024, 4096]
    assert explorer.scene.words[0].startswith(
        "At n = 1,024: CPU 2.31 µs, GPU with transfers in 20"
    )
    assert explorer.points == found


def test_slow_sizes_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a size that takes long no larger one keeps the kernel."""

    def slow(step: Task) -> Point:
        time_s = 1.0 if step.on == "cpu" and step.size >= 2**14 else 1e-5
        return Point(step, median_s=time_s, low_s=time_s, high_s=time_s, n_samples=1)

    monkeypatch.setattr(_open, "measure_step", slow)
    explorer = crossover_explorer("add", n_threads=1, **HERE)
    sizes = [p.task.size for p in explorer.measure() if p.task.on == "cpu"]  # type: ignore[union-attr]  # points
    assert sizes == [2**10, 2**12, 2**14]


def test_interrupt_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends the measuring, and the next press continues with the rest."""
    n_calls = 0

    def interrupted(step: Task) -> Point:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 4:
            raise KeyboardInterrupt
        return formula(step)

    monkeypatch.setattr(_open, "measure_step", interrupted)
    explorer = crossover_explorer("add", n_threads=1, **HERE)
    assert len(explorer.measure()) == 3
    assert (
        str(explorer._job) == "Stopped: interrupted. 3 points measured; press again for the rest."
    )
    assert len(explorer.measure()) == 17
    assert len({point.task.key for point in explorer.points}) == 20
    assert str(explorer._job) == "17 points measured."


def test_failed_points_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A point that says why it has no time is no time."""
    monkeypatch.setattr(_open, "measure_step", lambda step: Point(step, error="no room"))
    explorer = crossover_explorer("add", n_threads=1, **HERE)
    explorer.measure()
    # after the first size of each side fails, no larger one is tried
    assert str(explorer._job) == "0 points measured, 2 failed."
    assert explorer.scene.empty.startswith("no size of add float32 on the CPU could be timed")


@pytest.mark.slow
@pytest.mark.pixels
def test_file_by_suffix(explorer: Explorer[CrossoverState], tmp_path: Path) -> None:
    """Picture or table, as the name says; anything else is refused."""
    with Image.open(explorer.save(tmp_path / "a.png")) as image:
        assert image.size == (1800, 1040)
    assert "</svg>" in explorer.save(tmp_path / "a.svg").read_text("utf-8")
    table = pd.read_csv(explorer.save(tmp_path / "a.csv"))
    assert len(table) == len(explorer.to_frame()) == 20
    with pytest.raises(InvalidOptionError) as refused:
        explorer.save("a.txt")
    assert str(refused.value) == (
        "path='a.txt'; its name must end in one of .png, .svg, .pdf, .csv"
    )


def test_page_without_widgets_has_picture_and_table(
    explorer: Explorer[CrossoverState],
) -> None:
    """An exported notebook shows the figure, its description and its data."""
    shown = explorer._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}
    assert "Line chart: add float32: CPU against GPU (CPU a CPU, measured" in shown["text/plain"]
    assert "At n = 1,024: CPU 2.31 µs" in shown["text/plain"]
    assert "<details><summary>Data</summary><table" in shown["text/html"]


def test_widget_where_somebody_looks(
    explorer: Explorer[CrossoverState], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A front end gets the widget in addition to the figure."""
    monkeypatch.setattr(widgets, "is_watched", lambda: True)
    shown = explorer._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html", WIDGET}
    explorer.close()


def test_controls_and_state_are_one(explorer: Explorer[CrossoverState]) -> None:
    """Moving a control sets the state, and setting the state moves the control."""
    widget(explorer, "size").index = 8
    assert explorer.state.size == options(explorer, "size")[8] == 4096
    explorer.choose(size=2**20, transfers="out")
    assert widget(explorer, "size").value == "1,048,576"
    assert widget(explorer, "link").options == ("its own", "PCIe 3", "PCIe 4", "PCIe 5", "NVLink")
    assert (widget(explorer, "cpu").disabled, widget(explorer, "gpu").disabled) == (True, False)
    explorer.close()


def test_picture_follows_the_state(explorer: Explorer[CrossoverState]) -> None:
    """Picture, marks, words and text alternative are those of the state."""
    shown = picture(explorer)
    first, markers = shown.png, shown.markers
    assert Image.open(BytesIO(first)).size == (840, 460)
    explorer.choose(size=4096)
    assert shown.png == first  # only the marks have moved
    assert shown.markers != markers
    assert shown.words[0].startswith("At n = 4,096: CPU")
    assert shown.words[0] in shown.alt
    assert shown.alt.startswith("Line chart: add float32: CPU against GPU (CPU a CPU, measured")
    assert [entry["label"] for entry in shown.legend][1] == "GPU: NVIDIA H200, measured"
    explorer.choose(transfers="both")
    assert shown.png != first
    explorer.choose(n_threads=2)
    assert (shown.empty[:16], shown.words) == ("No times of add ", [])
    explorer.close()


def test_sharp_screens_get_more_pixels(explorer: Explorer[CrossoverState]) -> None:
    """The page says how many device pixels it has for each of its own."""
    shown = picture(explorer)
    shown._handle_custom_msg({"ratio": 3.0, "dark": False}, [])
    assert Image.open(BytesIO(shown.png)).size == (1680, 920)
    assert shown.width == 840
    explorer.close()


@pytest.mark.slow
@pytest.mark.pixels
def test_table_and_files_are_made_when_asked_for(
    explorer: Explorer[CrossoverState], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slider does not wait for parts that are not shown."""
    shown = picture(explorer)
    assert shown.table == ""
    shown._handle_custom_msg({"is_open": True}, [])
    assert "<caption>add float32: CPU against GPU" in shown.table
    assert '<th scope="col">median</th>' in shown.table
    sent: list[tuple[object, list[bytes]]] = []
    monkeypatch.setattr(
        shown, "send", lambda content, buffers: sent.append((content, buffers)), raising=False
    )
    for suffix in (".csv", ".png"):
        shown._handle_custom_msg({"file": suffix}, [])
    assert sent[0][0] == {"file": ".csv"}
    assert sent[0][1][0].startswith(b"on,size,median_s")
    assert Image.open(BytesIO(sent[1][1][0])).format == "PNG"
    explorer.close()


async def until(is_done: Callable[[], bool]) -> None:
    """Let the loop run until something is so."""
    while not is_done():  # noqa: ASYNC110 # what it waits for sets no event
        await asyncio.sleep(0)


def test_button_measures_by_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the steps others have their turn, and the picture has what is there so far."""
    monkeypatch.setattr("gpulab.explorers._scheduling._PAUSE_S", 0.0)
    turns: list[int] = []

    async def session() -> None:
        explorer = crossover_explorer("add", n_threads=1, **HERE)
        panel = picture(explorer) and explorer._panel
        assert panel is not None
        panel._start.click()
        step = "1 of 20: add n=1,024 float32 on the CPU: 1 thread"
        assert panel.picture.progress == {"text": step, "done": 0, "total": 20}
        assert (panel._start.disabled, panel._stop.disabled) == (True, False)
        while explorer._job is not None and explorer._job.is_running:
            turns.append(explorer._job.n_done)
            await asyncio.sleep(0)
        assert panel.picture.progress == {"text": "20 points measured.", "done": 20, "total": 0}
        assert (panel._start.disabled, panel._stop.disabled) == (False, True)
        await until(lambda: panel.picture.words != [])
        explorer.close()

    asyncio.run(session())
    assert len(set(turns)) > 10


def test_stop_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The running step is the last one; the same button continues later."""
    monkeypatch.setattr("gpulab.explorers._scheduling._PAUSE_S", 0.0)

    async def session() -> None:
        explorer = crossover_explorer("add", n_threads=1, **HERE)
        panel = picture(explorer) and explorer._panel
        assert panel is not None
        panel._start.click()
        await until(lambda: bool(explorer.points))
        panel._stop.click()
        n_points = len(explorer.points)
        for _ in range(6):
            await asyncio.sleep(0)
        assert len(explorer.points) == n_points
        assert panel.picture.progress["text"] == (
            f"Stopped. {n_points} points measured; press again for the rest."
        )
        panel._start.click()
        await until(lambda: not explorer._job.is_running)  # type: ignore[union-attr]  # there is one
        assert len({point.task.key for point in explorer.points}) == 20
        explorer.close()

    asyncio.run(session())


def test_driven_faster_than_it_draws() -> None:
    """What was replaced while a picture was on its way is not drawn; the last one always is."""

    async def session() -> None:
        explorer = crossover_explorer("add", points=points("add"), n_threads=1, **HERE)
        shown = picture(explorer)
        first = shown.number
        sizes = options(explorer, "size")
        for size in sizes:
            explorer.choose(size=size)
        assert shown.number == first  # nobody has seen the first one yet
        shown._handle_custom_msg({"shown": first}, [])  # as the page answers
        assert shown.number == first + 1
        assert shown.words[0].startswith("At n = 268,435,456: ")
        assert explorer._panel.pace.n_dropped == len(sizes) - 1  # type: ignore[union-attr]  # there is one
        shown._handle_custom_msg({"shown": first + 1}, [])
        assert shown.number == first + 1
        explorer.close()

    asyncio.run(session())


def test_close_leaves_nothing(explorer: Explorer[CrossoverState]) -> None:
    """No widget stays registered, and points and state are kept."""
    from ipywidgets import Widget

    before = len(Widget._instances) if hasattr(Widget, "_instances") else None
    shown = picture(explorer)
    explorer.close()
    assert shown.comm is None
    if before is not None:
        assert len(Widget._instances) == before
    assert explorer.scene.words
    explorer.close()


@pytest.mark.slow
def test_importing_loads_no_widgets() -> None:
    """Only who sees an explorer waits for ipywidgets and pyplot."""
    import subprocess

    code = (
        "import gpulab.explorers, sys;"
        "print([m for m in ('ipywidgets', 'anywidget', 'matplotlib.pyplot') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_other_thread_waits_for_its_turn() -> None:
    """A message on another thread is answered on the kernel's own, where the GPU belongs."""
    import threading

    from gpulab.widgets import JupyterLoop

    threads: list[int] = []

    async def session() -> None:
        loop = JupyterLoop()
        do = loop.in_turn(lambda: threads.append(threading.get_ident()))
        do()
        other = threading.Thread(target=do)
        other.start()
        other.join()
        await until(lambda: len(threads) == 2)

    asyncio.run(session())
    assert set(threads) == {threading.get_ident()}


def test_a_second_gpu_is_drawn_beside_the_first(explorer: Explorer[CrossoverState]) -> None:
    """Its curve has a sign of its own, and the words say where it crosses and who is faster."""
    assert len(explorer.scene.words) == 3
    explorer.choose(beside="computed:T4", size=2**20)
    scene = explorer.scene
    assert scene.words[-1].startswith("Second GPU: virtual Tesla T4")
    assert "; at n = 1,048,576 it takes " in scene.words[-1]
    assert scene.words[-1].endswith(" times as fast.")
    assert any("Tesla T4" in spot.hint for spot in scene.spots)
    canvas = explorer.figure().canvas
    drawn = {line.get_label(): line.get_marker() for line in canvas.axes[0].lines}
    assert drawn["second GPU: virtual Tesla T4, extrapolated"] == "D"
    explorer.choose(beside="")
    assert len(explorer.scene.words) == 3


def test_a_slower_second_gpu_is_inside_the_axes() -> None:
    """They suit both GPUs, and no link moves them."""
    known = points("matmul")
    explorer = crossover_explorer("matmul", points=known, n_threads=1, transfers="both", **HERE)
    alone = explorer.figure().canvas.axes[0].get_ylim()
    explorer.choose(beside="computed:T4")
    limits = explorer.figure().canvas.axes[0].get_ylim()
    assert limits[1] > alone[1]
    assert max(spot.y for spot in explorer.scene.spots) < limits[1]
    explorer.choose(link="PCIe 5")
    assert explorer.figure().canvas.axes[0].get_ylim() == pytest.approx(limits)


def test_the_code_shows_the_same_view_again(explorer: Explorer[CrossoverState]) -> None:
    """Run as Python it gives an explorer of the same state; only what was chosen is in it."""
    explorer.choose(workload="exp", gpu="computed:A100", size=4096, transfers="out")
    names: dict[str, Any] = {"gpulab": gpulab}
    again = eval(explorer.code, names)  # our own code
    assert again.state == explorer.state
    assert "dtype" not in explorer.code
    assert explorer.code == picture(explorer).code
    explorer.close()
