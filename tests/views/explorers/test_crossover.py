"""The crossover explorer without a browser: its choices, its words and its measurements."""

import asyncio
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


def test_threads_of_the_cpu(explorer: Explorer[CrossoverState]) -> None:
    """Powers of two up to the CPU's cores are offered; a number without times says so."""
    assert options(explorer, "n_threads") == [None, 4, 2, 1]
    explorer.choose(n_threads=4)
    table = explorer.to_frame().set_index(["on", "size"])["median_s"]
    assert table["cpu", 2**24] == pytest.approx(1.26e-3, rel=0.01)
    explorer.choose(n_threads=2)
    assert str(explorer) == (
        "No times of add float32 on this machine's CPU yet. Press “Measure here”, or choose "
        "another CPU above."
    )


def test_a_link_can_be_chosen_only_with_transfers(explorer: Explorer[CrossoverState]) -> None:
    """Links are offered once transfers are chosen, and a slower link takes longer."""
    assert options(explorer, "link") == [None]
    explorer.choose(transfers="both", size=2**24)
    assert options(explorer, "link") == [None, "PCIe 3", "PCIe 4", "PCIe 5", "NVLink"]
    times = []
    for link in ("PCIe 3", "PCIe 4", 4e10, "PCIe 5", "NVLink"):
        explorer.choose(link=link)
        table = explorer.to_frame()
        times.append(table[table["transfers"] == "both"]["median_s"].max())
    assert times == sorted(times, reverse=True)
    explorer.choose(transfers="none")
    assert explorer.state.link is None


def test_a_learners_own_recording_is_chosen_first(tmp_path: Path) -> None:
    """A given recording is both GPU and CPU at first, with its own numbers of threads."""
    path = recording(points("add", n_threads=(2, 8)), tmp_path)
    explorer = crossover_explorer("add", recordings=path, size=2**24)
    assert explorer.state.gpu == explorer.state.cpu == f"recorded:{path}"
    assert options(explorer, "n_threads") == [8, 2]
    assert explorer.state.n_threads == 8
    assert "(CPU a CPU, recorded; GPU NVIDIA H200, recorded)" in str(explorer)
    table = explorer.to_frame().set_index(["on", "size"])["median_s"]
    assert table["cpu", 2**24] == pytest.approx(631e-6, rel=0.01)
    assert table["gpu", 2**24] == pytest.approx(60.3e-6, rel=0.01)


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
    assert "CPU a CPU, measured; GPU virtual NVIDIA A100" in str(explorer)
    assert "extrapolated" in str(explorer)
    assert "the sides have different sources, measured and virtual" in str(explorer)


def test_nothing_measured_says_what_to_do() -> None:
    """Without any time the explorer shows a sentence instead of a picture."""
    explorer = crossover_explorer("add", **HERE)
    text = (
        "No times of add float32 on this machine's CPU yet. Press “Measure here”, or choose "
        "another CPU above."
    )
    assert str(explorer) == text
    assert explorer._shown()["text/plain"] == text
    for refused in (explorer.figure, lambda: explorer.save("x.png")):
        with pytest.raises(InvalidOptionError, match="No times of add"):
            refused()
    assert explorer.to_frame().empty
    explorer.close()  # nothing was shown or measured


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
    assert explorer.state.size == 2000


def test_measure_takes_both_sides() -> None:
    """``measure`` times both sides at each size, smallest first, and shows the curves."""
    explorer = crossover_explorer("add", n_threads=1, transfers="in", size=1024, **HERE)
    found = explorer.measure()
    assert [(p.task.on, p.task.transfers) for p in found[:3]] == [
        *[("cpu", "none"), ("gpu", "none"), ("gpu", "in")]
    ]
    assert [p.task.size for p in found[:4]] == [1024, 1024, 1024, 4096]
    assert set(explorer.to_frame()["transfers"]) == {"none", "in"}
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
    assert str(explorer).startswith("no size of add float32 on the CPU could be timed")


@pytest.mark.slow
@pytest.mark.pixels
def test_file_by_suffix(explorer: Explorer[CrossoverState], tmp_path: Path) -> None:
    """A picture is the one that is shown, with its names; an unknown suffix is refused."""
    shown = np.asarray(Image.open(BytesIO(explorer.figure().png)))
    assert shown.shape[:2] == (960, 1800)
    saved = np.asarray(Image.open(explorer.save(tmp_path / "a.png")))
    assert np.array_equal(saved, shown)
    assert "</svg>" in explorer.save(tmp_path / "a.svg").read_text("utf-8")
    table = pd.read_csv(explorer.save(tmp_path / "a.csv"))
    assert len(table) == len(explorer.to_frame()) == 20
    with pytest.raises(InvalidOptionError) as refused:
        explorer.save("a.txt")
    assert str(refused.value) == (
        "path='a.txt'; its name must end in one of .png, .svg, .pdf, .csv"
    )


async def until(is_done: Callable[[], bool]) -> None:
    """Run the event loop until a condition is true."""
    while not is_done():  # noqa: ASYNC110 # what it waits for sets no event
        await asyncio.sleep(0)


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


def test_the_code_shows_the_same_view_again(explorer: Explorer[CrossoverState]) -> None:
    """The code gives an explorer of the same state, and contains only choices that were made."""
    explorer.choose(workload="exp", gpu="computed:A100", size=4096, transfers="out")
    names: dict[str, Any] = {"gpulab": gpulab}
    again = eval(explorer.code, names)  # our own code
    assert again.state == explorer.state
    assert "dtype" not in explorer.code
