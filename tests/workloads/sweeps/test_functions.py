"""A sweep over one's own function: points, files that resume, works in turns, and mistakes."""

import json
import math
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gpulab
from gpulab.core.errors import GpulabError, InvalidOptionError, RecordingError, SchemaVersionError
from gpulab.device import clocks
from gpulab.device.work import Work
from gpulab.workloads.sweeps import FunctionPoint, Sweep, Task, _functions, sweep, tasks_of
from gpulab.workloads.sweeps._functions import Setting

CALLS: list[int] = []


def add(n: int, dtype: torch.dtype = torch.float32) -> Work:
    """Return the sum of two tensors."""
    CALLS.append(n)
    x = torch.ones(n, dtype=dtype, device="cuda")
    return lambda: x + x


def both(n: int) -> dict[str, Work]:
    """Return a sum, and the same in two kernels."""
    x = torch.ones(n, device="cuda")
    return {"one": lambda: x + x, "two": lambda: (x * 1) + x, "three": lambda: x * 1 + x * 1}


def failing(n: int) -> Work:
    """Return work for small sizes only."""
    if n > 64:
        raise ValueError(f"{n} is too large\nmore lines")
    return add(n)


@pytest.fixture(autouse=True)
def h200() -> Iterator[None]:
    """Enter a virtual H200 whose context exists already."""
    CALLS.clear()
    with gpulab.virtual_gpu("H200", first_use=False):
        yield


def quiet(make: Any, **options: Any) -> Sweep:  # noqa: ANN401  # also mistakes
    """Run a sweep without a progress bar."""
    return gpulab.sweep(make, progress=False, **options)


def test_each_combination_is_a_point_and_a_row() -> None:
    """Two sizes and two types are four rows; times and rates are those of a measurement."""
    dtypes = [torch.float16, torch.float32]
    found = quiet(
        add,
        n=[2**20, 2**22],
        dtype=dtypes,
        size_bytes=lambda n, dtype: 2 * n * dtype.itemsize,
        flops=lambda n, dtype: n,  # noqa: ARG005  # both are given
    )
    table = found.to_frame()
    assert table[["n", "dtype"]].to_numpy().tolist() == [
        [2**20, "float16"],
        [2**20, "float32"],
        [2**22, "float16"],
        [2**22, "float32"],
    ]
    x = torch.ones(2**22, dtype=torch.float16, device="cuda")
    alone = gpulab.measure(lambda: x + x, size_bytes=2 * 2 * 2**22, max_time_s=0.3)
    row = table.iloc[2]
    assert row["median_s"] == pytest.approx(alone.median_s, rel=0.05)
    assert row["bytes_per_s"] == 4 * 2**22 / row["median_s"]
    assert (row["limit"], row["peak_bytes"]) == ("memory bandwidth", 2 * 2**22)
    assert "work" not in table.columns
    assert str(found) == "4 of 4 points; virtual NVIDIA H200"


def test_several_works_take_turns_and_have_a_ratio() -> None:
    """A row for each work, with as many samples, and the ratio to the first with its interval."""
    table = quiet(both, n=[2**22], flops=2**22).to_frame()
    assert table["work"].tolist() == ["one", "two", "three"]
    assert table["n_samples"].nunique() == 1
    assert table["ratio"].tolist()[0] == 1.0
    one, two, three = table.itertuples()
    assert one.median_s < two.median_s < three.median_s
    assert two.ratio_low <= two.ratio <= two.ratio_high
    for other in (two, three):
        assert other.ratio == pytest.approx(other.median_s / one.median_s, rel=0.05)
    assert (one.flops_per_s, one.share_of_limit > 0) == (2**22 / one.median_s, True)


def test_a_file_resumes_and_forgets_another_version(tmp_path: Path) -> None:
    """Points in the file are not measured again; those of a changed function are."""
    out = tmp_path / "points.jsonl"
    first = quiet(add, n=[64, 128], out=out)
    CALLS.clear()
    again = quiet(add, n=[64, 128, 256], out=out)
    assert (CALLS, again.points[:2]) == ([256], first.points)

    def renamed(n: int) -> Work:
        CALLS.append(-n)
        x = torch.ones(n, device="cuda")
        return lambda: x * x

    renamed.__name__ = "add"
    CALLS.clear()
    quiet(renamed, n=[64], out=out)
    assert CALLS == [-64]


