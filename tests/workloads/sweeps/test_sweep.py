"""Sweeps: the points of single measurements, files that resume, and no losses after failures."""

import json
import multiprocessing
import platform
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch
from filelock import FileLock, Timeout

import gpulab
from gpulab import timing, workloads
from gpulab.core.errors import InvalidOptionError, NoGpuError, SchemaVersionError, UnknownNameError
from gpulab.device import _probe
from gpulab.virtual import VirtualGpu
from gpulab.workloads.sweeps import (
    Point,
    Sweep,
    Task,
    _executor,
    _host,
    _measure_point,
    sweep,
    take,
    tasks_of,
)

TASKS = tasks_of(["add", "exp"], [1024, 4096], caches=["hot"])


@pytest.fixture
def h200() -> Iterator[VirtualGpu]:
    """Enter a virtual H200."""
    with gpulab.virtual_gpu("H200") as entered:
        yield entered


def quiet(tasks: tuple[Task, ...] = TASKS, **options: Any) -> Sweep:  # noqa: ANN401  # options of sweep
    """Run a sweep without a progress bar."""
    return sweep(tasks, progress=False, **options)


# One point


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "cache"), [("calibrated", "cold"), ("calibrated", "hot"), ("synchronized", "hot")]
)
def test_point_is_what_measure_says(method: str, cache: str) -> None:
    """A GPU task gives the times that `measure` gives, but for a tick of the events."""
    with gpulab.virtual_gpu("H200"):
        point = take(Task("add", 2**20, method=method, cache=cache))
    with gpulab.virtual_gpu("H200"):
        work = workloads.workload("add").make(2**20, "float32")
        record = gpulab.measure(work, method=method, cache=cache, max_time_s=0.3, progress=False)
    # The two start at other moments, so a time between two ticks of 32 ns may be read as either.
    assert (point.median_s, point.low_s, point.high_s) == pytest.approx(
        (record.median_s, *record.interval_s), abs=32e-9
    )
    assert point.n_samples == record.n_samples
    assert point.floor_s == record.floor_s
    assert (point.source, point.device_name, point.clock_mhz) == ("virtual", "NVIDIA H200", 1980)


@pytest.mark.parametrize("transfers", ["in", "out", "both"])
def test_transfers_are_within_the_timed_part(h200: VirtualGpu, transfers: str) -> None:
    """With transfers, the time grows by the bytes copied over the link's rate."""
    task = Task("add", 2**22, method="synchronized", cache="hot")
    without, point = take(task), take(replace(task, transfers=transfers))
    n_bytes = 2**22 * 4 * {"in": 2, "out": 1, "both": 3}[transfers]
    expected_s = n_bytes / h200.spec.link_bytes_per_s
    assert point.median_s - without.median_s == pytest.approx(expected_s, rel=0.25)


@pytest.mark.parametrize("name", ["adam", "sort", "argmax", "embedding"])
def test_every_kind_of_result_comes_back(h200: VirtualGpu, name: str) -> None:
    """Every kind of input and result can be copied: parameters, pairs, indices and look-ups."""
    del h200
    size = workloads.workload(name).sizes[-1 if name == "argmax" else 2]
    point = take(Task(name, size, method="synchronized", cache="hot", transfers="both"))
    assert (point.error, point.n_samples) == ("", 10)


