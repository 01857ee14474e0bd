"""Crossovers are exact for made-up points and on the virtual GPU, and name their sources."""

import math
from dataclasses import replace

import pytest

from gpulab import virtual_gpu
from gpulab.core.errors import InvalidOptionError
from gpulab.roofline.scaling import Crossover, crossover
from gpulab.workloads.sweeps import Point, Task

SIZES = tuple(2**exponent for exponent in range(10, 25, 2))
GPU = Task("add", 1, method="synchronized", cache="hot")
CPU = Task("add", 1, on="cpu")
N_BYTES = 12  # a float32 addition reads two values and writes one per element


def points(
    task: Task, fixed_s: float, bytes_per_s: float, *, off: float = 0.0, **fields: str
) -> list[Point]:
    """Return points on a line, each with an interval of `off` to both sides."""
    made = []
    for size in SIZES:
        time_s = fixed_s + N_BYTES * size / bytes_per_s
        at = replace(task, size=size)
        ends = {"low_s": time_s * (1 - off), "high_s": time_s * (1 + off)}
        made.append(Point(at, median_s=time_s, n_samples=9, **ends, **fields))
    return made


ON_CPU = points(CPU, 1e-6, 20e9, device_name="Some CPU", source="recorded")
ON_GPU = points(GPU, 11e-6, 4e12, device_name="NVIDIA H200", source="recorded")
WITH_COPIES = points(
    replace(GPU, transfers="both"), 31e-6, 50e9, device_name="NVIDIA H200", source="recorded"
)
ALL = [*ON_CPU, *ON_GPU, *WITH_COPIES]


def test_the_lines_predict_the_crossing() -> None:
    """The predicted crossing is (11 - 1) µs over the difference of the slopes."""
    record = crossover("add", source=ALL)
    found = record.predicted
    assert found is not None
    assert f"from these lines: {found}" in record.details
    assert found.size == pytest.approx(10e-6 / (1 / 20e9 - 1 / 4e12) / N_BYTES, rel=1e-3)


def test_a_prediction_says_that_nobody_measured_it() -> None:
    """If the lines do not cross, the prediction says that it is about lines."""
    always = points(GPU, 1e-9, 4e12, device_name="NVIDIA H200")
    found = crossover("add", source=[*ON_CPU, *always]).predicted
    assert str(found) == ("no crossing: the GPU is faster at every size of the lines (from 4)")


@pytest.mark.parametrize("side", ["cpu", "gpu"])
def test_the_prediction_is_as_uncertain_as_its_lines(side: str) -> None:
    """Points off the line on either side widen the predicted interval."""
    shaken = [
        replace(point, median_s=point.median_s * (1.1 if index % 2 else 0.9))
        if point.task.on == side
        else point
        for index, point in enumerate([*ON_CPU, *ON_GPU])
    ]
    found = crossover("add", source=shaken).predicted
    assert found is not None
    assert found.low < 0.95 * found.size
    assert found.high > 1.05 * found.size


def test_the_measured_crossing_is_between_its_sizes() -> None:
    """The crossing is interpolated between 2^14 and 2^16 in both logarithms."""
    found = crossover("add", source=ALL).crossing
    left, right = (math.log(ON_GPU[i].median_s / ON_CPU[i].median_s) for i in (2, 3))
    assert found.kind == "once"
    assert found.size == pytest.approx(2**14 * 4 ** (left / (left - right)))
    assert (found.low, found.high) == (found.size, found.size)


def test_the_interval_joins_both_errors() -> None:
    """With ±1 % on both curves, their ratio is uncertain by 1.4 %."""
    wide = [
        *points(CPU, 1e-6, 20e9, off=0.01, device_name="Some CPU"),
        *points(GPU, 11e-6, 4e12, off=0.01, device_name="Some GPU"),
    ]
    found = crossover("add", source=wide).crossing
    left, right = (math.log(ON_GPU[i].median_s / ON_CPU[i].median_s) for i in (2, 3))
    mixed = math.hypot(math.log(1.01), math.log(0.99))
    share = left / (left - right)
    assert found.low == pytest.approx(2**14 * 4 ** (share - mixed / (left - right)))
    assert found.high == pytest.approx(2**14 * 4 ** (share + mixed / (left - right)))


def test_with_transfers_both_crossings_are_printed() -> None:
    """The text gives the crossing without copies and the one with them."""
    found = crossover("add", source=ALL, transfers="both")
    assert (
        str(found)
        == repr(found)
        == ("n = 16,700 [16,700, 16,700]; with transfers: n = 88,900 [88,900, 88,900]")
    )
    moved = points(replace(GPU, transfers="both"), 31e-6, 15e9, device_name="NVIDIA H200")
    slow = [*ON_CPU, *ON_GPU, *(replace(point, source="recorded") for point in moved)]
    assert str(crossover("add", source=slow, transfers="both")).endswith(
        "; with transfers: no crossing: the GPU is slower at every size up to 2^24"
    )


