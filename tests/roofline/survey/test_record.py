"""Recording a machine: what is planned and saved, and what is left out with which reason."""

import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gpulab import device, recordings
from gpulab.cli import record as command
from gpulab.core.errors import (
    ClocksUnavailableError,
    InvalidOptionError,
    NotSavedError,
    RecordingError,
)
from gpulab.core.units import counted
from gpulab.roofline.survey import _plan, _record, _transfers, plan, record
from gpulab.roofline.survey._plan import LONGEST_CPU_S, SurveySection
from gpulab.workloads.sweeps import Point, Task
from tests.support.refusing import halting

Taken = list[str]


@pytest.fixture(autouse=True)
def _on_a_virtual_gpu() -> None:
    """Use the virtual H200."""
    device.use("H200")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return the path to record to."""
    return tmp_path / "mine.jsonl"


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Taken:
    """Give each section one row and each point 1 µs; return what was taken, in order."""
    done: Taken = []

    def take(task: Task, _effort: object) -> Point:
        done.append(task.key)
        return Point(task, median_s=1e-6, low_s=1e-6, high_s=1e-6, n_samples=10)

    def rows_of(name: str) -> Callable[..., Iterator[dict[str, Any]]]:
        def rows(*, quick: bool) -> Iterator[dict[str, Any]]:
            done.append(name)
            yield {"quick": quick}

        return rows

    parts = tuple(
        SurveySection(part.name, part.summary, rows_of(part.name), part.estimate_s)
        for part in _plan._ROW_SECTIONS
    )
    monkeypatch.setattr(_plan, "_ROW_SECTIONS", parts)
    monkeypatch.setattr(_record, "measure_point", take)
    return done


def after(monkeypatch: pytest.MonkeyPatch, n: int, error: BaseException) -> None:
    """Make the n-th point from now on fail once, with this error."""
    take, left = _record.measure_point, [n]

    def failing(task: Task, effort: object) -> Point:
        left[0] -= 1
        if left[0] == 0:
            raise error
        return take(task, effort)

    monkeypatch.setattr(_record, "measure_point", failing)


@pytest.mark.slow
def test_a_full_recording_has_everything(out: Path, taken: Taken) -> None:
    """A full recording has all workloads, types and caches, the CPU, transfers and sections."""
    found = record(out, progress=False)
    frame = found.frame()
    assert tuple(found.sections) == (*_plan.SECTIONS[:2], "left_out")
    gpu = frame[(frame["on"] == "gpu") & (frame["method"] == "calibrated")]
    per_kind = gpu.groupby(["workload", "dtype", "cache"])["size"].nunique()
    assert len(per_kind) == 2 * sum(len(work.dtypes) for work in _plan.WORKLOADS.values())
    assert per_kind.min() == 4
    assert per_kind.max() == 7
    waited = frame[frame["method"] == "synchronized"]
    assert set(waited["transfers"]) == {"none", "in", "out", "both"}
    for some in (waited, frame[frame["on"] == "cpu"]):
        assert set(some["workload"]) == {*_plan.WORKLOADS}
    assert taken[:2] == list(_plan.SECTIONS[:2])
    assert len(taken) == len(set(taken)) == len(frame) + 2


def test_the_plan_fits_an_h200(taken: Taken) -> None:
    """The plan of a full recording is under six minutes and its text says so first."""
    planned = plan()
    assert planned.estimate_s < 360
    assert str(planned).splitlines()[:2] == [
        f"Recording virtual NVIDIA H200: about {planned.estimate_s:.0f} s, and 600 s at most",
        "  ceilings: bandwidth, arithmetic, cache and floor, 5.0 s",
    ]
    assert not taken
    assert "the time will probably end" not in str(planned)


def test_a_short_time_names_what_will_be_missing() -> None:
    """The plan names the least valuable items as those that will not fit into the time."""
    last = str(plan(minutes=1)).splitlines()[-1]
    assert last.startswith("  the time will probably end before these: ")
    assert last.endswith("66 of one thread of the CPU, 90 of sizes in between, 580 of other types")


def test_the_same_call_resumes(out: Path, taken: Taken) -> None:
    """A repeated call adds what is missing and measures nothing twice."""
    record(out, sections=["transfers"], quick=True, progress=False)
    n_quick = len(record(out, quick=True, progress=False).points)
    assert sorted(taken) == sorted(set(taken))
    again = record(out, quick=True, progress=False)
    assert len(taken) == n_quick + 2
    assert len(again.points) == n_quick
    assert f"  {n_quick + 2} results already in the file" in str(plan(out, quick=True))


def test_what_failed_is_tried_again(
    out: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A point that failed is measured again, because memory may be free by then."""
    take = _record.measure_point
    monkeypatch.setattr(
        _record, "measure_point", lambda task, _effort: Point(task, error="out of memory")
    )
    first = record(out, sections=["catalogue"], quick=True, progress=False)
    assert not any(point.ok for point in first.points)
    monkeypatch.setattr(_record, "measure_point", take)
    second = record(out, sections=["catalogue"], quick=True, progress=False)
    assert [point.task for point in second.points] == [point.task for point in first.points]
    assert all(point.ok for point in second.points)
    assert len(taken) == len(second.points)


