"""Predictions and roofs: the refined model agrees with the virtual GPU to the nanosecond."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

import gpulab
from gpulab import gpus, recordings, roofline
from gpulab.core.errors import InvalidOptionError, RecordingError
from gpulab.gpus import Roof, _datasheets
from gpulab.roofline import _predict
from gpulab.roofline._kernel_model import _kernels_of
from gpulab.virtual import VirtualGpu, virtual_gpu
from gpulab.workloads import WORKLOADS, workload
from gpulab.workloads.sweeps import Point, Task

H200 = "NVIDIA H200"
MATMUL = Task("matmul", 4096, "float16")


@pytest.fixture
def virtual() -> Iterator[VirtualGpu]:
    """Enter a warm virtual H200 whose tensors have no values."""
    with virtual_gpu("H200", first_use=False, max_value_elements=0) as gpu:
        yield gpu


def span_ns(name: str, size: int, dtype: str, cache: str) -> int:
    """Return the span of a workload from the records of the GPU in use."""
    work = workload(name).make(size, dtype)
    found = gpulab.measure(work, method="profiler-span", cache=cache, n_samples=3, progress=False)
    return round(found.median_s * 1e9)


def predicted_ns(name: str, size: int, dtype: str, cache: str) -> int:
    """Return the refined prediction for the GPU in use."""
    return round(roofline.predict(name, size, dtype, cache=cache).duration_s * 1e9)


def point(task: Task, median_s: float, **given: object) -> Point:
    """Return a point of a virtual H200."""
    fields = {"source": "virtual", "device_name": H200, "n_samples": 1, **given}
    return Point(task, median_s=median_s, low_s=median_s, high_s=median_s, **fields)  # type: ignore[arg-type] # of several types


# Predictions


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.usefixtures("virtual")
def test_the_refined_model_is_that_of_the_virtual_gpu(name: str) -> None:
    """With a hot cache the prediction equals the virtual GPU's records, pauses included."""
    size = workload(name).sizes[1]
    assert predicted_ns(name, size, "float32", "hot") == span_ns(name, size, "float32", "hot")


@pytest.mark.parametrize("name", ["matmul", "linear", "add", "sum", "sort", "attention"])
@pytest.mark.usefixtures("virtual")
def test_cold_it_differs_by_what_the_flush_leaves(name: str) -> None:
    """With a cold cache it is shorter by at most the write-back of the flush's 8 kB of sums."""
    size = workload(name).sizes[3]
    found = span_ns(name, size, "float32", "cold")
    assert 0 <= found - predicted_ns(name, size, "float32", "cold") <= 31


@pytest.mark.usefixtures("virtual")
def test_predicting_changes_nothing_of_the_gpu_in_use(virtual: VirtualGpu) -> None:
    """A prediction changes neither time, memory nor random state of the GPU in use."""
    _kernels_of.cache_clear()
    torch.manual_seed(1)
    before = (virtual.now_s, torch.cuda.memory_allocated(), torch.get_rng_state().tolist())
    roofline.predict("dropout", 4096)
    after = (virtual.now_s, torch.cuda.memory_allocated(), torch.get_rng_state().tolist())
    assert before == after


def test_the_plain_model_is_the_textbook() -> None:
    """The plain model is FLOPs over peak or bytes over bandwidth, from the data sheet."""
    found = roofline.predict("matmul", 4096, "float16", "A100", model="plain")
    assert found.compute_s == found.duration_s == 2 * 4096**3 / 312e12
    assert found.memory_s == 3 * 4096**2 * 2 / 2.039e12
    assert (found.bound, found.launch_s) == ("compute", 0)
    assert found.intensity == pytest.approx(4096 / 3, rel=1e-15)
    assert found.basis.startswith("data sheet: NVIDIA A100")