def test_a_file_is_read_without_measuring(tmp_path: Path) -> None:
    """Both kinds of points of a file come back, with a row each; a recording has one kind."""
    out = tmp_path / "points.jsonl"
    own = quiet(both, n=[2**20], out=out)
    CALLS.clear()
    loaded = Sweep.load(out)
    assert (loaded.points, loaded.provenance, CALLS) == (own.points, own.provenance, [])
    assert loaded.to_frame().equals(own.to_frame())
    catalogue = sweep(tasks_of(["add"], [64], caches=["hot"]), out=out, progress=False)
    loaded = Sweep.load(out)
    assert loaded.points == (*own.points, *catalogue.points)
    assert loaded.to_frame()["n"].notna().sum() == len(own.to_frame())
    assert loaded.to_frame()["workload"].tolist()[-1] == "add"
    with pytest.raises(RecordingError, match=r"has points of a function of your own"):
        gpulab.recordings.load(out, unfinished=True)


def test_a_function_that_moves_is_the_same(tmp_path: Path) -> None:
    """Its place in a file, and its comments, do not make it another one."""
    text = "def make(n):\n    x = torch.ones(n, device='cuda')\n    return lambda: x + x\n"
    out = tmp_path / "points.jsonl"
    found = []
    for source in (text, f"\n\n# moved\n{text}"):
        names: dict[str, Any] = {"torch": torch}
        exec(source, names)
        found.append(quiet(names["make"], n=[64], out=out))
    assert found[0].points == found[1].points


def test_the_order_of_a_set_does_not_matter() -> None:
    """Texts in a set come in another order in each process; 0 and 8 do it in this one."""

    def make(n: int) -> bool:
        return n in {0, 8}

    codes = []
    for members in ((0, 8), (8, 0)):
        constants = [
            frozenset(members) if isinstance(each, frozenset) else each
            for each in make.__code__.co_consts
        ]
        make.__code__ = make.__code__.replace(co_consts=tuple(constants))
        codes.append(_functions._fingerprint(make))
    assert repr(frozenset((0, 8))) != repr(frozenset((8, 0)))
    assert codes[0] == codes[1]


def test_a_point_that_fails_says_why_and_the_others_go_on() -> None:
    """An exception and a lack of memory are one line in their own row."""
    found = quiet(failing, n=[64, 128])
    assert [point.error for point in found.points] == ["", "ValueError: 128 is too large"]
    assert str(found).endswith("failed: failing(n=128): ValueError: 128 is too large")
    table = found.to_frame()
    assert math.isnan(table["median_s"][1])
    assert quiet(add, n=[2**40]).points[0].error == "out of memory"