def test_an_interrupt_keeps_what_there_is(
    out: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C leaves a complete file of fewer points, and the same call adds the rest."""
    after(monkeypatch, 4, KeyboardInterrupt())
    found = record(out, sections=["catalogue"], quick=True, progress=False)
    assert [point.task.key for point in found.points] == taken
    assert len(taken) == 3
    reasons = found.section("left_out")["reason"]
    assert list(reasons) == ["the recording was interrupted"] * 15
    whole = record(out, sections=["catalogue"], quick=True, progress=False)
    assert len(whole.points) == 18
    assert whole.section("left_out").empty


def test_a_crash_keeps_what_there_is(
    out: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unexpected error leaves a file that can be loaded and resumed."""
    after(monkeypatch, 4, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        record(out, sections=["catalogue"], quick=True, progress=False)
    assert len(recordings.load(out).points) == len(taken) == 3
    assert len(record(out, sections=["catalogue"], quick=True, progress=False).points) == 18


@pytest.mark.slow
@pytest.mark.parametrize("n_bytes", [600, 60_000])
def test_a_full_disk_loses_nothing(
    out: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch, n_bytes: int
) -> None:
    """On a full disk, the error carries all that was measured, sections and points."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", halting(n_bytes, full))
        with pytest.raises(NotSavedError) as error:
            record(out, progress=False)
    partial = error.value.partial
    assert isinstance(partial, recordings.Recording)
    assert [*partial.sections, *(point.task.key for point in partial.points)] == taken
    assert str(error.value) == (
        f"{out} cannot be written: No space left on device; make room on the disk, or give a file "
        f"on another one; what was measured ({counted(len(partial.points), 'point')}) is in "
        "memory, as .partial of this error; after a traceback it is sys.last_value.partial"
    )
    again = record(out, progress=False)
    assert {*again.sections, *(point.task.key for point in again.points)} == {*taken, "left_out"}
    assert len(taken) == len(set(taken)) + 1  # the one that was refused


def test_a_line_cut_off_by_a_crash_is_taken_again(out: Path, taken: Taken) -> None:
    """A file with half a line and no checksum is repaired and completed."""
    record(out, sections=["catalogue"], quick=True, progress=False)
    header, *points = out.read_text("utf-8").splitlines()
    stale = {"what": taken[0], "reason": "of a run before"}
    left_out = json.dumps({"section": "left_out", "rows": [stale]})
    out.write_text("\n".join([header, left_out, *points[:4], points[5][:30]]), "utf-8")
    found = record(out, sections=["catalogue"], quick=True, progress=False)
    assert len(found.points) == 18
    assert len(taken) == 18 + 14
    assert found.section("left_out").empty


def test_the_time_limit_is_respected(
    out: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Points that would end too late are left out and listed, and the others are measured."""
    now_s = [0.0]
    take = _record.measure_point

    def slow(task: Task, effort: object) -> Point:
        now_s[0] += 10
        return take(task, effort)

    monkeypatch.setattr(_record, "measure_point", slow)
    monkeypatch.setattr(_record.time, "monotonic", lambda: now_s[0])
    found = record(out, minutes=1, sections=["catalogue"], quick=True, progress=False)
    assert len(taken) == 6
    assert list(found.section("left_out")["reason"]) == ["the time was over"] * 12


def test_a_section_that_cannot_be_had_is_left_out(
    out: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a section cannot be measured, only that section is missing."""

    def rows(*, quick: bool) -> list[dict[str, Any]]:
        raise ClocksUnavailableError(f"NVML is missing, quick={quick}\nand so on")

    parts = [
        SurveySection(part.name, "", rows, 1.0) if part.name == "transfers" else part
        for part in _plan._ROW_SECTIONS
    ]
    monkeypatch.setattr(_plan, "_ROW_SECTIONS", parts)
    found = record(out, sections=["transfers", "ceilings"], progress=False)
    assert taken == ["ceilings"]
    assert found.section("left_out").to_dict("records") == [
        {"what": "transfers", "reason": "NVML is missing, quick=False"}
    ]


def test_a_gpu_that_failed_ends_it(
    out: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a CUDA error no further point is tried, as each would fail in the same way."""
    take = _record.measure_point

    def failing(task: Task, effort: object) -> Point:
        if len(taken) < 3:
            return take(task, effort)

        def synchronize() -> None:
            raise RuntimeError("CUDA error: an illegal memory access was encountered\nCUDA ...")

        monkeypatch.setattr(_record.torch.cuda, "synchronize", synchronize)
        return Point(task, error="CUDA error")

    monkeypatch.setattr(_record, "measure_point", failing)
    found = record(out, sections=["catalogue"], quick=True, progress=False)
    assert len(found.points) == 3
    assert (
        list(found.section("left_out")["reason"])
        == ["the GPU failed: CUDA error: an illegal memory access was encountered"] * 15
    )


def test_sizes_that_take_the_cpu_too_long_are_left_out(
    out: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CPU size is left out if the smaller size's time predicts too long a call."""
    take = _record.measure_point

    def slow(task: Task, effort: object) -> Point:
        take(task, effort)
        second = _plan._cpu_call_s(task) * 3
        return Point(task, median_s=second, low_s=second, high_s=second, n_samples=1)

    monkeypatch.setattr(_record, "measure_point", slow)
    found = record(out, sections=["cpu"], quick=True, progress=False)
    assert [task for task in taken if task.startswith("matmul")] == [
        "matmul/4/float32/cpu/hot/wall/none",
        "matmul/16/float32/cpu/hot/wall/none",
        "matmul/64/float32/cpu/hot/wall/none",
        "matmul/1024/float32/cpu/hot/wall/none",
    ]
    left = found.section("left_out")
    assert left["what"][0] == "matmul/8192/float32/cpu/hot/wall/none"
    assert set(left["reason"]) == {"one call takes too long"}


def test_a_fixed_cost_does_not_grow() -> None:
    """A slow start of threads does not count as slow computing when larger sizes are predicted."""
    small = Point(Task("matmul", 64, on="cpu"), median_s=0.016, n_samples=1)
    foretold_s = _plan.scaled_s(Task("matmul", 512, on="cpu"), small)
    assert foretold_s < LONGEST_CPU_S
    quick = Point(Task("matmul", 64, on="cpu"), median_s=1e-6, n_samples=1)
    assert _plan.scaled_s(Task("matmul", 128, on="cpu"), quick) == pytest.approx(8e-6)


def test_somebody_elses_file_is_left_alone(out: Path, taken: Taken) -> None:
    """A file that is no recording, or was edited, is refused and not changed."""
    out.write_text("notes\n", "utf-8")
    with pytest.raises(RecordingError, match="is not a recording"):
        record(out)
    assert out.read_text("utf-8") == "notes\n"
    out.unlink()
    record(out, sections=["transfers"], progress=False)
    edited = out.read_text("utf-8").replace("H200", "H900")
    out.write_text(edited, "utf-8")
    with pytest.raises(RecordingError, match="does not fit its checksum"):
        record(out)
    assert out.read_text("utf-8") == edited
    assert taken == ["transfers"]


def test_another_machine_is_refused(out: Path, taken: Taken) -> None:
    """A file from another GPU is refused and stays complete."""
    record(out, sections=["transfers"], progress=False)
    device.use("A100")
    with pytest.raises(InvalidOptionError, match="was measured with gpu='NVIDIA H200'"):
        record(out, progress=False)
    assert list(recordings.load(out).sections) == ["transfers", "left_out"]
    assert taken == ["transfers"]


def test_a_packed_file_is_refused(tmp_path: Path, taken: Taken) -> None:
    """A compressed file is refused, because lines cannot be added to it."""
    path = tmp_path / "mine.jsonl.gz"
    with pytest.raises(RecordingError) as error:
        record(path)
    assert str(error.value) == (
        f"{path} would be a compressed file, and results cannot be added to one; record to a "
        "name that ends in .jsonl, and compress it afterwards: gpulab.recordings.save(...)"
    )
    assert not taken


@pytest.mark.slow
def test_points_of_the_catalogue_are_measured(out: Path) -> None:
    """On the virtual GPU and this CPU, all points of a quick recording succeed."""
    found = record(out, sections=["catalogue", "crossover"], quick=True, progress=False)
    assert found.is_virtual
    assert len(found.points) == 46
    assert all(point.ok and point.source == "virtual" for point in found.points)
    table = recordings.compare(found, out)
    assert list(table["ratio"]) == [1.0] * 46


@pytest.mark.slow
def test_copies_are_timed_in_all_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pinned copies return at once and have a device time; pageable ones block and have none."""
    monkeypatch.setattr(_transfers, "_SIZES", (4 << 20,))
    with device.active():
        rows = {(row["direction"], row["memory"]): row for row in _transfers.rows(quick=False)}
    assert list(rows) == [
        ("in", "pinned"),
        ("out", "pinned"),
        ("in", "pageable"),
        ("out", "pageable"),
        ("both", "pinned"),
    ]
    pinned, pageable = rows["in", "pinned"], rows["in", "pageable"]
    assert pinned["returns_s"] < pinned["device_s"] < pinned["total_s"] < pageable["returns_s"]
    # On an H200 1.48 times: the host launches a wait, two copies and two events more.
    assert rows["both", "pinned"]["total_s"] < 1.75 * pinned["total_s"]
    assert pageable["device_s"] is None
    assert {row["size_bytes"] for row in rows.values()} == {4 << 20}


def test_an_interrupted_reading_ends_the_survey(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C inside a measurement reaches the survey, although `measure` keeps its samples."""

    class Interrupted:
        stopped_by = "interrupt"

    monkeypatch.setattr(_transfers, "measure", lambda *_given, **_options: Interrupted())
    with pytest.raises(KeyboardInterrupt):
        _transfers.brief_measurement(lambda: None, "naive")


def test_the_command_records(out: Path, taken: Taken) -> None:
    """The command prints the plan, what was recorded, and what is missing."""
    done = CliRunner().invoke(command, ["--out", str(out), "--quick", "--gpu", "H200"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Recording virtual NVIDIA H200: about ")
    assert f"{out}: virtual NVIDIA H200 and " in done.output
    assert "left out: 2: one call takes too long" in done.output
    assert len(recordings.load(out).points) == len(taken) - 2
