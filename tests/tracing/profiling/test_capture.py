"""Records of what the device did: exact on the virtual GPU, and through a fake profiler."""

import os
from pathlib import Path

import pytest
import torch

import gpulab
from gpulab.core.errors import ProfilerBusyError, ProfilerUnavailableError
from gpulab.gpus import gpu as gpu_named
from gpulab.happens_before.activity import ActivityRecord
from gpulab.timing._profiler import per_call
from gpulab.tracing._cuda_names import short_name
from gpulab.tracing.profiling import (
    Records,
    _cupti,
    _kineto,
    capture,
    leaves_no_trace,
)
from gpulab.virtual import VirtualGpu
from tests.support import fake_profiler
from tests.support.fake_profiler import STREAM, THREAD, Event, FakeGpu

KERNEL_NS = 10_000
N_CYCLES = KERNEL_NS * gpu_named("H200").boost_clock_mhz // 1000
INSTEAD = 'or measure without records: method="calibrated"'


def kernel() -> None:
    """Enqueue a kernel of exactly 10 µs."""
    torch.cuda._sleep(N_CYCLES)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    """Replace torch's GPU and profiler by fakes."""
    return fake_profiler.install(monkeypatch)


def record(start_ns: int, end_ns: int, kind: str = "kernel", stream: int = 0) -> ActivityRecord:
    """Return a record in which only kind, times and stream matter."""
    return ActivityRecord(kind, "work", start_ns, end_ns, stream)


def records(*found: ActivityRecord) -> Records:
    """Return the records of one call."""
    return Records(found, (), "virtual", "NVIDIA H200")


def test_busy_counts_overlaps_once_and_pauses_not_at_all() -> None:
    """Busy time counts overlaps once and skips pauses: 3 + 2 µs in a span of 9 µs."""
    found = records(
        record(1_000, 3_000),
        record(2_000, 4_000, stream=1),
        record(2_500, 2_600, kind="memset"),
        record(8_000, 10_000, kind="memcpy"),
    )
    assert found.busy_s == pytest.approx(5e-6, abs=1e-15)
    assert found.span_s == pytest.approx(9e-6, abs=1e-15)
    assert (found.n_records, found.n_kernels) == (4, 2)
    assert found.records[0].duration_ns == 2_000


def test_the_virtual_host_is_left_as_it_was(gpu: VirtualGpu) -> None:
    """The virtual host is not changed, also after errors and nested captures."""
    before = dict(vars(gpu.machine.host))

    def inner() -> None:
        assert capture(kernel).n_records == 1

    assert capture(inner).n_records == 1

    def fails() -> None:
        raise ValueError("at the first call")

    for take in (lambda: capture(fails), lambda: per_call(fails, n_samples=2)):
        with pytest.raises(ValueError, match="at the first call"):
            take()
    assert vars(gpu.machine.host).keys() == before.keys()


def test_the_profilers_records_are_read(fake: FakeGpu) -> None:
    """Kernels, copies and fills are read, each with the call that launched it."""

    def work() -> None:
        fake.launch("void at::native::add(int)")
        fake.launch("Memcpy HtoD (Pinned -> Device)", 7_000)
        fake.launch("Memset (Device)", 1_000)
        fake.add(Event("CPU", "Activity Buffer Request", fake.now_ns, 2_500_000, 0, 0))
        fake.call("cudaEventRecordWithFlags")

    found = capture(work)
    assert [(item.kind, item.name, item.duration_ns) for item in found.records] == [
        ("kernel", "void at::native::add(int)", 5_000),
        ("memcpy", "Memcpy HtoD (Pinned -> Device)", 7_000),
        ("memset", "Memset (Device)", 1_000),
    ]
    assert [(call.kind, call.name) for call in found.calls] == [
        ("launch", "cudaLaunchKernel"),
        ("launch", "cudaMemcpyAsync"),
        ("launch", "cudaMemsetAsync"),
        ("other", "cudaEventRecordWithFlags"),
        ("wait", "cudaDeviceSynchronize"),
    ]
    for item, call in zip(found.records, found.calls, strict=False):
        assert (item.correlation, item.launch_start_ns) == (call.correlation, call.start_ns)
        assert item.launch_end_ns == call.end_ns
        assert (item.stream, item.device, item.size_bytes, call.thread) == (
            STREAM,
            0,
            None,
            THREAD,
        )
    assert (found.source, found.device_name, found.n_missing) == ("measured", "NVIDIA H200", 0)
    assert not fake.is_open


def test_marks_of_programs_are_no_work(fake: FakeGpu) -> None:
    """Annotations, which the profiler also lists on the device, are not counted."""

    def work() -> None:
        fake.launch("work")
        fake.add(Event("CUDA", "my range", fake.now_ns, 9_000, STREAM, 8, annotation=True))
        fake.add(Event("CUDA", "Optimizer.step#SGD", fake.now_ns, 9_000, STREAM, fake.number))

    assert [item.name for item in capture(work).records] == ["work"]


