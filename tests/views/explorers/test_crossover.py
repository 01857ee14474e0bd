"""The crossover explorer without a browser: its choices, its picture and its measurements."""

import asyncio
import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import gpulab
from gpulab import recordings
from gpulab.core.errors import InvalidOptionError, UnknownNameError
from gpulab.figures import widgets
from gpulab.views.explorers import Explorer, _open, crossover_explorer
from gpulab.views.explorers._crossover import CrossoverState
from gpulab.workloads.sweeps import Point, Task
from tests.support.explored import formula, points, recording, take

pytestmark = pytest.mark.usefixtures("no_pixels")

HERE = {"gpu": "here", "cpu": "here"}
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(autouse=True)
def _formula_in_place_of_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_open, "measure_step", take)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr("gpulab.workloads.recordings.list", tuple)  # shipped recordings may change


@pytest.fixture
def explorer() -> Explorer[CrossoverState]:
    """Return an explorer of additions that were measured with one and with four CPU threads."""
    known = points("add", n_threads=(1, 4))
    return crossover_explorer("add", points=known, n_threads=1, size=1024, **HERE)


def options(explorer: Explorer[Any], name: str) -> list[Any]:
    """Return the values that a choice offers."""
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
    """The first sentence has both times at the chosen size, and their ratio."""
    assert explorer.scene.words[0] == (
        "At n = 1,024: CPU 2.31 µs, GPU 10.0 µs; the CPU is 4.34 times as fast."
    )
    explorer.choose(size=2**24)
    assert explorer.scene.words[0] == (
        "At n = 16,777,216: CPU 5.04 ms, GPU 60.3 µs; the GPU is 83.5 times as fast."
    )
    assert explorer.scene.words[1].startswith("Crossing: n = 25,900 [")


def test_markers_lie_on_the_curves(explorer: Explorer[CrossoverState]) -> None:
    """Markers are on the curves; between two sizes a curve is straight on log axes."""
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
    """Powers of two up to the CPU's cores are offered; a number without times says so."""
    assert options(explorer, "n_threads") == [4, 2, 1]
    explorer.choose(n_threads=4, size=2**24)
    assert "CPU 1.26 ms" in explorer.scene.words[0]
    explorer.choose(n_threads=2)
    assert explorer.scene.empty == (
        "No times of add float32 on this machine's CPU yet. Press “Measure here”, or choose "
        "another CPU above."
    )


def test_a_link_can_be_chosen_only_with_transfers(explorer: Explorer[CrossoverState]) -> None:
    """Links are offered once transfers are chosen, and a slower link takes longer."""
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


@pytest.mark.slow
def test_axes_stay_while_link_and_threads_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """The axes have the same limits for every link and number of threads."""
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


def test_a_learners_own_recording_is_chosen_first(tmp_path: Path) -> None:
    """A given recording is both GPU and CPU at first, with its own numbers of threads."""
    path = recording(points("add", n_threads=(2, 8)), tmp_path)
    explorer = crossover_explorer("add", recordings=path, size=2**24)
    assert explorer.state.gpu == explorer.state.cpu == f"recorded:{path}"
    assert options(explorer, "n_threads") == [8, 2]
    assert explorer.state.n_threads == 8
    assert "(CPU a CPU, recorded; GPU NVIDIA H200, recorded)" in explorer.scene.title
    assert explorer.scene.words[0].startswith("At n = 16,777,216: CPU 631 µs, GPU 60.3 µs;")


