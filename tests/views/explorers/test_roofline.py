"""The roofline explorer without a browser: filters, views, roofs and measurements."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpulab
from gpulab.core.errors import InvalidOptionError
from gpulab.core.units import format_percent, format_ratio
from gpulab.roofline import Ceilings
from gpulab.views.explorers import _open, roofline_explorer
from gpulab.views.explorers._roofline import PREDICTION, ROOFLINE
from gpulab.views.explorers._roofline_points import listed
from gpulab.views.explorers._scene import CeilingsStep
from gpulab.views.explorers._sources import FAMILIES
from gpulab.workloads import names, workload
from gpulab.workloads.sweeps import Point, Task
from tests.support.explored import GPU, formula, recording, take

pytestmark = pytest.mark.usefixtures("no_pixels")

KNOWN = tuple(
    formula(Task(name, size, cache=cache))
    for name in ("matmul", "add", "softmax", "copy")
    for cache in ("cold", "hot")
    for size in workload(name).sizes
)


@pytest.fixture(autouse=True)
def _formula_in_place_of_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_open, "measure_step", take)
    monkeypatch.setattr("gpulab.workloads.recordings.list", tuple)  # shipped recordings may change


@pytest.fixture
def explorer() -> Any:  # noqa: ANN401  # the state's type is private
    """Return an explorer of four operations that were measured here."""
    return roofline_explorer(gpu="here", found=KNOWN, operations=names())


def words(explorer: Any) -> list[str]:  # noqa: ANN401  # as above
    """Return the sentences below the title."""
    return str(explorer).splitlines()[1:]


def test_a_learners_own_recording_is_chosen_first(tmp_path: Path) -> None:
    """A given recording is chosen first; without roofs of its own it gets the data sheet's."""
    assert roofline_explorer().state.gpu == "here"
    path = recording(KNOWN, tmp_path)
    explorer = roofline_explorer(recordings=path, view=ROOFLINE)
    assert explorer.state.gpu == f"recorded:{path}"
    assert "(NVIDIA H200, recorded)" in str(explorer)
    assert words(explorer)[-1].startswith("Roofs: data sheet")


def test_filters(explorer: Any) -> None:  # noqa: ANN401  # as above
    """Operations, cache and bytes moved filter the picture and the table."""
    assert len(explorer.to_frame()) == 8 + 10 + 7 + 10
    explorer.choose(operations=("softmax", "copy"))
    assert set(explorer.to_frame()["workload"]) == {"softmax", "copy"}
    explorer.choose(cache="hot", span=2**22)
    frame = explorer.to_frame()
    assert set(frame["cache"]) == {"hot"}
    assert sorted(frame["size"]) == [64, 2**18]
    assert words(explorer)[0] == "About 4.00 MiB moved: 2 points of 2 operations."
    explorer.choose(operations="softmax", span=2**14)
    assert words(explorer)[0] == "No operation moves about 16.0 KiB at any of its sizes."


@pytest.mark.slow
def test_roofs_and_points_below_them(explorer: Any) -> None:  # noqa: ANN401  # as above
    """The roofline shows the data sheet's roof, and the measured one after a measurement."""
    explorer.choose(view=ROOFLINE)
    assert "copy" not in set(explorer.to_frame()["workload"])
    explorer.choose(operations="add")
    roofs = []
    for _ in range(2):
        roofs.append(words(explorer)[-1])
        explorer.measure()
    assert roofs == ["Roofs: data sheet.", "Roofs: measured."]


def test_table_begins_with_the_farthest(explorer: Any) -> None:  # noqa: ANN401  # as above
    """Rows are sorted by how far they are off, and the words have the errors of both models."""
    off = (explorer.to_frame()["plain_ratio"].map(lambda ratio: max(ratio, 1 / ratio))).tolist()
    assert off == sorted(off, reverse=True)
    error = (1 / explorer.to_frame()["plain_ratio"] - 1).abs().median()
    assert words(explorer)[1].startswith(
        f"The plain model: half of them are within {format_percent(error)}, nine of ten within "
    )


@pytest.mark.slow
def test_gpu_without_measurements() -> None:
    """A GPU without measurements has a roofline of predictions, and nothing to compare."""
    explorer = roofline_explorer(gpu="computed:T4")
    assert str(explorer) == (
        "Of this GPU there are predictions only, nothing measured. Choose the picture "
        "“roofline”, or a GPU that was recorded."
    )
    explorer.choose(view=ROOFLINE)
    assert str(explorer).startswith("Roofline, float32, cache cold (Tesla T4, predicted)\n")
    assert words(explorer) == ["40 points of 5 operations.", "Roofs: data sheet."]
    with pytest.raises(InvalidOptionError, match="nothing measured to draw in a figure"):
        explorer.figure()


