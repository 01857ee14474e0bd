"""Tasks and points: what they refuse, and how they are compared, saved and tabulated."""

import math
import pickle
from dataclasses import replace

import pytest

from gpulab.core.errors import InvalidOptionError
from gpulab.workloads.sweeps import Point, Task, frame_of

TASK = Task("add", 4096)
POINT = Point(TASK, median_s=2e-5, low_s=1e-5, high_s=3e-5, n_samples=11, findings=("a", "b"))
FAILED = Point(Task("add", 64, on="cpu", n_threads=2), error="out of memory")


def test_every_field_is_in_the_key() -> None:
    """Tasks that differ in any field have different keys."""
    others = [
        Task("exp", 4096),
        Task("add", 64),
        Task("add", 4096, "float16"),
        Task("add", 4096, on="cpu"),
        Task("add", 4096, on="cpu", n_threads=1),
        Task("add", 4096, cache="hot"),
        Task("add", 4096, method="events"),
        Task("add", 4096, transfers="in"),
    ]
    assert len({task.key for task in [TASK, *others]}) == 9


def test_cpu_has_one_cache_and_one_method() -> None:
    """On the CPU, cache and method are set to the only values, so equal work is one task."""
    given = Task("add", 64, on="cpu", cache="cold", method="events")
    assert given == Task("add", 64, on="cpu")
    assert (given.cache, given.method) == ("hot", "wall")


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (lambda: Task("add", 0), "size=0; it must be a whole number, at least 1"),
        (
            lambda: Task("add", 1, on="cpu", n_threads=0),
            "n_threads=0; it must be a whole number, at least 1, or None",
        ),
        (
            lambda: Task("add", 1, n_threads=2),
            (
                "n_threads=2 for add on the GPU; only the CPU uses threads: leave n_threads out, "
                "or use on='cpu'"
            ),
        ),
        (
            lambda: Task("add", 1, on="cpu", transfers="in"),
            (
                "transfers='in' for add on the CPU, where nothing is copied; leave transfers out, "
                "or use on='gpu'"
            ),
        ),
        (
            lambda: Point(TASK, median_s=math.nan, n_samples=1),
            "median_s=nan; it must be a finite number",
        ),
        (
            lambda: Point(TASK),
            (
                "n_samples=0 of add/4096/float32/gpu/cold/calibrated/none without an error; a "
                "point needs samples, or an error that says why it has none"
            ),
        ),
    ],
)
def test_values_that_make_no_sense_are_refused(task: object, message: str) -> None:
    """Each error gives the value and what to do."""
    with pytest.raises(InvalidOptionError) as error:
        task()  # type: ignore[operator]  # a lambda of the table
    assert str(error.value) == message


@pytest.mark.parametrize("point", [POINT, FAILED], ids=["found", "failed"])
def test_points_survive_saving(point: Point) -> None:
    """A round trip through JSON or pickle gives the same point, its task included."""
    assert Point.from_json(point.to_json()) == point
    assert pickle.loads(pickle.dumps(point)) == point


def test_frame_has_a_row_for_each_point() -> None:
    """The task's fields are columns, and a failed point has no times."""
    table = frame_of([POINT, FAILED])
    assert list(table.columns) == [
        *["workload", "size", "dtype", "on", "cache", "method", "transfers", "n_threads"],
        *["median_s", "low_s", "high_s", "n_samples", "source", "device_name", "clock_mhz"],
        *["findings", "error"],
    ]
    assert table["median_s"].isna().tolist() == [False, True]
    assert table["n_threads"].tolist()[1] == 2
    assert table["findings"].tolist() == ["a,b", ""]
    assert table["error"].tolist() == ["", "out of memory"]


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (TASK, "add n=4,096 float32 on the GPU: cold, calibrated"),
        (
            replace(TASK, transfers="both"),
            "add n=4,096 float32 on the GPU: cold, calibrated, transfers both",
        ),
        (Task("add", 1, on="cpu"), "add n=1 float32 on the CPU: PyTorch's number of threads"),
        (Task("add", 1, on="cpu", n_threads=1), "add n=1 float32 on the CPU: 1 thread"),
        (Task("add", 1, on="cpu", n_threads=4), "add n=1 float32 on the CPU: 4 threads"),
    ],
)
def test_title_says_what_is_measured(task: Task, text: str) -> None:
    """`str` of a task is one line with its options."""
    assert str(task) == text