def test_the_frame_has_a_row_for_each_time() -> None:
    """The table has a row per time of all curves, with lines and sources."""
    table = crossover("add", source=ALL, transfers="both").to_frame()
    assert list(table.columns) == [
        *("on", "size", "median_s", "low_s", "high_s", "line_s"),
        *("transfers", "how", "source", "device_name"),
    ]
    assert table.groupby(["on", "transfers"]).size().to_dict() == {
        ("cpu", "none"): 8,
        ("gpu", "none"): 8,
        ("gpu", "both"): 8,
    }
    assert table["line_s"].to_numpy() == pytest.approx(table["median_s"].to_numpy(), rel=1e-4)


def test_missing_transfers_are_computed_for_the_gpus_own_link() -> None:
    """Copies that a source has no times of are computed by the GPU's own link."""
    found = crossover("add", source=ALL, transfers="in")
    assert found.gpu.how == "transfers in, computed for the link of the H200 (63.0 GB/s)"
    assert found.gpu.median_s[0] > ON_GPU[0].median_s


def test_a_gpu_without_known_link_asks_for_one() -> None:
    """For a GPU whose link is unknown, the error asks for a link by name."""
    unknown = [*ON_CPU, *(replace(point, device_name="Mystery") for point in ON_GPU)]
    with pytest.raises(InvalidOptionError) as error:
        crossover("add", source=unknown, transfers="both")
    assert str(error.value) == (
        "link=None, and the link of 'Mystery' is not known; name one of "
        "PCIe 3, PCIe 4, PCIe 5, NVLink"
    )


@pytest.mark.slow
def test_a_data_sheet_gpu_is_computed_beside_given_cpu_times() -> None:
    """A named GPU is simulated at the sizes that the CPU has times for."""
    found = crossover("add", source=ALL, gpu="T4", progress=False)
    assert found.gpu.name == "GPU: virtual Tesla T4, extrapolated"
    assert found.gpu.sizes == found.cpu.sizes == SIZES
    assert "different sources, recorded and virtual" in found.details
    again = crossover("add", source=ALL, gpu="T4", progress=False)
    assert again.gpu.median_s == found.gpu.median_s


def test_the_gpu_in_use_is_measured_without_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a source both sides are measured, and transfers only if no link is named."""
    asked: list[Task] = []

    def given(task: Task, *, precision: float, max_time_s: float) -> Point:
        assert (precision, max_time_s) == (0.05, 0.1)
        asked.append(task)
        return next(p for p in ALL if p.task == task)

    monkeypatch.setattr("gpulab.roofline.scaling._crossover.take", given)
    options = {"precision": 0.05, "max_time_s": 0.1, "progress": False}
    with virtual_gpu("H200"):
        crossover("add", [2**20, 2**10, 2**20], transfers="both", **options)
    assert [(t.on, t.size, t.transfers) for t in asked] == [
        ("cpu", 2**10, "none"),
        ("cpu", 2**20, "none"),
        ("gpu", 2**10, "none"),
        ("gpu", 2**20, "none"),
        ("gpu", 2**10, "both"),
        ("gpu", 2**20, "both"),
    ]
    asked.clear()
    crossover("add", [2**20], transfers="both", link="PCIe 4", **options)
    assert [t.transfers for t in asked] == ["none", "none"]


@pytest.mark.slow
def test_the_computed_link_agrees_with_the_copies_of_the_virtual_gpu() -> None:
    """Times computed for the GPU's own link are close to measured ones.

    Small sizes differ more, because a measurement includes Python's time between the copies.
    """
    by_clock = crossover("add", source=ON_CPU, gpu="H200", transfers="both", progress=False)
    by_link = crossover(
        "add", source=ON_CPU, gpu="H200", transfers="both", link="PCIe 5", progress=False
    )
    assert by_link.gpu.median_s == pytest.approx(by_clock.gpu.median_s, rel=0.2)
    assert by_link.gpu.median_s[4:] == pytest.approx(by_clock.gpu.median_s[4:], rel=0.1)


def test_one_size_has_no_line_and_no_prediction() -> None:
    """One size gives no line and no prediction, and a clear error for both."""
    found = crossover("add", [2**10], source=ALL)
    assert found.predicted is None
    assert "from these lines" not in found.details
    assert (found.cpu.fixed_s, found.cpu.slope_s) == (None, None)
    assert str(found.cpu) == "CPU: Some CPU, recorded: too few points for a line"
    assert found.to_frame()["line_s"].isna().all()
    with pytest.raises(InvalidOptionError) as error:
        found.line(found.cpu, SIZES)
    assert str(error.value) == (
        "CPU: Some CPU, recorded has 1 point, which gives no line; take two or more sizes"
    )


def test_sides_without_a_common_size_cannot_cross() -> None:
    """Without a common size, the error lists the sizes of each side."""
    found = crossover("add", source=[*ON_CPU[:2], *ON_GPU[2:4]])
    with pytest.raises(InvalidOptionError) as error:
        str(found)
    assert str(error.value) == (
        "no size has a time on both sides: the CPU has 1024, 4096, the GPU 16384, 65536; "
        "take the same sizes on both"
    )


def test_missing_sizes_are_listed() -> None:
    """A size that could not be timed is listed with its reason."""
    failed = Point(replace(GPU, size=2**30), error="out of memory: needs 12 GiB")
    found: Crossover = crossover("add", source=[*ALL, failed])
    assert found.gpu.missing == ((2**30, "out of memory: needs 12 GiB"),)
    assert found.details.splitlines()[-1] == "  GPU, n = 1073741824: out of memory: needs 12 GiB"
