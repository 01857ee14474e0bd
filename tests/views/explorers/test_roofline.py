"""The roofline explorer without a browser: filters, views, roofs and measurements."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gpulab
from gpulab.core.errors import InvalidOptionError
from gpulab.roofline import Ceilings, predict
from gpulab.views.explorers import _open, roofline_explorer
from gpulab.views.explorers._roofline import FAMILIES, PREDICTION, ROOFLINE
from gpulab.views.explorers._roofline_points import listed
from gpulab.views.explorers._scene import CeilingsStep
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
    return roofline_explorer(gpu="here", found=KNOWN)


@pytest.mark.slow
def test_points_are_predicted_against_measured(explorer: Any) -> None:  # noqa: ANN401  # as above
    """A point's x is its prediction and y its measurement, in the unit of the axes."""
    explorer.choose(operations="add", span=2**24)
    (ring,) = explorer.scene.markers
    row = explorer.to_frame().iloc[0]
    assert (row["size"], row["workload"]) == (2**20, "add")
    assert row["refined_s"] == predict("add", 2**20, "float32", "H200").duration_s
    assert (ring.x, ring.y) == pytest.approx((row["refined_s"] * 1e6, row["measured_s"] * 1e6))
    explorer.choose(model="plain")
    assert explorer.scene.markers[0].x == pytest.approx(row["plain_s"] * 1e6)


def test_a_hint_describes_its_point(explorer: Any) -> None:  # noqa: ANN401  # as above
    """A hint has name, size, type, both predictions with ratios, measurement and bound."""
    explorer.choose(operations="add")
    hint = explorer.scene.spots[-1].hint.splitlines()
    assert hint[0] == "add, n = 268,435,456, float32, cold"
    assert hint[1].startswith("predicted, refined: ")
    assert hint[1].endswith(" times that")
    assert hint[2] == "predicted, plain: 671 µs; measured is 1.21 times that"
    assert hint[3:] == ["measured: 815 µs", "bound by memory"]


def test_a_learners_own_recording_is_chosen_first(tmp_path: Path) -> None:
    """A given recording is chosen first; without roofs of its own it gets the data sheet's."""
    assert roofline_explorer().state.gpu == "here"
    path = recording(KNOWN, tmp_path)
    explorer = roofline_explorer(recordings=path, view=ROOFLINE)
    assert explorer.state.gpu == f"recorded:{path}"
    assert "(NVIDIA H200, recorded)" in explorer.scene.title
    assert explorer.scene.words[-1].startswith("Roofs: data sheet")


def test_filters(explorer: Any) -> None:  # noqa: ANN401  # as above
    """Operations, cache and bytes moved filter the picture and the table."""
    assert len(explorer.to_frame()) == 8 + 10 + 7 + 10
    explorer.choose(operations=("softmax", "copy"))
    assert set(explorer.to_frame()["workload"]) == {"softmax", "copy"}
    explorer.choose(cache="hot", span=2**22)
    frame = explorer.to_frame()
    assert set(frame["cache"]) == {"hot"}
    assert sorted(frame["size"]) == [64, 2**18]
    assert explorer.scene.words[0].startswith(
        "Ringed, about 4.00 MiB moved: 2 points of 2 operations; the refined model is "
    )
    explorer.choose(operations="softmax", span=2**14)
    assert explorer.scene.words[0] == "No operation moves about 16.0 KiB at any of its sizes."


@pytest.mark.slow
def test_roofs_and_points_below_them(explorer: Any) -> None:  # noqa: ANN401  # as above
    """The roofline shows the data sheet's roof, and the measured one after a measurement."""
    explorer.choose(view=ROOFLINE)
    assert "copy" not in {spot.hint.partition(",")[0] for spot in explorer.scene.spots}
    assert explorer.widget is not None
    explorer.choose(operations="add")
    roofs = []
    for _ in range(2):
        roofs.append(explorer.scene.words[-1])
        explorer.measure()
    assert roofs == ["Roofs: data sheet.", "Roofs: measured."]
    explorer.close()