def test_a_record_lost_of_the_only_call_is_counted(fake: FakeGpu) -> None:
    """With one call only, a launch without a record still counts as missing."""
    fake.lose = {8 + 1}

    def work() -> None:
        fake.launch()
        fake.launch()

    assert capture(work).n_missing == 1


def test_host_functions_need_no_record(fake: FakeGpu) -> None:
    """A host callback is a launch without a record, and is not missing."""

    def work() -> None:
        fake.launch()
        fake.call("cudaLaunchHostFunc")

    found = capture(work)
    assert (found.n_records, found.n_missing) == (1, 0)
    assert found.calls[1].kind == "other"


def test_a_session_ends_with_the_work_that_fails(fake: FakeGpu) -> None:
    """After an error of the work, the profiler stops without a wait that would raise again."""

    def fails() -> None:
        fake.launch()
        raise ValueError("at the first call")

    with pytest.raises(ValueError, match="at the first call"):
        per_call(fails, n_samples=3)
    assert not fake.is_open
    assert fake.events[-1].name() == "kernel"
    assert capture(fake.launch).n_records == 1


def test_cupti_is_detached_after_each_session(
    fake: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CUPTI is detached after an error of the work too, but not in a broken CUDA context."""
    detached: list[bool] = []
    monkeypatch.setattr(_kineto, "detach", lambda: detached.append(fake.is_open))
    capture(fake.launch)
    assert detached == [False]
    with pytest.raises(ZeroDivisionError):
        capture(lambda: 1 // 0)
    assert detached == [False, False]

    def breaks() -> None:
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    with pytest.raises(torch.AcceleratorError):
        capture(breaks)
    assert detached == [False, False]


def test_records_leave_no_trace_if_cupti_can_be_detached(
    fake: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recording leaves no trace if CUPTI can be detached, and always on a virtual GPU."""
    del fake
    monkeypatch.setattr(gpulab.tracing.profiling._capture, "is_detachable", lambda: True)
    assert leaves_no_trace()
    monkeypatch.setattr(gpulab.tracing.profiling._capture, "is_detachable", lambda: False)
    assert not leaves_no_trace()
    monkeypatch.setattr(gpulab.tracing.profiling._capture, "is_detachable", lambda: True)
    monkeypatch.setattr(torch.profiler, "supported_activities", set)
    assert not leaves_no_trace()
    with gpulab.virtual_gpu("H200", first_use=False):
        assert leaves_no_trace()


def test_a_session_that_a_program_prepares_is_left_alone(
    fake: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the program has a profiler with a schedule, `leaves_no_trace` returns False."""
    del fake
    monkeypatch.setattr(gpulab.tracing.profiling._capture, "is_detachable", lambda: True)
    assert leaves_no_trace()
    waiting = torch.profiler.schedule(wait=9, warmup=1, active=1)
    with torch.profiler.profile(schedule=waiting):
        assert not leaves_no_trace()
    assert leaves_no_trace()


def test_a_session_that_does_not_begin_says_why(
    fake: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a session cannot start, the error quotes torch and says what to do."""

    class Refusing:
        def __init__(self, **_options: object) -> None: ...

        def __enter__(self) -> None:
            raise RuntimeError("Can't disable Kineto profiler\nwhen it's not running")

    monkeypatch.setattr(torch.autograd.profiler, "profile", Refusing)
    with pytest.raises(ProfilerBusyError) as error:
        capture(fake.launch)
    assert str(error.value) == (
        "torch.profiler cannot begin a session (Can't disable Kineto profiler); if a profiler "
        f"with a schedule is in its warm-up, leave its `with` block, {INSTEAD}"
    )


@pytest.mark.usefixtures("fake")
def test_another_session_of_torch_is_refused() -> None:
    """A second session is refused, because it would end the first silently."""
    torch.autograd.profiler._run_on_profiler_start()
    try:
        with pytest.raises(ProfilerBusyError) as error:
            capture(kernel)
    finally:
        torch.autograd.profiler._run_on_profiler_stop()
    assert str(error.value) == (
        "a session of torch.profiler is open, and there can be only one; leave its `with` "
        f"block, or call its stop(), {INSTEAD}"
    )


SAYS = "WARNING:2026-01-31 10:00:00 1:1 init.cpp:116] function failed with error"
HELD = (
    "another tool uses CUPTI, which serves one at a time "
    "(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED); restart Python without Nsight Systems, "
    f"Nsight Compute or any other profiler of this process, {INSTEAD}"
)
FORBIDDEN = (
    "the driver gives records to administrators only (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES); "
    "load it with NVreg_RestrictProfilingToAdminUsers=0, start the container with "
    f"--cap-add=SYS_ADMIN, {INSTEAD}"
)
SILENT = (
    "the driver gave no record of any kernel (CUPTI does not say why); in a container, start it "
    f"with --cap-add=SYS_ADMIN, {INSTEAD}"
)


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        (f"{SAYS} CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)", ProfilerBusyError, HELD),
        (f"{SAYS} CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)", ProfilerUnavailableError, FORBIDDEN),
        ("", ProfilerUnavailableError, SILENT),
    ],
)
def test_a_driver_without_records_says_why(
    fake: FakeGpu, said: str, kind: type[Exception], message: str
) -> None:
    """The profiler's words on stderr, written once per process, decide the error."""
    fake.is_blind = True
    with _cupti.collect_complaints(_kineto._complaints):
        os.write(2, f"{said}\n".encode())
    for _ in range(2):
        with pytest.raises(kind) as error:
            capture(fake.launch)
        assert str(error.value) == message
    assert not fake.is_open


