"""Recording a machine: what is planned and saved, and what is left out with which reason."""

import errno
import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd
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
from gpulab.roofline.survey import _plan, _record, plan, record
from gpulab.workloads.sweeps import Point, Sweep, Task
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
    """Give the ceilings one row and each point 1 µs; return what was taken, in order."""
    done: Taken = []

    def take(task: Task, **_effort: float) -> Point:
        done.append(task.key)
        return Point(task, median_s=1e-6, low_s=1e-6, high_s=1e-6, n_samples=10)

    class Ceilings:
        def to_rows(self) -> list[dict[str, Any]]:
            done.append("ceilings")
            return [{"roof": "measured"}]

    monkeypatch.setattr(_record.roofline, "measure_ceilings", lambda **_options: Ceilings())
    monkeypatch.setattr(_record, "take", take)
    return done


def after(monkeypatch: pytest.MonkeyPatch, n: int, error: BaseException) -> None:
    """Make the n-th point from now on fail once, with this error."""
    take, left = _record.take, [n]

    def failing(task: Task, **effort: float) -> Point:
        left[0] -= 1
        if left[0] == 0:
            raise error
        return take(task, **effort)

    monkeypatch.setattr(_record, "take", failing)


def test_a_full_recording_has_everything(taken: Taken) -> None:
    """It has all workloads, types and caches, the CPU, transfers and ceilings, within its time."""
    planned = plan()
    assert planned.has_ceilings
    assert planned.estimate_s < 360
    assert str(planned) == (
        "Recording virtual NVIDIA H200: the ceilings and "
        f"{len(planned.tasks):,} points, about {planned.estimate_s:.0f} s on an H100 and 600 s at "
        "most"
    )
    assert not taken
    assert len(planned.tasks) == len({task.key for task in planned.tasks})
    frame = pd.DataFrame([asdict(task) for task in planned.tasks])
    gpu = frame[(frame["on"] == "gpu") & (frame["method"] == "calibrated")]
    per_kind = gpu.groupby(["workload", "dtype", "cache"])["size"].nunique()
    assert len(per_kind) == 2 * sum(len(work.dtypes) for work in _plan.WORKLOADS.values())
    assert per_kind.min() == 4
    assert per_kind.max() == 7
    waited = frame[frame["method"] == "synchronized"]
    assert set(waited["transfers"]) == {"none", "in", "out", "both"}
    for some in (waited, frame[frame["on"] == "cpu"]):
        assert set(some["workload"]) == {*_plan.WORKLOADS}


def test_the_same_call_resumes(out: Path, taken: Taken) -> None:
    """A repeated call adds what is missing and measures nothing twice."""
    record(out, sections=["ceilings"], quick=True, progress=False)
    n_quick = len(record(out, quick=True, progress=False).points)
    assert taken[0] == "ceilings"
    assert sorted(taken) == sorted(set(taken))
    again = record(out, quick=True, progress=False)
    assert len(taken) == n_quick + 1
    assert len(again.points) == n_quick
    assert str(plan(out, quick=True)).endswith(f"; {n_quick + 1} results already in the file")