def test_nothing_to_see_says_what_to_do(explorer: Any) -> None:  # noqa: ANN401  # as above
    """Without a chosen operation, or without measured points, a sentence says what to do."""
    explorer.choose(operations=())
    assert str(explorer) == (
        "No operation is chosen. Press one or more names, or the name of a family."
    )
    explorer.choose(operations=names()[:3], dtype="float64")
    assert str(explorer) == (
        "Nothing of float64, cache cold, is measured here. Press “Measure here”, or choose "
        "another GPU, type or cache above."
    )


def test_operations_stay_chosen_over_types(explorer: Any) -> None:  # noqa: ANN401  # as above
    """Operations hidden by a type that they lack are chosen again with another type."""
    explorer.choose(dtype="float64")
    explorer.choose(dtype="float32")
    assert explorer.state.operations == names()


def test_steps_are_the_roofs_and_what_is_shown(explorer: Any) -> None:  # noqa: ANN401  # as above
    """The button measures the ceilings and the chosen operations at the chosen sizes."""
    explorer.choose(operations=("add", "linear"), dtype="float16", cache="hot", span=2**22)
    assert explorer._model.steps(explorer.state) == (
        CeilingsStep(),
        Task("add", 2**20, "float16", cache="hot"),  # the weights alone of linear are more
    )
    found = explorer.measure()
    assert isinstance(found[0], Ceilings)
    assert all(isinstance(point, Point) for point in found[1:])
    assert found[0].device_name == GPU


def test_view_has_its_own_axes(explorer: Any) -> None:  # noqa: ANN401  # as above
    """The description of each view names its axes with units."""
    assert explorer.state.view == PREDICTION
    figure = explorer.figure()
    assert "The x axis shows predicted (µs), from " in figure.description
    assert "The y axis shows measured (µs), from " in figure.description
    frame = explorer.to_frame()
    n_near = frame["plain_ratio"].between(0.5, 2).sum()
    assert figure.title.startswith(f"{n_near} of 35 predictions are right within a factor of 2 (")
    (ax,) = figure.canvas.axes
    diagonal, points = ax.lines
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())
    drawn = np.sort(points.get_ydata() / points.get_xdata())
    assert drawn == pytest.approx(np.sort(frame["plain_ratio"]))
    farthest = format_ratio(frame["plain_ratio"][0])
    assert figure.caption.endswith(f"The farthest is {farthest} times its prediction.")
    # Each operation is named once, at its farthest point.
    assert sorted(text.get_text() for text in ax.texts) == ["add", "copy", "matmul", "softmax"]
    explorer.choose(view=ROOFLINE)
    text = explorer.figure().description
    assert "The x axis shows arithmetic intensity (FLOP/byte), from " in text
    assert "The y axis shows reached (TFLOP/s), from " in text


def test_families_have_every_operation_once() -> None:
    """Each operation is in exactly one family, so that all can be chosen."""
    members = [name for _, family in FAMILIES for name in family]
    assert sorted(members) == sorted(names())


@pytest.mark.slow
def test_the_table_has_the_points_of_a_second_gpu(explorer: Any) -> None:  # noqa: ANN401  # as above
    """Without a point of the second GPU, the table is that of the first one."""
    explorer.choose(view=ROOFLINE, operations=("add", "matmul"), beside="computed:T4", span=2**24)
    assert set(explorer.to_frame()["device_name"]) == {GPU, "Tesla T4"}
    explorer.choose(view=PREDICTION)
    assert set(explorer.to_frame()["device_name"]) == {GPU}


@pytest.mark.slow
def test_the_line_of_code_reproduces_the_view(tmp_path: Path) -> None:
    """Running the line gives the same words and table, also with your own recording."""
    path = recording(KNOWN, tmp_path)
    views: tuple[dict[str, Any], ...] = (
        {},
        {"gpu": "computed:T4", "beside": f"recorded:{path}", "span": 2**24, "cache": "hot"},
        {"operations": ("add", "softmax"), "model": "plain", "view": PREDICTION},
    )
    for view in views:
        few = {"view": ROOFLINE, "operations": ("add", "matmul"), **view}
        explorer = roofline_explorer(recordings=path, **few)
        again = eval(explorer.code, {"gpulab": gpulab})  # our own code
        assert str(again) == str(explorer)
        assert again.to_frame().equals(explorer.to_frame())
        assert again.code == explorer.code


@pytest.mark.parametrize("gpu", ["recorded:h200-sxm-2026-11", "computed:T4"])
def test_explorers_share_the_tables_of_the_package(
    gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording's table is made once, however many explorers show it."""
    monkeypatch.setattr("gpulab.workloads.recordings.list", lambda: ["h200-sxm-2026-11"])
    first, second = (listed(gpu, "float32", "cold", ()) for _ in range(2))
    assert first is second
    assert listed("here", "float32", "cold", ()).empty