@pytest.mark.parametrize(
    ("name", "size", "cache", "bound"),
    [
        ("matmul", 4096, "cold", "compute"),
        ("add", 1 << 26, "cold", "memory"),
        ("add", 1 << 20, "hot", "L2"),
        ("add", 1 << 10, "hot", "launch"),
    ],
)
def test_the_bound_is_what_takes_the_most(name: str, size: int, cache: str, bound: str) -> None:
    """The bound is the largest part, each of the four occurs, and the parts add up."""
    found = roofline.predict(name, size, "float32", "H200", cache=cache)
    assert found.bound == bound
    together = found.launch_s + max(found.compute_s, found.memory_s)
    assert together == pytest.approx(found.duration_s, abs=2e-9)


@pytest.fixture
def _tf32() -> Iterator[None]:
    """Restore the TF32 switch; monkeypatch cannot, as the module computes the attribute."""
    before = torch.backends.cuda.matmul.allow_tf32
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.usefixtures("_tf32")
def test_tf32_follows_torchs_switch() -> None:
    """With TF32 allowed, both models use its peak for matmuls at once."""
    single = roofline.predict("matmul", 4096, "float32", "H200")
    torch.backends.cuda.matmul.allow_tf32 = True
    rounded = roofline.predict("matmul", 4096, "float32", "H200")
    assert (single.arithmetic, rounded.arithmetic) == ("float32", "tf32")
    assert rounded.duration_s < single.duration_s / 4
    plain = roofline.predict("matmul", 4096, "float32", "H200", model="plain")
    assert plain.duration_s == 2 * 4096**3 / _datasheets.gpu("H200").peak_flops_per_s["tf32"]
    assert _predict.arithmetic_of(workload("matmul"), 64, "float16") == "float16"


def test_a_measured_roof_gives_the_plain_model_other_limits() -> None:
    """The plain model can use a measured roof of any GPU."""
    roof = Roof("measured", {"float16": 100e12}, 1e12, detail="by hand")
    found = roofline.predict("matmul", 1024, "float16", roof, model="plain")
    assert found.duration_s == 2 * 1024**3 / 100e12
    assert (found.basis, found.device_name) == ("measured: by hand", "")
    bare = roofline.predict("copy", 1000, "float32", replace(roof, detail=""), model="plain")
    assert (bare.basis, bare.duration_s) == ("measured", 8000 / 1e12)


def test_the_refined_model_wants_a_gpu() -> None:
    """The refined model needs a GPU, so a roof is refused."""
    with pytest.raises(InvalidOptionError) as error:
        roofline.predict("add", 64, gpu=Roof("measured", {"float32": 1e12}, 1e12))
    assert str(error.value) == (
        "gpu is a roof (measured) and model='refined'; the refined model needs the GPU itself: "
        'give its name, or use model="plain"'
    )


def test_what_does_not_fit_is_refused() -> None:
    """A size beyond the GPU's memory is refused, and the next prediction works."""
    with pytest.raises(InvalidOptionError) as error:
        roofline.predict("add", 1 << 33, "float32", "T4")
    assert str(error.value) == (
        "add of size=8589934592 in float32 does not fit into the 16 GB of the Tesla T4; "
        "take a smaller size"
    )
    assert roofline.predict("add", 1 << 10, "float32", "T4").duration_s < 1e-5