def test_virtual_values_are_computed_again_afterwards(
    h200: VirtualGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values are not computed during a point, which saves most of its time, and are afterwards."""
    seen = []

    def noting(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401  # as the original
        seen.append(h200.machine.limits.max_elements)
        return original(*arguments, **options)

    original = _measure_point.measure
    monkeypatch.setattr(_measure_point, "measure", noting)
    assert take(Task("add", 1024)).error == ""
    assert take(Task("add", 2**50)).error != ""
    assert seen == [0]
    assert h200.machine.limits.max_elements > 0
    assert torch.ones(3, device="cuda").sum().item() == 3


def test_cpu_keeps_real_time(h200: VirtualGpu) -> None:
    """CPU work is measured in real time and takes no virtual time."""
    before_s = h200.now_s
    point = take(Task("exp", 2**16, on="cpu"), max_time_s=0.02)
    assert h200.now_s == before_s
    assert (point.source, point.error) == ("measured", "")
    assert point.device_name == _host.cpu_name()
    assert 0 < point.low_s <= point.median_s <= point.high_s
    assert h200.entered


def test_threads_are_set_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU work runs with the number of threads asked for, which is restored afterwards."""
    seen = []

    def walls(_work: Callable[[], object], **_: float) -> Any:  # noqa: ANN401  # as the original
        seen.append(torch.get_num_threads())
        return (0.001,)

    monkeypatch.setattr(timing, "take_cpu_samples", walls)
    before = torch.get_num_threads()
    take(Task("add", 64, on="cpu", n_threads=3))
    with gpulab.virtual_gpu("H200"):
        take(Task("add", 64, on="cpu"))
        assert torch.get_num_threads() == 1
    assert seen == [3, before]
    assert torch.get_num_threads() == before


def test_random_numbers_of_the_caller_stay(h200: VirtualGpu) -> None:
    """Making the inputs changes neither the CPU's nor the GPU's random state."""
    del h200
    before = torch.get_rng_state(), torch.cuda.get_rng_state()
    take(Task("add", 64))
    take(Task("add", 64, on="cpu"), max_time_s=0.01)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.equal(torch.cuda.get_rng_state(), before[1])


def test_cpu_pays_for_first_use_at_the_smallest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first CPU call of an operation, which may load a library, is never a sample."""
    add, called = workloads.workload("add"), []

    def problem(size: int) -> Any:  # noqa: ANN401  # a stand-in with another call
        return replace(add.problem(size), call=lambda *_: called.append(size))

    def sampled(work: Callable[[], object], **_: float) -> tuple[float, ...]:
        work()
        return (0.001,)

    monkeypatch.setattr(_measure_point, "workload", lambda _: replace(add, problem=problem))
    monkeypatch.setattr(timing, "take_cpu_samples", sampled)
    assert take(Task("add", 2**20, on="cpu")).error == ""
    assert called == [add.sizes[0], 2**20]


# Failures of one point


def test_sizes_that_do_not_fit_are_refused(h200: VirtualGpu) -> None:
    """Inputs larger than the free GPU memory make a failed point without an allocation."""
    del h200
    before = torch.cuda.memory_allocated()
    point = take(Task("add", 2**40))
    assert point.error == "does not fit: needs at least 8.00 TiB, and the GPU has 139 GiB free"
    assert (point.median_s, point.n_samples, point.source) == (0.0, 0, "virtual")
    assert torch.cuda.memory_allocated() == before


def test_a_failed_point_gives_its_memory_back(
    h200: VirtualGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver gets what a failed point has used, so the next one may need all of it."""
    del h200
    monkeypatch.setattr(_measure_point, "with_copies", lambda *_: 1 / 0)
    assert take(Task("add", 2**20)).error == "ZeroDivisionError: division by zero"
    assert torch.cuda.memory_reserved() == 0


@pytest.mark.parametrize("on", ["gpu", "cpu"])
def test_a_type_that_a_workload_lacks_fails_the_point(h200: VirtualGpu, on: str) -> None:
    """A saved task may name a type that this version does not offer."""
    del h200
    assert take(Task("fft", 64, "float16", on=on)).error == "fft has no kernel for float16 here"


def test_cpu_sizes_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU the result counts too, because Linux kills the process instead of refusing."""
    monkeypatch.setattr(_host, "free_host_bytes", lambda: 2**20)
    fits, large = take(Task("add", 2**15, on="cpu")), take(Task("add", 2**17, on="cpu"))
    assert fits.error == ""
    assert large.error == ("does not fit: needs at least 1.50 MiB, and the host has 1.00 MiB free")


def test_a_kernel_that_torch_lacks_fails_the_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line of torch's error about a missing kernel is the point's error."""

    def walls(_work: object, **_: float) -> None:
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Half'\nand more")

    monkeypatch.setattr(timing, "take_cpu_samples", walls)
    assert take(Task("matmul", 64, "float16", on="cpu")).error == (
        "matmul has no kernel for float16 on the CPU: "
        "\"addmm_impl_cpu_\" not implemented for 'Half'"
    )


# The machine


def test_cpu_has_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The CPU's name is the system's, and the architecture if it has none."""
    monkeypatch.setattr(_host, "_CPU", tmp_path / "cpuinfo")
    assert _host.cpu_name() == (platform.processor() or platform.machine())
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: AMD  EPYC 9654 \n")
    assert _host.cpu_name() == "AMD EPYC 9654"


def test_memory_of_a_container_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Free memory is limited by system and control group, whose file cache counts as free."""
    system = SimpleNamespace(total=9216, available=4096)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: system)
    monkeypatch.setattr(_host, "_GROUP", tmp_path)
    assert _host.free_host_bytes() == 4096
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("4500\n")
    (tmp_path / "memory.stat").write_text("anon 4400\ninactive_file 100\n")
    assert _host.free_host_bytes() == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert _host.free_host_bytes() == 4096


