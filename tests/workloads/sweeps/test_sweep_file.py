"""The file of a sweep has one writer at a time, and a failing disk loses no points."""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

import gpulab
from gpulab.core.errors import FileInUseError, NotSavedError
from gpulab.workloads.sweeps import (
    Point,
    Sweep,
    Task,
    _executor,
    _measure_point,
    sweep,
    take,
    tasks_of,
)
from tests.support.refusing import halting, refusal

TASKS = tasks_of(["add", "exp"], [1024, 4096], caches=["hot"])
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(autouse=True)
def _h200() -> Iterator[None]:
    """Enter a virtual H200."""
    with gpulab.virtual_gpu("H200"):
        yield


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """Return the list of measured tasks, which grows with each measurement."""
    found: list[Task] = []

    def noting(task: Task, effort: Any) -> Point:  # noqa: ANN401  # as the original
        found.append(task)
        return original(task, effort)

    original = _executor.measure_point
    monkeypatch.setattr(_executor, "measure_point", noting)
    return found


def test_a_second_sweep_with_the_file_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A second sweep with the same file fails at once and does not disturb the first."""
    out = tmp_path / "sweep.jsonl"
    refused = []

    def second(task: Task, effort: Any) -> Point:  # noqa: ANN401  # as the original
        with pytest.raises(FileInUseError) as error:
            sweep(TASKS, out=out, progress=False)
        refused.append(str(error.value))
        return original(task, effort)

    original = _executor.measure_point
    monkeypatch.setattr(_executor, "measure_point", second)
    found = sweep(TASKS, out=out, progress=False)
    monkeypatch.undo()
    assert len(refused) == len(found.points) == len(TASKS)
    assert refused[0].startswith(f"{out} is being written by process {os.getpid()}, which is this")
    assert sweep(TASKS, out=out, progress=False).points == found.points


def one_thread() -> AbstractContextManager[Executor]:
    """Return an executor other than this process."""
    return ThreadPoolExecutor(2)


@pytest.mark.slow
@pytest.mark.parametrize("make", [nullcontext, one_thread], ids=["here", "threads"])
@pytest.mark.parametrize("n_points", [0, 1, 3])
def test_a_full_disk_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    make: Callable[[], AbstractContextManager[Executor | None]],
    n_points: int,
) -> None:
    """The error carries all points, the file has those that fit, and the same call resumes."""
    whole = tmp_path / "whole.jsonl"
    sweep(TASKS, out=whole, progress=False)
    n_bytes = sum(len(line) + 1 for line in whole.read_bytes().splitlines()[: n_points + 1])
    out = tmp_path / "sweep.jsonl"
    with monkeypatch.context() as patch, make() as executor:
        patch.setattr(os, "write", halting(n_bytes + 50, FULL))
        with pytest.raises(NotSavedError) as error:
            sweep(TASKS, out=out, executor=executor, progress=False)
    partial = error.value.partial
    assert isinstance(partial, Sweep)
    assert len(partial.points) > n_points
    assert partial.failures() == ()
    assert len(partial.points) + len(partial.missing) == len(TASKS)
    assert str(error.value) == (
        f"{out} cannot be written: No space left on device; make room on the disk, or give a file "
        f"on another one; what was measured ({len(partial.points)} of 4 points) is in memory, as "
        ".partial of this error; after a traceback it is sys.last_value.partial"
    )
    assert "stopped by its file, which cannot be written" in str(partial)
    lines = out.read_bytes().splitlines()
    assert len(lines) == n_points + 1
    again = sweep(TASKS, out=out, progress=False)
    assert len(again.points) == len(TASKS)
    assert out.read_bytes().splitlines()[: n_points + 1] == lines


def test_what_runs_beside_a_refused_point_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Tasks already running when the disk fails finish, and their points are kept."""
    begun = threading.Barrier(len(TASKS))

    def together(_assignment: object, task: Task, _effort: object) -> Point:
        begun.wait()
        return Point(task, median_s=1.0, n_samples=1, source="virtual", device_name="NVIDIA H200")

    out = tmp_path / "sweep.jsonl"
    sweep([], out=out, progress=False)  # the header
    with monkeypatch.context() as patch, ThreadPoolExecutor(len(TASKS)) as executor:
        patch.setattr(_executor, "measure_in_worker", together)
        patch.setattr(os, "write", halting(0, FULL))
        with pytest.raises(NotSavedError) as error:
            sweep(TASKS, out=out, executor=executor, progress=False)
    partial = error.value.partial
    assert isinstance(partial, Sweep)
    assert [point.task for point in partial.points] == list(TASKS)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_disk_that_fails_at_fsync_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    """A disk that reports its failure only at fsync raises an error with all points."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refusal(number))
        with pytest.raises(NotSavedError, match=os.strerror(number)) as error:
            sweep(TASKS, out=tmp_path / "sweep.jsonl", progress=False)
    assert isinstance(error.value.partial, Sweep)
    assert len(error.value.partial.points) == len(TASKS)


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOLCK, "No locks available"), NotImplementedError()]
)
def test_hardware_is_measured_where_nothing_can_be_locked(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """On a file system without locks, the sweep warns and measures without turns."""

    def refuse(_path: Path) -> None:
        raise error

    monkeypatch.setattr(_measure_point, "FileLock", refuse)
    with pytest.warns(UserWarning, match=r"^cpu cannot be locked \("):
        point = take(Task("add", 64, on="cpu"), max_time_s=0.01)
    assert point.error == ""