@pytest.mark.slow
@pytest.mark.usefixtures("virtual")
def test_a_gpu_without_a_data_sheet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU without a data sheet has measured roofs only, and the error says so."""
    for module in (gpus, _datasheets):
        monkeypatch.setattr(module, "by_driver_name", lambda _name: None)
    with pytest.raises(InvalidOptionError) as error:
        roofline.predict("add", 64)
    assert str(error.value) == (
        "NVIDIA H200 is not in the table of GPUs: there is no data sheet to compare with, only "
        "roofs that are measured on it; predict with those: "
        'predict(..., gpu=measure_ceilings().measured, model="plain")'
    )
    found = roofline.measure_ceilings(max_time_s=0.01)
    assert [roof.basis for roof in found.roofs] == ["measured"]
    assert str(found).splitlines()[1] == _datasheets.why_unknown(H200)


# Ceilings


@pytest.mark.slow
@pytest.mark.usefixtures("virtual")
def test_the_three_roofs_are_kept_apart() -> None:
    """Measured roofs lie below the data sheet's, and those of the top clock at or above it."""
    found = roofline.measure_ceilings(max_time_s=0.01)
    assert (found.device_name, found.source) == (H200, "virtual")
    sheet, live, measured = found.data_sheet, found.live, found.measured
    assert sheet is not None
    assert live is not None
    assert measured is not None
    tensor = 1980 / 1830  # of the clock at which the peaks of tensor cores are stated
    higher = {name: live.peak(name) / peak for name, peak in sheet.peak_flops_per_s.items()}
    assert higher == pytest.approx(
        {"float16": tensor, "bfloat16": tensor, "tf32": tensor, "float32": 1, "float64": 1}
    )
    for name, peak in sheet.peak_flops_per_s.items():
        assert 0.6 * peak < measured.peak(name) < peak
    assert 0.7 < measured.bandwidth_bytes_per_s / sheet.bandwidth_bytes_per_s < 1
    assert measured.l2_bytes_per_s is not None
    # Copies that do not fit into the L2 would be hardly faster than the memory.
    assert measured.l2_bytes_per_s > 1.3 * measured.bandwidth_bytes_per_s
    assert measured.floor_s is not None
    assert 0.5e-6 < measured.floor_s < 3e-6
    assert measured.detail == "matmuls of 4096 and 8192, copy of 1024 MiB"


def test_roofs_survive_a_recording() -> None:
    """Recorded ceilings are read back equal, and missing ones stay unknown."""
    roofs = (
        Roof("data sheet", {"float16": 989e12}, 4.8e12, detail="a document"),
        Roof("measured", {"float16": 788e12}, 4.3e12, 8e12, 1.2e-6, "by hand"),
    )
    rows = tuple(roofline.Ceilings(H200, "measured", roofs).to_rows())
    assert rows[0] == {
        "roof": "data sheet",
        "quantity": "float16",
        "value": 989e12,
        "unit": "FLOP/s",
        "detail": "a document",
    }
    recording = recordings.Recording("mine", {"gpu": H200}, (), {"ceilings": rows})
    assert roofline.ceilings_of(recording) == roofline.Ceilings(H200, "recorded", roofs)
    of_model = recordings.Recording(
        "mine", {"gpu": H200, "source": "virtual"}, (), {"ceilings": rows}
    )
    assert roofline.ceilings_of(of_model).source == "virtual"


def test_ceilings_as_text_and_as_a_table() -> None:
    """Text and table have every value with its unit."""
    roof = Roof("measured", {"float16": 788e12}, 4.3e12, 8e12, 1.2e-6, "by hand")
    found = roofline.Ceilings(H200, "measured", (roof,))
    assert str(found) == (
        "Ceilings of NVIDIA H200, measured\n"
        "measured: float16 788 TFLOP/s, memory 4.30 TB/s, L2 8.00 TB/s, floor 1.20 µs (by hand)"
    )
    table = found.to_frame()
    assert table["quantity"].tolist() == ["float16", "memory", "L2", "floor"]
    assert table["unit"].tolist() == ["FLOP/s", "B/s", "B/s", "s"]
    assert set(table["device_name"]) == {H200}


# Predicted against measured


def test_a_ratio_is_measured_over_predicted() -> None:
    """A point with three times the predicted time has the ratio 3."""
    plain = roofline.predict("matmul", 4096, "float16", "H200", model="plain")
    refined = roofline.predict("matmul", 4096, "float16", "H200")
    (row,) = roofline.table([point(MATMUL, 3 * plain.duration_s)]).to_dict("records")
    assert row["plain_ratio"] == 3
    assert row["refined_ratio"] == 3 * plain.duration_s / refined.duration_s
    assert row["flops_per_s"] == pytest.approx(plain.flops / plain.duration_s / 3, rel=1e-15)
    assert (row["bound"], row["plain_bound"], row["plain_basis"]) == (
        "compute",
        "compute",
        "data sheet",
    )