def test_table_begins_with_the_farthest(explorer: Any) -> None:  # noqa: ANN401  # as above
    """Rows are sorted by how far they are off, and the words name the first one."""
    off = (explorer.to_frame()["refined_ratio"].map(lambda ratio: max(ratio, 1 / ratio))).tolist()
    assert off == sorted(off, reverse=True)
    assert explorer.scene.words[1].startswith(f"Farthest: {explorer.to_frame()['workload'][0]} n")


@pytest.mark.slow
def test_gpu_without_measurements() -> None:
    """A GPU without measurements has a roofline of predictions, and nothing to compare."""
    explorer = roofline_explorer(gpu="computed:A100")
    assert explorer.scene.empty == (
        "Of this GPU there are predictions only, nothing measured. Choose the picture "
        "“roofline”, or a GPU that was recorded."
    )
    explorer.choose(view=ROOFLINE)
    assert explorer.scene.title.endswith("(NVIDIA A100-SXM4-80GB: predicted, nothing measured)")
    assert explorer.scene.words[0].endswith("; predictions only.")
    assert "not measured" in explorer.scene.spots[0].hint
    assert explorer.figure().title.startswith("Roofline, float32")


def test_nothing_to_see_says_what_to_do(explorer: Any) -> None:  # noqa: ANN401  # as above
    """Without a chosen operation, or without measured points, a sentence says what to do."""
    explorer.choose(operations=())
    assert explorer.scene.empty == (
        "No operation is chosen. Press one or more names, or the name of a family."
    )
    explorer.choose(operations=names()[:3], dtype="float64")
    assert explorer.scene.empty == (
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
    text = explorer.figure().description
    assert "The x axis shows predicted (µs), from " in text
    assert "The y axis shows measured (µs), from " in text
    explorer.choose(view=ROOFLINE)
    text = explorer.figure().description
    assert "The x axis shows arithmetic intensity (FLOP/byte), from " in text
    assert "The y axis shows reached (TFLOP/s), from " in text


def test_families_have_every_operation_once() -> None:
    """Each operation is in exactly one family, so that all can be chosen."""
    members = [name for _, family in FAMILIES for name in family]
    assert sorted(members) == sorted(names())


@pytest.mark.slow
def test_operations_are_chosen_by_families(explorer: Any) -> None:  # noqa: ANN401  # as above
    """The widget groups names by family, and pressing names chooses them."""
    assert explorer.widget is not None
    chips = explorer._panel._controls.widgets["operations"]
    assert [family for family, _ in chips.families] == [family for family, _ in FAMILIES]
    chips.index = [chips.options.index("exp"), chips.options.index("add")]
    assert explorer.state.operations == ("exp", "add")
    explorer.choose(operations=("softmax",))
    assert [chips.options[place] for place in chips.index] == ["softmax"]
    explorer.close()


@pytest.mark.slow
def test_a_second_gpu_is_drawn_beside_the_first(explorer: Any) -> None:  # noqa: ANN401  # as above
    """The second GPU has dash-dotted roofs and its own marker, and the words compare both."""
    explorer.choose(view=ROOFLINE, operations=("add", "matmul"), beside="computed:T4", span=2**24)
    scene = explorer.scene
    frame = explorer.to_frame()
    times_s = frame[(frame["size"] == 2**20)].set_index("device_name")["refined_s"]
    ratio = times_s["Tesla T4"] / times_s[GPU]
    assert scene.words[-2].startswith(
        "Second GPU: Tesla T4, predicted. By the refined predictions of both at 2 points, it "
    )
    assert f" {ratio:.3g} times (add n = 1,048,576)" in scene.words[-2]
    assert scene.words[-1] == (
        "Roofs of the first and the second GPU: float32 66.9 TFLOP/s and 8.10 TFLOP/s, "
        "memory 4.80 TB/s and 320 GB/s."
    )
    assert scene.spots[-1].hint.splitlines()[1] == "second GPU: Tesla T4, predicted"
    (ax,) = explorer.figure().canvas.axes
    drawn = {line.get_label(): (line.get_marker(), line.get_linestyle()) for line in ax.lines}
    assert drawn["second GPU, predicted"] == ("v", "None")
    named = [text.get_text().replace("\n", " ") for text in ax.texts]
    assert named[0].startswith("float32 66.9 TFLOP/s")
    assert named[1] == "memory, 4.80 TB/s"
    assert named[-2:] == ["second GPU: float32", "second GPU: memory"]
    assert "second GPU: Tesla T4, predicted" in scene.title
    assert ax.get_ylim()[0] < min(spot.y for spot in scene.spots)
    assert len(scene.markers) == 4


def test_a_state_of_another_version_says_what_is_missing(explorer: Any) -> None:  # noqa: ANN401  # as above
    """Choices that are unknown here are named on the page, the others stay; a choice ends it."""
    saved = replace(explorer.state, gpu="recorded:gone", dtype="float8", span=2**24)
    object.__delattr__(saved, "beside")  # as if pickled before the field was there
    explorer.state = saved
    assert (explorer.state.gpu, explorer.state.span) == ("here", 2**24)
    assert explorer.scene.words[-1] == (
        "gpu='recorded:gone' is not offered here; 'here' is shown instead. "
        "The state has no beside; it is '' here. "
        "dtype='float8' is not offered here; 'float32' is shown instead."
    )
    assert explorer.scene.words[0].startswith("Ringed, about 16.0 MiB moved: ")
    explorer.state = replace(explorer.state, operations=("abacus",))
    assert explorer.scene.empty.endswith("\noperations='abacus' is not offered here.")
    explorer.choose(operations="add")
    assert "not offered" not in " ".join(explorer.scene.words)
    with pytest.raises(InvalidOptionError, match=r"a RooflineState, such as explorer\.state"):
        explorer.state = {"gpu": "here"}


@pytest.mark.slow
def test_the_line_of_code_reproduces_the_view(tmp_path: Path) -> None:
    """Running the line gives the same picture, words and table, also with your own recording."""
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
        one, other = explorer.scene, again.scene
        assert (one.title, one.words, one.markers) == (other.title, other.words, other.markers)
        assert one.spots == other.spots
        assert explorer.figure().svg == again.figure().svg
        assert again.code == explorer.code


def test_second_gpu_measured_too(explorer: Any, tmp_path: Path) -> None:  # noqa: ANN401  # as above
    """Two measured GPUs are compared by their measured times, on the first one's axes."""
    slower = [replace(p, median_s=2 * p.median_s, high_s=3 * p.median_s) for p in KNOWN]
    path = recording(tuple(slower), tmp_path)
    explorer = roofline_explorer(gpu="here", found=KNOWN, recordings=path, operations="add")
    before = explorer.scene
    explorer.choose(beside=f"recorded:{path}")
    scene = explorer.scene
    assert "By measured times of both at 10 points, it takes 2 times" in scene.words[-1]
    one, other = scene.spots[0], scene.spots[len(before.spots)]
    assert (other.x, other.y) == pytest.approx((one.x, 2 * one.y))
    explorer.choose(beside="")
    assert explorer.scene.words == before.words


@pytest.mark.slow
def test_a_second_gpu_without_points_is_not_drawn(explorer: Any) -> None:  # noqa: ANN401  # as above
    """The words say why the second GPU is not drawn, and the first one's points stay."""
    before = explorer.scene
    explorer.choose(beside="computed:T4")
    assert explorer.scene.spots == before.spots
    why = (
        "The second GPU is not drawn. Of this GPU there are predictions only, nothing measured. "
        "Choose the picture “roofline”, or a GPU that was recorded."
    )
    assert explorer.scene.words == (*before.words, why)
    with pytest.raises(InvalidOptionError, match=r"beside='abacus'; choose one of '', "):
        explorer.choose(beside="abacus")


@pytest.mark.parametrize("gpu", ["recorded:h200-sxm-2026-11", "computed:L4"])
def test_explorers_share_the_tables_of_the_package(
    gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording's table is made once, however many explorers show it."""
    monkeypatch.setattr("gpulab.workloads.recordings.list", lambda: ["h200-sxm-2026-11"])
    first, second = (listed(gpu, "float32", "cold", ()) for _ in range(2))
    assert first is second
    assert listed("here", "float32", "cold", ()).empty