def test_a_learners_own_recording_is_read_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is read once for all choices, and again after it has changed."""
    path = recording(points("add"), tmp_path)
    loaded = []
    load = recordings.load
    monkeypatch.setattr(recordings, "load", lambda name: loaded.append(name) or load(name))
    crossover_explorer("add", recordings=path).choose(size=1024)
    assert loaded == [path]
    recording(points("add", n_threads=(2, 8)), tmp_path)
    assert options(crossover_explorer("add", recordings=path), "n_threads") == [8, 2]
    assert loaded == [path, path]


@pytest.mark.slow
def test_virtual_gpu_against_a_cpu() -> None:
    """A GPU computed from its data sheet is labelled as virtual, and the words warn of the mix."""
    explorer = crossover_explorer("add", gpu="computed:A100", cpu="here", points=points("add"))
    explorer.choose(n_threads=1)
    assert "CPU a CPU, measured; GPU virtual NVIDIA A100" in explorer.scene.title
    assert "extrapolated" in explorer.scene.title
    assert explorer.scene.words[-1].startswith("The two sides come from different sources")


def test_measured_points_over_other_curves() -> None:
    """Points measured here are drawn over the curve of a virtual GPU, with hints."""
    here = points("add")
    explorer = crossover_explorer("add", gpu="computed:A100", cpu="here", points=here)
    explorer.choose(n_threads=1)
    hints = [spot.hint for spot in explorer.scene.spots if "GPU here" in spot.hint]
    assert len(hints) == 10
    assert (
        hints[0] == "add float32, n = 1,024\nGPU here: NVIDIA H200, measured\n10.0 µs [9.9, 10.1]"
    )


def test_nothing_measured_says_what_to_do() -> None:
    """Without any time the explorer shows a sentence instead of a picture."""
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
    """The message for an unknown choice lists the known ones, and the state does not change."""
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


def test_a_choice_adjusts_the_others(explorer: Explorer[CrossoverState]) -> None:
    """Values that the new operation does not offer are replaced by the nearest ones."""
    explorer.choose(dtype="float64", size=2**20)
    explorer.choose(workload="attention")
    assert (explorer.state.dtype, explorer.state.size) == ("float32", 1024)  # in the middle
    explorer.choose(size=2000)
    explorer.choose(workload="matmul")
    assert explorer.state.size == 2048


def test_measure_takes_both_sides() -> None:
    """``measure`` times both sides at each size, smallest first, and shows the curves."""
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
    """After a size that takes long, larger sizes of that side are skipped."""

    def slow(step: Task) -> Point:
        time_s = 1.0 if step.on == "cpu" and step.size >= 2**14 else 1e-5
        return Point(step, median_s=time_s, low_s=time_s, high_s=time_s, n_samples=1)

    monkeypatch.setattr(_open, "measure_step", slow)
    explorer = crossover_explorer("add", n_threads=1, **HERE)
    sizes = [p.task.size for p in explorer.measure() if p.task.on == "cpu"]  # type: ignore[union-attr]  # points
    assert sizes == [2**10, 2**12, 2**14]
    said = str(explorer._job)
    assert said == "13 points measured, 7 skipped (a smaller size failed or took too long)."


def test_interrupt_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends the measurement with its points, and the next one measures the rest."""
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
    """Failed points are counted separately, and the words say that nothing could be timed."""
    monkeypatch.setattr(_open, "measure_step", lambda step: Point(step, error="no room"))
    explorer = crossover_explorer("add", n_threads=1, **HERE)
    explorer.measure()
    # if the first size of a side fails, its larger ones are not tried
    assert str(explorer._job) == (
        "0 points measured, 2 failed, 18 skipped (a smaller size failed or took too long)."
    )
    assert explorer.scene.empty.startswith("no size of add float32 on the CPU could be timed")


@pytest.mark.slow
@pytest.mark.pixels
def test_file_by_suffix(explorer: Explorer[CrossoverState], tmp_path: Path) -> None:
    """The suffix chooses a picture or a table, and an unknown suffix is refused."""
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


@pytest.mark.slow
def test_page_without_widgets_has_picture_and_table(
    explorer: Explorer[CrossoverState],
) -> None:
    """An exported notebook shows the figure, its description and its data."""
    shown = explorer._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}
    assert "Line chart: add float32: CPU against GPU (CPU a CPU, measured" in shown["text/plain"]
    assert "At n = 1,024: CPU 2.31 µs" in shown["text/plain"]
    assert "<details><summary>Data</summary><table" in shown["text/html"]


