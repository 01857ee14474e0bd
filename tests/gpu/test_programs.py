"""What the lessons teach is true on a real GPU and on the virtual one.

The tests compare relations of times only; absolute times belong to ``benchmarks/``.
"""

import gc
import time
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import product

import pytest
import torch

import gpulab
from gpulab.core.errors import NotCapturableError
from gpulab.timing import take_samples

pytestmark = pytest.mark.gpu
NO_GPU = "no CUDA GPU: only the virtual one runs here"


@pytest.fixture(params=["real", "virtual"])
def gpu(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test on the GPU of this machine, if there is one, and on the virtual H200."""
    if request.param == "real" and not torch.cuda.is_available():
        pytest.skip(NO_GPU)
    with nullcontext() if request.param == "real" else gpulab.virtual_gpu("H200"):
        yield request.param


def test_a_launch_is_shorter_than_its_work(gpu: str) -> None:
    """The naive time of a large matmul is less than a tenth of its time by events."""
    a = torch.randn(4096, 4096, device="cuda")
    naive, events = (
        gpulab.measure(lambda: a @ a, method=method, n_samples=11)
        for method in ("naive", "events")
    )
    assert naive.median_s < events.median_s / 10
    assert naive.source == {"real": "measured", "virtual": "virtual"}[gpu]


@pytest.mark.usefixtures("gpu")
def test_events_and_waiting_agree_on_long_work() -> None:
    """Events and a stopwatch with a wait agree within 10 % for milliseconds of work."""
    a = torch.randn(4096, 4096, device="cuda")
    waited, events = (
        gpulab.measure(lambda: a @ a, method=method, n_samples=11)
        for method in ("synchronized", "events")
    )
    assert events.median_s == pytest.approx(waited.median_s, rel=0.1)


@pytest.mark.usefixtures("gpu")
def test_an_interval_that_has_not_ended_is_refused_in_the_same_words() -> None:
    """An interval that has not ended raises the same message on both GPUs."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    torch.cuda._sleep(100_000_000)
    end.record()
    with pytest.raises(RuntimeError) as error:
        start.elapsed_time(end)
    torch.cuda.synchronize()
    assert str(error.value) == "Both events must be completed before calculating elapsed time."


@pytest.mark.usefixtures("gpu")
def test_the_launch_queue_holds_about_a_thousand() -> None:
    """After a kernel of half a second the first launch that waits is one after 900 to 1,100."""
    x = torch.zeros(1024, device="cuda")
    x.add_(1)
    torch.cuda.synchronize()
    torch.cuda._sleep(1_000_000_000)
    calls_s = []
    for _ in range(1_200):
        start_s = time.perf_counter()
        x.add_(1)
        calls_s.append(time.perf_counter() - start_s)
    torch.cuda.synchronize()
    assert 900 < calls_s.index(max(calls_s)) < 1_100
    assert max(calls_s) > 0.1


@pytest.mark.usefixtures("gpu")
def test_side_streams_are_not_fenced_by_the_default_stream() -> None:
    """Long kernels on two side streams and the default stream overlap."""
    streams = [torch.cuda.Stream(), torch.cuda.default_stream(), torch.cuda.Stream()]
    torch.cuda._sleep(1_000)
    torch.cuda.synchronize()
    events = [[torch.cuda.Event(enable_timing=True) for _ in streams] for _ in range(2)]
    for stream, start, end in zip(streams, *events, strict=True):
        with torch.cuda.stream(stream):
            start.record()
            torch.cuda._sleep(200_000_000)
            end.record()
    torch.cuda.synchronize()
    # These are times of the device, so a busy host does not matter.
    assert all(start.elapsed_time(end) > 0 for start, end in product(*events))


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
def test_the_magic_times_on_the_gpu_in_use() -> None:
    """``%cudatime`` times one line on the GPU in use."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "gpulab")
    shell.user_ns["a"] = torch.randn(1024, 1024, device="cuda")
    measurement = shell.run_line_magic("cudatime", "-q -o -r 11 a @ a")
    assert measurement.n_samples == 11
    assert measurement.median_s > 5e-6


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
def test_a_failed_capture_leaves_the_process_working() -> None:
    """After a capture that failed in Python the next graph works."""
    x = torch.ones(1 << 20, device="cuda")

    def refuses() -> None:
        x.add_(1)
        raise ValueError("not in a graph")

    with pytest.raises(NotCapturableError, match="not in a graph"):
        take_samples("graph", refuses, n_samples=2)
    # PyTorch ends the process if the pool of the failed graph is released twice.
    gc.collect()
    assert len(take_samples("graph", lambda: x.add_(1), n_samples=2)) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
def test_records_of_the_work_leave_the_process_working() -> None:
    """After measurements with activity records, graphs and PyTorch's profiler still work."""
    x = torch.ones(1 << 16, device="cuda")
    made = torch.cuda.CUDAGraph()
    with torch.cuda.graph(made):
        x.mul_(1)
    for _ in range(5):
        found = gpulab.measure(lambda: x.mul_(1), progress=False)
        assert found.floor_method in (
            "work",
            "records",
        )  # "work" on a real GPU, "records" on the virtual one
        assert 0.5e-6 < found.median_s < 20e-6
        made.replay()
        assert len(take_samples("graph", lambda: x.mul_(1), n_samples=2)) == 2
    if found.source == "measured":
        with torch.profiler.profile(acc_events=True) as profile:
            x.mul_(1)
            inside = gpulab.measure(lambda: x.mul_(1), progress=False)
        assert inside.floor_method == "timer"  # the program's own profiler is in use
        assert sum("elementwise" in event.name for event in profile.events()) > 20
        warming = torch.profiler.schedule(wait=0, warmup=1, active=1)
        with torch.profiler.profile(schedule=warming, acc_events=True) as scheduled:
            for _ in range(2):
                assert gpulab.measure(lambda: x.mul_(1), progress=False).floor_method == "timer"
                scheduled.step()
        assert gpulab.measure(lambda: x.mul_(1), progress=False).floor_method == "work"
