"""Unmodified PyTorch programs run on the virtual GPU with CUDA's order, waits and values."""

import time
from collections.abc import Callable

import pytest
import torch

import gpulab
from gpulab.core.errors import NotModelledError, VirtualGpuError
from gpulab.virtual import entered
from gpulab.virtual.simulator._host import HostCosts
from gpulab.virtual.simulator.costs._kernel_families import KERNEL_FAMILIES

US = 1e-6
COSTS = HostCosts()
CLOCK_S = COSTS.clock_read_ns * 1e-9
OVERHEAD_S = (COSTS.launch_latency_ns + COSTS.wake_ns) * 1e-9
GEMM_LAUNCH_S = KERNEL_FAMILIES["gemm"].launch_ns * 1e-9
ADD_LAUNCH_S = KERNEL_FAMILIES["elementwise"].launch_ns * 1e-9


def elapsed_s(work: Callable[[], object]) -> float:
    """Return the host time of a call."""
    start_s = time.perf_counter()
    work()
    return time.perf_counter() - start_s


def settle(work: Callable[[], object], n_calls: int = 3) -> None:
    """Call the work until its outputs come from cached memory, wait, and warm the host."""
    for _ in range(n_calls):
        work()
    torch.cuda.synchronize()
    for _ in range(2):
        torch.cuda._sleep(1)
    torch.cuda.synchronize()


MAPPED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "to the type of another": lambda row: (row > 0).sum().to(row),
    "to its own device": lambda row: row.to(row.device) * 2,
    "to the GPU": lambda row: row.cuda() * row.to("cuda"),
    "made on its device": lambda row: row + torch.arange(4, device=row.device),
    "asked for its device": lambda row: row * float(row.is_cuda and not row.is_meta),
    "its number": lambda row: row + row.get_device(),
    "mean loss": lambda row: torch.nn.functional.cross_entropy(row, row.argmax()),
}
ON_HOST = {"to the GPU", "asked for its device", "its number"}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", MAPPED)
def test_functions_inside_torch_func_see_the_gpu(name: str) -> None:
    """Inside ``vmap`` and ``grad`` a tensor is on the GPU, and has the values of a loop."""
    work, rows = MAPPED[name], torch.linspace(-1, 2, 12, device="cuda").view(3, 4)
    mapped = torch.func.vmap(work)(rows)
    assert mapped.device == torch.device("cuda:0")
    torch.testing.assert_close(mapped, torch.stack([work(row) for row in rows]))
    gradient = torch.func.vmap(torch.func.grad(lambda row: (work(row) * row).sum()))(rows)
    if name not in ON_HOST:
        on_host = torch.func.vmap(torch.func.grad(lambda row: (work(row) * row).sum()))(rows.cpu())
        torch.testing.assert_close(gradient.cpu(), on_host)


def test_ctc_loss_takes_lengths_of_the_host_or_the_gpu() -> None:
    """The lengths of ``ctc_loss`` may be on the host, as PyTorch's own examples have them."""
    torch.manual_seed(0)
    scores, targets = torch.randn(6, 2, 5).log_softmax(2), torch.tensor([[1, 2], [2, 3]])
    lengths = torch.tensor([6, 5]), torch.tensor([2, 1])
    expected = torch.nn.functional.ctc_loss(scores, targets, *lengths)
    with gpulab.virtual_gpu("H200"):
        on_gpu = scores.cuda(), targets.cuda()
        for given in (lengths, [item.cuda() for item in lengths]):
            found = torch.nn.functional.ctc_loss(*on_gpu, *given)
            torch.testing.assert_close(found.cpu(), expected)


def test_ctc_loss_refuses_lengths_on_the_host_that_cudnn_would_read() -> None:
    """With int32 targets in one row cuDNN reads int32 lengths, in the memory of the GPU."""
    with gpulab.virtual_gpu("H200"):
        scores = torch.zeros(6, 2, 5, device="cuda").log_softmax(2)
        targets = torch.tensor([1, 2, 2], device="cuda", dtype=torch.int32)
        lengths = torch.tensor([6, 5]), torch.tensor([2, 1])
        in_int32 = [item.int() for item in lengths]
        expected = torch.nn.functional.ctc_loss(scores, targets, *lengths)
        found = torch.nn.functional.ctc_loss(scores, targets, *(item.cuda() for item in in_int32))
        torch.testing.assert_close(found, expected)
        with pytest.raises(RuntimeError, match="tensors to be on the same device"):
            torch.nn.functional.ctc_loss(scores, targets, *in_int32)
        with torch.backends.cudnn.flags(enabled=False):
            torch.nn.functional.ctc_loss(scores, targets, *in_int32)