# Lists of tasks


def test_types_are_left_out_where_there_are_none() -> None:
    """A workload is skipped for types it lacks; a type that none offers is refused."""
    tasks = tasks_of(["add", "fft"], [64], dtypes=["float32", "float16"])
    assert [(task.workload, task.dtype) for task in tasks] == [
        ("add", "float32"),
        ("add", "float16"),
        ("fft", "float32"),
    ]
    with pytest.raises(UnknownNameError) as error:
        tasks_of(["fft"], [64], dtypes=["float16"])
    assert str(error.value) == (
        "unknown type of these workloads 'float16'; did you mean 'float64'? "
        "Known: float32, float64"
    )


def test_cpu_tasks_are_not_multiplied() -> None:
    """Caches, methods and transfers multiply GPU tasks only."""
    tasks = tasks_of(
        ["add"], [64], on=["gpu", "cpu"], caches=["cold", "hot"], transfers=["none", "in"]
    )
    assert [task.on for task in tasks] == ["gpu"] * 4 + ["cpu"]


# Executors


def forked(n_workers: int = 2) -> ProcessPoolExecutor:
    """Return a pool of forked processes, which start quickly."""
    return ProcessPoolExecutor(n_workers, mp_context=multiprocessing.get_context("fork"))


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_forks_are_refused_where_they_cannot_work() -> None:
    """CUDA and torch's threads hang in a fork; a virtual GPU goes on there."""
    with forked() as executor, pytest.raises(InvalidOptionError) as error:
        quiet(tasks_of(["add"], [64], on=["cpu"]), executor=executor)
    assert str(error.value) == (
        "the executor forks this process, and in a fork neither CUDA nor torch's threads work; "
        'make it with ProcessPoolExecutor(..., mp_context=multiprocessing.get_context("spawn"))'
    )
    with gpulab.virtual_gpu("A100"), forked() as executor:
        there = quiet(executor=executor)
    assert [(point.task, point.error) for point in there.points] == [(each, "") for each in TASKS]


class Canned(Executor):
    """An executor that returns the result of a function, or its error, for each task."""

    def __init__(self, answer: Callable[[Task], Any], *, remote: bool = False) -> None:
        self.answer, self.remote = answer, remote

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:  # noqa: ANN401  # as original
        """Run the task at once, with another process number if `remote`."""
        future: Future[Any] = Future()
        assignment, *rest = arguments
        if self.remote:
            assignment = replace(assignment, process=-1)
        try:
            answer = self.answer(rest[0]) if rest else None
            future.set_result(answer or function(assignment, *rest))
        except BaseException as error:  # noqa: BLE001  # an executor hands every error over
            future.set_exception(error)
        return future


def raising(error: BaseException, at: Task = TASKS[1]) -> Canned:
    """Return an executor on which one task ends with an error."""

    def answer(task: Task) -> None:
        if task == at:
            raise error

    return Canned(answer)


def test_a_killed_worker_costs_its_task_only(h200: VirtualGpu) -> None:
    """If the executor survives the loss of a worker, only that task fails."""
    del h200

    class KilledWorker(Exception):  # noqa: N818  # Dask's name
        pass

    found = quiet(executor=raising(KilledWorker("died\nof this")))
    assert [point.error for point in found.points] == [
        "",
        "its worker failed: KilledWorker: died",
        "",
        "",
    ]
    (failure,) = found.failures()
    assert (failure.source, failure.device_name) == ("virtual", "NVIDIA H200")