def test_what_failed_is_tried_again(
    out: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A point that failed is measured again, because memory may be free by then."""
    take = _record.take
    monkeypatch.setattr(
        _record, "take", lambda task, **_effort: Point(task, error="out of memory")
    )
    first = record(out, sections=["catalogue"], quick=True, progress=False)
    assert not any(point.ok for point in first.points)
    monkeypatch.setattr(_record, "take", take)
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


def test_a_full_disk_loses_nothing(
    out: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk, the error carries all that was measured, sections and points."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", halting(4_000, full))
        with pytest.raises(NotSavedError) as error:
            record(out, quick=True, progress=False)
    partial = error.value.partial
    assert isinstance(partial, Sweep)
    assert ["ceilings", *(point.task.key for point in partial.points)][: len(taken)] == taken
    assert "No space left on device; make room on the disk" in str(error.value)
    again = record(out, quick=True, progress=False)
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
    take = _record.take

    def slow(task: Task, **effort: float) -> Point:
        now_s[0] += 10
        return take(task, **effort)

    monkeypatch.setattr(_record, "take", slow)
    monkeypatch.setattr(_record.time, "monotonic", lambda: now_s[0])
    found = record(out, minutes=1, sections=["catalogue"], quick=True, progress=False)
    assert len(taken) == 6
    assert list(found.section("left_out")["reason"]) == ["the time was over"] * 12


def test_a_section_that_cannot_be_had_is_left_out(
    out: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a section cannot be measured, only that section is missing."""

    def refuse(**_options: object) -> None:
        raise ClocksUnavailableError("NVML is missing\nand so on")

    monkeypatch.setattr(_record.roofline, "measure_ceilings", refuse)
    found = record(out, sections=["ceilings", "catalogue"], quick=True, progress=False)
    assert len(taken) == 18
    assert found.section("left_out").to_dict("records") == [
        {"what": "ceilings", "reason": "NVML is missing"}
    ]


def test_a_gpu_that_failed_ends_it(
    out: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a CUDA error no further point is tried, as each would fail in the same way."""
    take = _record.take

    def failing(task: Task, **effort: float) -> Point:
        if len(taken) < 3:
            return take(task, **effort)

        def synchronize() -> None:
            raise RuntimeError("CUDA error: an illegal memory access was encountered\nCUDA ...")

        monkeypatch.setattr(_record.torch.cuda, "synchronize", synchronize)
        return Point(task, error="CUDA error")

    monkeypatch.setattr(_record, "take", failing)
    found = record(out, sections=["catalogue"], quick=True, progress=False)
    assert len(found.points) == 3
    assert (
        list(found.section("left_out")["reason"])
        == ["the GPU failed: CUDA error: an illegal memory access was encountered"] * 15
    )


@pytest.mark.parametrize(("section", "kind"), [("cpu", "cpu"), ("catalogue", "gpu")])
def test_sizes_that_take_too_long_are_left_out(
    out: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch, section: str, kind: str
) -> None:
    """A size is left out if the smaller sizes' times predict too long a call."""
    take = _record.take

    def slow(task: Task, **effort: float) -> Point:
        duration_s = 1e-4 + 5e-12 * task.size**3
        return replace(take(task, **effort), median_s=duration_s)

    monkeypatch.setattr(_record, "take", slow)
    found = record(out, sections=[section], quick=True, progress=False)
    assert any(f"matmul/1024/float32/{kind}" in key for key in taken)
    assert not any(f"matmul/8192/float32/{kind}" in key for key in taken)
    left = found.section("left_out")
    assert f"matmul/8192/float32/{kind}" in left["what"][0]
    assert set(left["reason"]) == {"one call takes too long"}


def test_a_fixed_cost_does_not_grow() -> None:
    """What the smallest size takes counts once, however much larger the next size is."""
    points = [
        Point(Task("add", n), median_s=time_s, n_samples=9)
        for n, time_s in ((64, 1e-3), (256, 3e-3))
    ]
    assert _record.expected_s(Task("add", 1024), points) == pytest.approx(1e-3 + 4 * 2e-3)
    assert _record.expected_s(Task("add", 1 << 30), points[:1]) == 1e-3
    assert _record.expected_s(Task("add", 64), points) == 0


def test_somebody_elses_file_is_left_alone(out: Path, taken: Taken) -> None:
    """A file that is no recording, or was edited, is refused and not changed."""
    out.write_text("notes\n", "utf-8")
    with pytest.raises(RecordingError, match="is not a recording"):
        record(out)
    assert out.read_text("utf-8") == "notes\n"
    out.unlink()
    record(out, sections=["ceilings"], progress=False)
    edited = out.read_text("utf-8").replace("H200", "H900")
    out.write_text(edited, "utf-8")
    with pytest.raises(RecordingError, match="does not fit its checksum"):
        record(out)
    assert out.read_text("utf-8") == edited
    assert taken == ["ceilings"]


def test_another_machine_is_refused(out: Path, taken: Taken) -> None:
    """A file from another GPU is refused and stays complete."""
    record(out, sections=["ceilings"], progress=False)
    device.use("A100")
    with pytest.raises(InvalidOptionError, match="was measured with gpu='NVIDIA H200'"):
        record(out, progress=False)
    assert list(recordings.load(out).sections) == ["ceilings", "left_out"]
    assert taken == ["ceilings"]


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
    sections = ["catalogue", "crossover"]
    found = record(out, sections=sections, quick=True, progress=False)
    assert found.is_virtual
    left_out = {row["what"] for row in found.sections["left_out"]}
    planned = {task.key for task in _plan.plan_tasks(sections, quick=True)}
    assert planned == left_out | {point.task.key for point in found.points}
    assert all(point.ok and point.source == "virtual" for point in found.points)
    table = recordings.compare(found, out)
    assert list(table["ratio"]) == [1.0] * len(found.points)


def test_the_command_records(out: Path, taken: Taken) -> None:
    """The command prints the plan, what was recorded, and what is missing."""
    done = CliRunner().invoke(command, ["--out", str(out), "--quick", "--gpu", "H200"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Recording virtual NVIDIA H200: the ceilings and ")
    assert f"{out}: virtual NVIDIA H200 and " in done.output
    assert "left out: 2: its data are larger than a survey copies" in done.output
    assert len(recordings.load(out).points) == len(taken) - 1