@pytest.mark.usefixtures("gpu")
def test_a_launch_returns_before_its_kernel_has_run() -> None:
    """A stopwatch around a matmul reads only the launch and the reading of the clock."""
    a = torch.randn(4096, 4096, device="cuda")
    settle(lambda: a @ a)
    assert elapsed_s(lambda: a @ a) == pytest.approx(GEMM_LAUNCH_S + CLOCK_S, abs=1e-9)


@pytest.mark.usefixtures("gpu")
def test_waiting_reads_launch_kernel_and_wake_up() -> None:
    """A stopwatch with ``synchronize`` reads launch, latency, kernel and wake-up."""
    a = torch.randn(4096, 4096, device="cuda")
    settle(lambda: a @ a)

    def waited() -> None:
        a @ a
        torch.cuda.synchronize()

    kernel_s = 2_728_781e-9  # its inputs are not in the cache
    assert elapsed_s(waited) == pytest.approx(GEMM_LAUNCH_S + OVERHEAD_S + kernel_s, rel=2e-3)


@pytest.mark.usefixtures("gpu")
def test_events_read_the_kernel_and_their_floor() -> None:
    """Behind queued work a pair of events reads a sleep and 2.6 µs."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(1_000_000)
    start.record()
    torch.cuda._sleep(1_000_000)
    end.record()
    torch.cuda.synchronize()
    assert start.elapsed_time(end) == pytest.approx(0.505051 + 0.0026, abs=3.2e-5)


@pytest.mark.usefixtures("gpu")
def test_events_on_another_stream_see_nothing_of_the_work() -> None:
    """Events on a side stream do not see a busy default stream."""
    side = torch.cuda.Stream()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(10_000_000)
    start.record(side)
    torch.cuda._sleep(10_000_000)
    end.record(side)
    torch.cuda.synchronize()
    assert start.elapsed_time(end) < 0.1


@pytest.mark.usefixtures("gpu")
def test_a_missing_wait_gives_wrong_values_and_a_wait_right_ones() -> None:
    """A stream that reads another stream's result has the old bytes unless it waits."""
    side = torch.cuda.Stream()
    results = []
    for waits in (False, True):
        a = torch.zeros(4, device="cuda")
        b = torch.zeros(4, device="cuda")
        torch.cuda.synchronize()
        torch.cuda._sleep(10_000_000)
        a.fill_(1.0)
        if waits:
            side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.mul(a, 10, out=b)
        torch.cuda.synchronize()
        results.append(b.tolist())
    assert results == [[0.0] * 4, [10.0] * 4]


@pytest.mark.usefixtures("gpu")
def test_a_copy_that_has_had_its_time_is_seen_without_a_wait() -> None:
    """A copy that ended while the host slept is visible without a wait."""
    on_host = torch.zeros(3).pin_memory()
    on_host.copy_(torch.ones(3, device="cuda"), non_blocking=True)
    time.sleep(1)
    assert (on_host + 0).tolist() == [1.0] * 3


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("is_pinned", "expected"), [(False, 1.0), (True, -7.0)])
def test_only_pinned_memory_must_not_be_overwritten_during_a_copy(
    *, is_pinned: bool, expected: float
) -> None:
    """A change of the source after a copy's call reaches the device only from pinned memory."""
    on_host = torch.ones(3, pin_memory=is_pinned)
    torch.cuda._sleep(1_000_000)
    on_device = torch.empty(3, device="cuda")
    on_device.copy_(on_host, non_blocking=True)
    on_host.fill_(-7)
    assert on_device.tolist() == [expected] * 3