def test_a_torch_without_cupti_says_so(fake: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch without CUPTI is reported without trying a session."""
    monkeypatch.setattr(torch.profiler, "supported_activities", set)
    with pytest.raises(ProfilerUnavailableError) as error:
        capture(fake.launch)
    assert str(error.value) == (
        f"torch {torch.__version__} was built without CUPTI, which collects the records; "
        'measure without records: method="calibrated"'
    )
    assert not fake.sleeps


def test_the_profilers_messages_do_not_reach_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    """Routine messages are dropped, complaints collected, and other output passes through."""
    lines: list[str] = []
    n_open = len([*Path("/proc/self/fd").iterdir()])
    with _cupti.collect_complaints(lines):
        os.write(2, b"USDT:2026-01-31 10:00:00 1:1 Handler.cpp:52] profiler_start\n")
        os.write(2, b"WARNING:2026-01-31 10:00:00 1:1 init.cpp:117] CUPTI failed\n")
        os.write(2, b"[W131 10:00:00.1 profiler_kineto.cpp:942] no session\nmine\n")
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "mine\nafter\n"
    assert len([*Path("/proc/self/fd").iterdir()]) == n_open
    assert lines == ["WARNING:2026-01-31 10:00:00 1:1 init.cpp:117] CUPTI failed"]


def test_a_program_without_stderr_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a stderr, messages are not collected and nothing fails."""

    def closed(_number: int) -> int:
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr(os, "dup", closed)
    lines: list[str] = []
    with _cupti.collect_complaints(lines):
        pass
    assert lines == []


FILL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
    "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>)"
)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (FILL, "vectorized_elementwise_kernel<4, FillFunctor<float>, array<…"),
        ("at::cuda::(anonymous namespace)::spin_kernel(long)", "spin_kernel"),
        ("void f<g(int)>(int)", "f<g(int)>"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        ("nvjet_sm90_hsh_64x48", "nvjet_sm90_hsh_64x48"),
    ],
)
def test_names_are_shortened(name: str, short: str) -> None:
    """Namespaces and arguments are cut; template arguments stay if there is room."""
    assert short_name(name) == short
    assert len(short) <= 60


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
def test_a_real_gpu_gives_the_same_answers() -> None:
    """On a real GPU, kernels, copies and graphs have all their records and no others."""
    x, graph = torch.ones(1 << 16, device="cuda"), torch.cuda.CUDAGraph()
    pinned = torch.empty(1 << 16).pin_memory()
    with torch.cuda.graph(graph):
        x.mul_(1)
        x.mul_(1)

    def work() -> None:
        x.add_(1)
        pinned.copy_(x, non_blocking=True)
        graph.replay()

    calls = per_call(work, n_samples=5, before=lambda: torch.zeros(1 << 24, device="cuda"))
    for call in calls:
        assert [item.kind for item in call.records] == ["kernel", "memcpy", "kernel", "kernel"]
        assert 0 < call.busy_s < call.span_s < 1e-3
        assert not call.dropped
    # torch 2.11 warns unless acc_events is given, and warnings are errors here.
    with torch.profiler.profile(acc_events=True), pytest.raises(ProfilerBusyError):
        capture(work)
    assert leaves_no_trace()


@pytest.mark.usefixtures("fake")
def test_pytorch_does_not_detach_cupti_during_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """TEARDOWN_CUPTI is 0 where torch reads it, at start and end, and unset for the work."""
    monkeypatch.delenv("TEARDOWN_CUPTI", raising=False)
    seen: list[str | None] = []

    class Looking(torch.autograd.profiler.profile):
        """A profiler session that notes the setting as PyTorch finds it."""

        def __enter__(self) -> None:  # type: ignore[override] # as the fake has it
            seen.append(os.environ.get("TEARDOWN_CUPTI"))
            super().__enter__()

        def __exit__(self, *error: object) -> None:
            seen.append(os.environ.get("TEARDOWN_CUPTI"))
            super().__exit__(*error)  # type: ignore[arg-type] # as the fake has it

    monkeypatch.setattr(torch.autograd.profiler, "profile", Looking)
    capture(lambda: seen.append(os.environ.get("TEARDOWN_CUPTI")))
    assert seen == ["0", None, "0"]