def test_a_broken_pool_ends_the_sweep_and_keeps_the_rest(h200: VirtualGpu, tmp_path: Path) -> None:
    """A broken pool ends the sweep: finished points stay, and a new call measures the rest."""
    del h200
    out = tmp_path / "sweep.jsonl"
    executor = raising(BrokenProcessPool("A process died."))
    executor._max_workers = 1  # type: ignore[attr-defined]  # as a pool has
    found = quiet(executor=executor, out=out)
    assert str(found).splitlines() == [
        "2 of 4 points; virtual NVIDIA H200",
        f"failed: {TASKS[1]}: a worker died while this task ran, or one at the same time",
        "stopped by its executor, which broke: A process died.",
        (
            f"missing: {TASKS[2]} and 1 more; to measure what is missing, repeat the same call "
            "with the same file in out="
        ),
    ]
    again = quiet(out=out)
    assert (again.failures(), again.missing, again.stopped_by) == ((), (), "")
    keys = [json.loads(line)["task"]["size"] for line in out.read_text().splitlines()[1:]]
    assert keys == [1024, 4096, 1024, 4096, 4096], "the suspect comes last"


def test_a_virtual_gpu_does_not_replace_a_remote_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers without a GPU are refused, unless the user chose a virtual GPU by name."""
    monkeypatch.setattr(_probe, "cuda_obstacle", lambda: _probe.Obstacle("none", "buy one"))
    executor = Canned(lambda _task: None, remote=True)
    with pytest.raises(NoGpuError) as error:
        quiet(executor=executor)
    assert str(error.value) == (
        "a worker of the executor has no GPU to measure on: no CUDA GPU can be used: none; buy "
        "one; or choose a virtual GPU by its name: gpulab.use('H200')"
    )
    gpulab.use("H200")
    assert quiet(executor=executor).failures() == ()


def test_a_worker_of_another_kind_is_not_mixed_in(h200: VirtualGpu) -> None:
    """A point from another kind of GPU is a failure that names both GPUs."""
    del h200
    other = Point(TASKS[0], median_s=1.0, n_samples=9, device_name="Tesla T4")
    found = quiet(executor=Canned(lambda task: other if task == TASKS[0] else None))
    assert found.points[0].error == "its worker has Tesla T4, but the sweep is for NVIDIA H200"
    assert not any(point.error for point in found.points[1:])


def test_cpu_tasks_run_alone(h200: VirtualGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other task runs beside a CPU task, because they would share the CPU."""
    del h200
    running: list[Task] = []
    crowds = []
    pair = threading.Barrier(2)  # both tasks of the GPU are there before one of them goes on

    def slow(_assignment: object, task: Task, _effort: object) -> Point:
        running.append(task)
        if task.on == "gpu":
            pair.wait()
        crowds.append((task.on, len(running)))
        if task.on == "gpu":
            pair.wait()
        running.remove(task)
        name = _host.cpu_name() if task.on == "cpu" else "NVIDIA H200"
        return Point(task, median_s=1.0, n_samples=1, device_name=name)

    monkeypatch.setattr(_executor, "measure_in_worker", slow)
    tasks = tasks_of(["add", "exp"], [64, 128], on=["gpu", "cpu"])
    with ThreadPoolExecutor(4) as executor:
        found = quiet(tasks, executor=executor)
    assert found.failures() == ()
    assert [n for on, n in crowds if on == "cpu"] == [1] * 4
    assert max(n for on, n in crowds if on == "gpu") == 2


def is_free(name: str) -> bool:
    """Return whether another process could measure on this hardware now."""
    lock = FileLock(_measure_point.lock_file(name), timeout=0)
    try:
        with lock:
            return True
    except Timeout:
        return False