@pytest.mark.slow
def test_a_front_end_gets_the_widget(
    explorer: Explorer[CrossoverState], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook with a front end gets the widget in addition to the figure."""
    monkeypatch.setattr(widgets, "is_watched", lambda: True)
    shown = explorer._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html", WIDGET}
    explorer.close()


@pytest.mark.slow
def test_controls_and_state_are_one(explorer: Explorer[CrossoverState]) -> None:
    """Moving a control changes the state, and changing the state moves the control."""
    widget(explorer, "size").index = 8
    assert explorer.state.size == options(explorer, "size")[8] == 4096
    explorer.choose(size=2**20, transfers="out")
    assert widget(explorer, "size").value == "1,048,576"
    assert widget(explorer, "link").options == ("its own", "PCIe 3", "PCIe 4", "PCIe 5", "NVLink")
    assert (widget(explorer, "cpu").disabled, widget(explorer, "gpu").disabled) == (True, False)
    explorer.close()


@pytest.mark.slow
def test_picture_follows_the_state(explorer: Explorer[CrossoverState]) -> None:
    """Picture, marks, words and text alternative follow each change of the state."""
    shown = picture(explorer)
    first, markers = shown.png, shown.markers
    assert Image.open(BytesIO(first)).size == (840, 460)
    explorer.choose(size=4096)
    assert shown.png == first  # only the marks have moved
    assert shown.markers != markers
    assert shown.words[0].startswith("At n = 4,096: CPU")
    assert shown.words[0] in shown.alt
    assert shown.alt.startswith("Line chart: add float32: CPU against GPU (CPU a CPU, measured")
    assert (shown.legend, "Series: CPU: a CPU, measured" in shown.alt) == ([], True)
    explorer.choose(transfers="both")
    assert shown.png != first
    explorer.choose(n_threads=2)
    assert (shown.empty[:16], shown.words) == ("No times of add ", [])
    explorer.close()


@pytest.mark.slow
def test_sharp_screens_get_more_pixels(explorer: Explorer[CrossoverState]) -> None:
    """The picture has as many pixels as the page's device pixel ratio needs, at most two times."""
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
    """Table and files are made only when the page asks for them."""
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
    """Run the event loop until a condition is true."""
    while not is_done():  # noqa: ASYNC110 # what it waits for sets no event
        await asyncio.sleep(0)


@pytest.mark.slow
def test_button_measures_by_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop runs between two steps, and the picture shows the points so far."""
    monkeypatch.setattr("gpulab.views.explorers._scheduling._PAUSE_S", 0.0)
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
    """Stop ends the measurement after the running step, and Start continues with the rest."""
    monkeypatch.setattr("gpulab.views.explorers._scheduling._PAUSE_S", 0.0)

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


@pytest.mark.slow
def test_driven_faster_than_it_draws() -> None:
    """While the page has not shown a picture, only the last of many choices is kept."""

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


@pytest.mark.slow
def test_close_leaves_nothing(explorer: Explorer[CrossoverState]) -> None:
    """After ``close`` no widget is registered, and points and state remain."""
    from ipywidgets import Widget

    before = len(Widget._instances) if hasattr(Widget, "_instances") else None
    shown = picture(explorer)
    explorer.close()
    assert shown.comm is None
    if before is not None:
        assert len(Widget._instances) == before
    assert explorer.scene.words
    explorer.close()


def test_other_thread_waits_for_its_turn() -> None:
    """An action asked for on another thread runs on the event loop's thread, which has the GPU."""
    import threading

    from gpulab.figures.widgets import JupyterLoop

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


@pytest.mark.slow
def test_a_second_gpu_is_drawn_beside_the_first(explorer: Explorer[CrossoverState]) -> None:
    """The second GPU has its own marker, and the words have its crossing and its speed."""
    assert len(explorer.scene.words) == 4
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
    assert len(explorer.scene.words) == 4


@pytest.mark.slow
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
    """The code gives an explorer of the same state, and contains only choices that were made."""
    explorer.choose(workload="exp", gpu="computed:A100", size=4096, transfers="out")
    names: dict[str, Any] = {"gpulab": gpulab}
    again = eval(explorer.code, names)  # our own code
    assert again.state == explorer.state
    assert "dtype" not in explorer.code
    assert explorer.code == picture(explorer).code
    explorer.close()


def test_nonsense_from_the_page_changes_nothing() -> None:
    """A message that is not ours is dropped without an error, and the next one counts."""
    shown = gpulab.explorers.crossover_explorer("add").widget.children[-1]
    number = shown.number
    messages: list[Any] = [{}, [], None, 3, {"shown": "x"}, {"file": 3}, {"file": "/etc/passwd"}]
    messages += [{"is_open": []}, {"ratio": "x", "dark": 1}, {"ratio": -1.0, "dark": True}]
    for message in [
        *messages,
        {"ratio": 1e9, "dark": True},
        {"ratio": float("nan"), "dark": True},
    ]:
        shown._handle_custom_msg(message, [])
    assert shown.number == number