@pytest.mark.usefixtures("gpu")
def test_moving_the_values_of_a_copy_takes_no_host_time() -> None:
    """A pinned copy and a wait take launch, latency, 1.7 µs and wake-up, and no more."""
    on_device = torch.zeros(4, device="cuda")
    pinned = torch.ones(4, pin_memory=True)
    torch.cuda.synchronize()

    def copied() -> None:
        on_device.copy_(pinned, non_blocking=True)
        torch.cuda.synchronize()

    copied()  # one after another operator takes longer
    assert elapsed_s(copied) == pytest.approx(
        COSTS.copy_launch_ns * 1e-9 + 1.7 * US + OVERHEAD_S + CLOCK_S, abs=2e-9
    )


@pytest.mark.usefixtures("gpu")
def test_the_launch_queue_fills_up() -> None:
    """After a long kernel 1,021 launches return at once, and only the next one waits."""
    x = torch.zeros(8, device="cuda")
    torch.cuda.synchronize()
    torch.cuda._sleep(1_000_000_000)
    times_s = [elapsed_s(lambda: x.add_(1)) for _ in range(1_030)]
    blocked = [i for i, time_s in enumerate(times_s) if time_s > 1e-3]
    assert blocked == [1_021]


@pytest.mark.usefixtures("gpu")
def test_an_operation_without_a_model_is_named() -> None:
    """An operation without a model raises an error that names it, with advice."""
    with pytest.raises(NotModelledError) as error:
        torch.ones(3, 3, device="cuda").to_mkldnn()
    assert "the virtual GPU has no model of aten." in str(error.value)
    assert str(error.value).endswith("; run this part on the CPU, or on a CUDA GPU")


def test_the_device_continues_in_the_next_context() -> None:
    """Tensors, values and the clock survive leaving and entering."""
    device = gpulab.virtual_gpu("H200")
    with device:
        x = torch.arange(4.0, device="cuda")
        left_s = time.perf_counter()
    with device:
        assert time.perf_counter() > left_s
        assert x.sum().item() == 6.0


def test_entering_twice_is_one_context() -> None:
    """Entering the same GPU twice is one context, which the outer exit ends."""
    device = gpulab.virtual_gpu("H200")
    with device, device:
        pass
    with device:
        with device:
            pass
        assert torch.cuda.is_available()
        assert entered() is device
    assert not device.entered


def test_a_second_virtual_gpu_inside_the_first_is_refused() -> None:
    """Entering a second virtual GPU inside the first raises an error."""
    with gpulab.virtual_gpu("H200"), pytest.raises(VirtualGpuError) as error:
        gpulab.virtual_gpu("A100").__enter__()
    assert entered() is None
    assert str(error.value) == (
        "the virtual H200 is entered already; leave it before entering the virtual A100"
    )


def test_a_tensor_outside_its_context_is_refused() -> None:
    """Using a tensor outside its context raises an error with advice."""
    with gpulab.virtual_gpu("H200"):
        x = torch.ones(3, device="cuda")
    with pytest.raises(VirtualGpuError) as error:
        x + 1
    assert str(error.value) == (
        "no virtual GPU is active, but a tensor, stream, event or graph of one is used; "
        "work with it inside `with gpu:` or after gpulab.use(...)"
    )


@pytest.mark.usefixtures("gpu")
def test_timeit_and_sleep_use_virtual_time() -> None:
    """``timeit`` and ``time.sleep`` use the virtual clock."""
    import timeit

    assert elapsed_s(lambda: time.sleep(3600)) == pytest.approx(3600, abs=1e-6)
    x = torch.ones(8, device="cuda")
    settle(lambda: x + 1)
    assert timeit.timeit(lambda: x + 1, number=1) == pytest.approx(
        ADD_LAUNCH_S + CLOCK_S, abs=1e-8
    )


@pytest.mark.usefixtures("gpu")
def test_pinning_again_is_quick() -> None:
    """The first pinned block of a size takes milliseconds, and the next a few µs."""

    def pin() -> None:
        torch.empty(1 << 22, pin_memory=True)

    assert elapsed_s(pin) > 5e-3
    assert elapsed_s(pin) < 20 * US
    if hasattr(torch.accelerator, "empty_host_cache"):  # not in PyTorch 2.11
        torch.accelerator.empty_host_cache()
        assert elapsed_s(pin) > 5e-3