def test_a_shared_gpu_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep of either kind counts the points that other processes may have slowed."""
    others = clocks.OtherProcesses(1, 2**30)
    monkeypatch.setattr(clocks, "other_processes", lambda: others)
    line = "1 point with other processes on the GPU"
    assert str(quiet(add, n=[64])).splitlines()[1] == line
    catalogue = [Task("add", 64, method="events")]
    assert str(gpulab.sweep(catalogue, progress=False)).splitlines()[1] == line


def test_an_interrupt_keeps_the_points_before_it() -> None:
    """Ctrl-C ends the sweep; what is missing has the words of its parameters."""

    def make(n: int) -> Work:
        if n > 64:
            raise KeyboardInterrupt
        return add(n)

    found = quiet(make, n=[64, 128, 256])
    assert [point.task.arguments["n"] for point in found.points] == [64]  # type: ignore[union-attr]  # of a function
    assert "missing: make(n=128) and 1 more" in str(found)


def pools() -> dict[str, Executor]:
    """Return a pool of threads, and one of processes."""
    return {
        "threads": ThreadPoolExecutor(2),
        "processes": ProcessPoolExecutor(1, mp_context=get_context("spawn")),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_executors_measure_the_same(kind: str) -> None:
    """The points of a pool are those of this process, also for several works."""
    here = quiet(both, n=[64, 1024]).to_frame()
    with pools()[kind] as executor:
        there = quiet(both, n=[64, 1024], executor=executor).to_frame()
    assert there["n"].tolist() == here["n"].tolist()
    assert there["median_s"].tolist() == pytest.approx(here["median_s"].tolist(), rel=0.05)
    assert there["error"].tolist() == [""] * 6


def test_numbers_of_numpy_are_those_of_python() -> None:
    """A row of NumPy gives the tasks of a list, and the function gets numbers of Python."""
    seen = []

    def make(n: int, shape: tuple[int, int], scale: float, flag: bool) -> Work:  # noqa: FBT001  # a parameter
        seen.append([type(value) for value in (n, shape[0], scale, flag)])
        x = torch.ones(n, *shape, device="cuda")
        return lambda: x * scale

    plain = quiet(make, n=[4, 8], shape=[(2, 2)], scale=[0.5], flag=[True])
    of_numpy = quiet(
        make,
        n=np.arange(4, 9, 4),
        shape=[(np.int32(2), 2)],
        scale=np.array([0.5], np.float32),
        flag=[np.bool_(1)],
    )
    assert seen == [[int, int, float, bool]] * 4
    assert [each.task for each in of_numpy.points] == [each.task for each in plain.points]


async def waits(n: int) -> None:
    """Return no work, but a coroutine."""


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (add, {}, "add cannot be called with the parameters of the sweep (none): missing a req"),
        (add, {"size": [1]}, "parameters of the sweep (size=[...]): missing a required argument"),
        (add, {"n": [64], "m": [1]}, "got an unexpected keyword argument 'm'"),
        (add, {"n": 64}, "n=64; it must be a list, each item a finite number, a text, a type of"),
        (add, {"n": "64"}, "n='64'; it must be a list"),
        (add, {"n": []}, "n has no values; give at least one: n=[...]"),
        (
            add,
            {"n": [object]},
            "n[0]=<class 'object'>; it must be a finite number, a text, a type of",
        ),
        (add, {"n": [math.nan]}, "n[0]=nan; it must be a finite number"),
        (add, {"n": [64], "flops": -1}, "flops=-1"),
        (
            add,
            {"n": [64], "flops": lambda n: n / 0},
            "flops(n=64) raised ZeroDivisionError: division by zero; it must return a number",
        ),
        (add, {"n": [64], "size_bytes": lambda m: m}, "size_bytes(n=64) raised TypeError: "),
        (add, {"n": [64], "flops": lambda n: -n}, "flops(n=64) returned -64; it must be"),
        (add, {"n": [64], "size_bytes": "many"}, "size_bytes='many'"),
        (add, {"n": [64], "method": "event"}, "did you mean 'events'?"),
        (add, {"n": [64], "cache": "warm"}, "unknown cache state 'warm'; Known: cold, hot"),
        (
            lambda source: add(source + 1),
            {"source": [64]},
            "source is a column of the table already",
        ),
        (lambda n: n, {"n": [64]}, "what <lambda>(n=64) returned is of type int and cannot be ca"),
        (dict, {"n": [64]}, "what dict(n=64) returned as n is of type int and cannot be called"),
        (lambda n: dict([n][1:]), {"n": [64]}, "<lambda>(n=64) returned an empty dict; return"),
        (lambda n: {"a": n}, {"n": [64]}, "what <lambda>(n=64) returned as a is of type int"),
        (waits, {"n": [64]}, "make is a coroutine or a generator function, and calling it runs"),
        ([Task("add", 64)], {"n": [64]}, "n=[64] is for a function of your own: sweep(make, n=["),
        ([Task("add", 64)], {"flops": 1}, "flops=1 is for a function of your own"),
    ],
)
def test_wrong_arguments_are_one_sentence(
    make: Any,  # noqa: ANN401  # also what is no function
    options: dict[str, Any],
    message: str,
) -> None:
    """Each mistake is named before anything is measured, or at the first point."""
    with pytest.raises(GpulabError) as error:
        quiet(make, **options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_function_for_processes_must_be_sendable() -> None:
    """A lambda cannot be pickled, and the error says what to do."""
    with pools()["processes"] as executor, pytest.raises(InvalidOptionError) as error:
        quiet(lambda n: add(n + 1), n=[64], executor=executor)
    assert "cannot be sent to another process" in str(error.value)
    assert "define it at the top of a module" in str(error.value)


def test_works_of_a_point_have_the_same_number_of_samples() -> None:
    """A point of a damaged file fails when it is read, and not when its works are compared."""
    (point,) = quiet(both, n=[64]).points
    assert isinstance(point, FunctionPoint)
    first, second, *_ = point.measurements
    shorter = replace(second, samples_s=second.samples_s[:-1])
    with pytest.raises(InvalidOptionError, match=r"of both\(n=64\) have from \d+ to \d+ samples"):
        replace(point, measurements=(first, shorter))


@pytest.mark.parametrize("parameters", ["{", "[1]", "64"])
def test_a_damaged_point_is_named_by_its_line(parameters: str, tmp_path: Path) -> None:
    """Parameters that are no object of JSON are found when the file is read."""
    out = tmp_path / "points.jsonl"
    quiet(add, n=[64], out=out)
    good = json.dumps('{"n": 64}')
    out.write_text(out.read_text().replace(good, json.dumps(parameters)))
    with pytest.raises(SchemaVersionError, match=r", line 2, is damaged: .*object in JSON"):
        quiet(add, n=[64], out=out)


def test_a_point_needs_times_or_an_error() -> None:
    """A point without both is refused, and one comes back from JSON."""
    with pytest.raises(InvalidOptionError, match="has neither measurements nor an error"):
        FunctionPoint(Setting("add", '{"n": 64}'))
    (point,) = quiet(both, n=[64]).points
    assert isinstance(point, FunctionPoint)
    assert FunctionPoint.from_json(point.to_json()) == point
    first, *_, last = str(point).splitlines()
    assert first == "both(n=64):"
    assert "three takes " in last
    assert str(FunctionPoint(point.task, error="out of memory")) == "both(n=64): out of memory"