def test_processes_take_turns_at_hardware(
    h200: VirtualGpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One process at a time measures on the CPU, while a virtual GPU needs no lock."""
    del h200
    monkeypatch.setattr(_measure_point, "state_folder", lambda: tmp_path)  # others may measure now
    seen = []

    def walls(_work: object, **_: float) -> Any:  # noqa: ANN401  # as the original
        seen.append(is_free("cpu"))
        return (0.001,)

    monkeypatch.setattr(timing, "take_cpu_samples", walls)
    take(Task("add", 64, on="cpu"))
    assert (seen, is_free("cpu")) == ([False], True)
    with _measure_point.device_lock("gpu"):
        assert is_free("cpu")


# Interrupts


def test_ctrl_c_ends_the_wait_for_another_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """While another sweep measures, Ctrl-C arrives at once and not when that sweep is done."""
    monkeypatch.setattr(_measure_point, "state_folder", lambda: tmp_path)
    before, presses = signal.getsignal(signal.SIGINT), []

    def press(_duration_s: float) -> None:
        assert len(presses) < 3  # delayed again and again
        presses.append("Ctrl-C")
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(_measure_point, "time", SimpleNamespace(sleep=press))
    with (
        FileLock(_measure_point.lock_file("cpu")),
        pytest.raises(KeyboardInterrupt),
        _measure_point.device_lock("cpu"),
    ):
        pytest.fail("two measure at a time")
    assert (presses, signal.getsignal(signal.SIGINT)) == (["Ctrl-C"], before)
    assert is_free("cpu")


def interrupting(monkeypatch: pytest.MonkeyPatch, at: Task) -> None:
    """Raise SIGINT during one task."""

    def pressed(task: Task, effort: Any) -> Point:  # noqa: ANN401  # as the original
        if task == at:
            signal.raise_signal(signal.SIGINT)
        return original(task, effort)

    original = _executor.measure_point
    monkeypatch.setattr(_executor, "measure_point", pressed)


def test_ctrl_c_keeps_what_there_is(
    h200: VirtualGpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Points before Ctrl-C are in the sweep and its file, and the GPU stays entered."""
    out = tmp_path / "sweep.jsonl"
    with monkeypatch.context() as patch:
        interrupting(patch, TASKS[2])
        found = quiet(out=out)
    assert [point.task for point in found.points] == list(TASKS[:2])
    assert (found.missing, found.stopped_by) == (TASKS[2:], "an interrupt")
    assert h200.entered
    assert len(quiet(out=out).points) == 4


class Queue(Executor):
    """A single thread behind a long queue, as in a cluster; Ctrl-C comes at one `submit`."""

    def __init__(self, begun: threading.Event, go_on: threading.Event, pressed_at: int) -> None:
        self.inner, self.begun, self.go_on = ThreadPoolExecutor(1), begun, go_on
        self.n_submitted, self.pressed_at = 0, pressed_at

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future[Any]:  # noqa: ANN401  # as original
        """Pass the task on, or raise SIGINT."""
        self.n_submitted += 1
        if self.n_submitted == self.pressed_at:
            self.begun.wait()
            signal.raise_signal(signal.SIGINT)
        future = self.inner.submit(function, *arguments)
        future.add_done_callback(lambda done: self.go_on.set() if done.cancelled() else None)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002  # as original
        """End the thread."""
        self.inner.shutdown(wait, cancel_futures=cancel_futures)


def test_ctrl_c_leaves_the_executor_as_found(
    h200: VirtualGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C, the running task is kept, waiting ones are cancelled, and the pool works."""
    begun, go_on = threading.Event(), threading.Event()
    n_taken = []

    def held(task: Task, effort: Any) -> Point:  # noqa: ANN401  # as the original
        n_taken.append(task)
        begun.set()
        go_on.wait()  # until what waits behind it has been taken back
        return original(task, effort)

    original = _executor.measure_point
    monkeypatch.setattr(_executor, "measure_point", held)
    with Queue(begun, go_on, pressed_at=4) as executor:  # the first asks for the provenance
        found = quiet(executor=executor)
        assert found.stopped_by == "an interrupt"
        assert [point.task for point in found.points] == n_taken == [TASKS[0]]
        assert len(quiet(executor=executor).points) == 4
    assert h200.entered


# Files


def test_file_is_lines_of_json(h200: VirtualGpu, tmp_path: Path) -> None:
    """The file is a header with the machine, then one point per line."""
    del h200
    out = tmp_path / "sweep.jsonl"
    found = quiet(out=out)
    header, *lines = out.read_text("utf-8").splitlines()
    assert json.loads(header) == {"schema": "gpulab.sweep/1", "provenance": found.provenance}
    assert list(found.provenance) == [
        *["gpu", "source", "driver", "torch", "cuda", "cpu", "n_threads", "python", "gpulab"],
        *["taken_at", "clocks"],
    ]
    assert [Point.from_json(line) for line in lines] == list(found.points)


def test_a_sweep_resumes_wherever_its_file_was_cut_off(
    h200: VirtualGpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A killed process has written some bytes: whole lines stay, the other points come once."""
    del h200
    out = tmp_path / "sweep.jsonl"
    points = {point.task: point for point in quiet(out=out).points}
    content = out.read_bytes()
    taken: list[Task] = []
    monkeypatch.setattr(
        _executor, "measure_point", lambda task, _effort: taken.append(task) or points[task]
    )
    line_ends = [number for number, byte in enumerate(content, 1) if byte == ord("\n")]
    near_ends = {end + shift for end in line_ends for shift in (-1, 0, 1)}
    for n_bytes in sorted({*range(0, len(content), 97), *near_ends}):
        taken.clear()
        out.write_bytes(content[:n_bytes])
        again = quiet(out=out)
        n_whole = max(0, content[:n_bytes].count(b"\n") - 1)  # without the header
        assert taken == list(TASKS[n_whole:])
        assert again.points == tuple(points.values())
        assert out.read_bytes().splitlines()[1:] == content.splitlines()[1:]


def test_resuming_measures_what_is_new_or_failed(
    h200: VirtualGpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Resuming keeps good points, then measures new tasks, then failed ones again."""
    del h200
    out = tmp_path / "sweep.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(_host, "free_gpu_bytes", lambda: 10_000)
        first = quiet(TASKS[:2], out=out)
    assert [bool(point.error) for point in first.points] == [False, True]
    taken = []

    def noting(task: Task, effort: Any) -> Point:  # noqa: ANN401  # as the original
        taken.append(task)
        return original(task, effort)

    original = _executor.measure_point
    monkeypatch.setattr(_executor, "measure_point", noting)
    second = quiet(out=out)
    assert taken == [TASKS[2], TASKS[3], TASKS[1]]
    assert second.points[0] == first.points[0]
    assert second.failures() == ()
    taken.clear()
    assert quiet(out=out).points == second.points
    assert taken == []


def test_another_machine_is_not_mixed_in(tmp_path: Path) -> None:
    """A file begun on another GPU is refused and not changed."""
    out = tmp_path / "sweep.jsonl"
    with gpulab.virtual_gpu("H200"):
        quiet(out=out)
    before = out.read_bytes()
    with gpulab.virtual_gpu("T4"), pytest.raises(InvalidOptionError) as error:
        quiet(out=out)
    assert str(error.value) == (
        f"{out} was measured with gpu='NVIDIA H200', and here it is 'Tesla T4'; one file cannot "
        "have points of both: give another file, or continue on the first machine"
    )
    assert out.read_bytes() == before


HEADER = '{"schema": "gpulab.sweep/1", "provenance": {}}\n'
NO_SWEEP = "{out} is not the file of a sweep: "


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("hello", SchemaVersionError, NO_SWEEP),
        ("[]\n", SchemaVersionError, NO_SWEEP + "it is not a JSON object; give another file"),
        ("\ufeff" + HEADER, SchemaVersionError, NO_SWEEP + "it begins with a byte order mark"),
        (
            HEADER.replace("/1", "/2"),
            SchemaVersionError,
            "{out} has the schema 'gpulab.sweep/2' and this version of gpulab reads",
        ),
        (HEADER + "{\n{}\n", SchemaVersionError, "{out}, line 2, is damaged: it is not JSON"),
        (
            HEADER + '{"task": {"workload": 1}}\n',
            SchemaVersionError,
            "{out}, line 2, is damaged: the saved data have the schema None",
        ),
        (
            HEADER + '{"checksum": "x", "n_lines": 1}\n',
            InvalidOptionError,
            "{out} is a finished recording, closed by a checksum; give another file",
        ),
    ],
)
def test_other_files_are_left_alone(
    tmp_path: Path, text: str, kind: type[Exception], message: str
) -> None:
    """A file that is not a sweep's is refused with the reason, and no byte changes."""
    out = tmp_path / "notes.txt"
    out.write_text(text)
    with pytest.raises(kind) as error:
        quiet(out=out)
    assert str(error.value).startswith(message.format(out=out))
    assert out.read_text() == text


# Progress and tables