@pytest.mark.parametrize(
    "left_out",
    [
        point(Task("add", 64, on="cpu"), 1e-3),
        point(Task("add", 64, transfers="in"), 1e-3),
        point(Task("add", 64, method="synchronized"), 1e-3),
        point(Task("add", 64), 0.0),
        Point(Task("add", 64), error="out of memory"),
    ],
)
def test_what_cannot_be_compared_is_left_out(left_out: Point) -> None:
    """Only GPU times without copies and errors are in the table."""
    table = roofline.table([left_out, point(MATMUL, 1e-3)])
    assert table["workload"].tolist() == ["matmul"]


def test_errors_are_those_of_the_prediction() -> None:
    """A time of twice the prediction means that the prediction is 50 % too low."""
    plain_s = roofline.predict("matmul", 4096, "float16", "H200", model="plain").duration_s
    table = roofline.table([point(MATMUL, factor * plain_s) for factor in (1, 2, 4)])
    plain = roofline.errors(table).to_dict("records")[0]
    assert plain == {
        "model": "plain",
        "n": 3,
        "median": 0.5,
        "p90": pytest.approx(0.7, rel=1e-12),
        "median_signed": -0.5,
    }
    by_workload = roofline.errors(table, by="workload")
    assert by_workload["workload"].tolist() == ["matmul", "matmul"]


# Charts


def test_a_chart_takes_one_type_of_data() -> None:
    """Points of other types are left out, and without any the error lists the types."""
    ceilings = roofline.Ceilings(H200, "virtual", roofline.ceilings("H200").roofs)
    points = [point(MATMUL, 1e-3), point(Task("conv3x3", 16), 1e-3), point(Task("add", 64), 1e-6)]
    chart = roofline.chart(points, ceilings)
    assert chart.to_frame()["workload"].tolist() == ["conv3x3", "add"]
    assert chart.arithmetics == ("tf32", "float32")
    assert (chart.source, chart.device_name) == ("virtual", H200)
    with pytest.raises(InvalidOptionError) as error:
        roofline.chart([points[0], point(replace(MATMUL, dtype="bfloat16"), 1e-3)], ceilings)
    assert (
        str(error.value)
        == "dtype='float32', and no point of it can be compared; there are bfloat16, float16"
    )
    with pytest.raises(InvalidOptionError) as error:
        roofline.chart([], ceilings)
    assert str(error.value) == (
        "no point can be compared: they must be measured on a GPU, without transfers"
    )


def test_points_and_roofs_of_different_gpus_are_not_drawn_together() -> None:
    """Points and roofs of different GPUs are refused."""
    ceilings = roofline.Ceilings("NVIDIA L4", "virtual", roofline.ceilings("L4").roofs)
    with pytest.raises(InvalidOptionError) as error:
        roofline.chart([point(MATMUL, 1e-3)], ceilings, dtype="float16")
    assert str(error.value) == (
        "the points are virtual on NVIDIA H200 and the ceilings virtual on NVIDIA L4; use points "
        "and ceilings of the same GPU"
    )


@pytest.mark.parametrize(
    "row",
    [
        {"quantity": "memory", "value": 1.0},
        {"roof": "measured", "quantity": "memory", "value": -1.0},
        {"roof": "measured", "quantity": "memory", "value": "fast"},
        {"roof": "measured", "quantity": 3, "value": 1.0},
    ],
)
def test_a_recorded_roof_that_is_no_figure_is_refused(row: dict[str, object]) -> None:
    """A recorded roof must be a positive number with a name."""
    recording = recordings.Recording("mine", {"gpu": H200}, (), {"ceilings": (row,)})
    with pytest.raises(RecordingError) as error:
        roofline.ceilings_of(recording)
    assert str(error.value) == (
        f"mine is damaged: {row} in its section of ceilings is not a value of a roof, above 0; "
        "take the original again, or make a new one: gpulab record --out FILE"
    )
