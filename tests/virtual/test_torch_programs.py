"""Unmodified PyTorch programs run on the virtual GPU with CUDA's order, waits and values."""

import time
from collections.abc import Callable

import pytest
import torch

import gpulab
from gpulab import gpus
from gpulab.core.errors import NotModelledError, UnknownNameError, VirtualGpuError
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


OPERATIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": lambda a, b: a + b,
    "subtract a number": lambda a, _: a - 2.5,
    "multiply in place": lambda a, b: a.clone().mul_(b),
    "divide": lambda a, b: a / (b.abs() + 1),
    "compare": lambda a, b: (a > b).to(torch.float32),
    "where": lambda a, b: torch.where(a > 0, a, b),
    "exp": lambda a, _: a.exp(),
    "relu": lambda a, _: torch.relu(a),
    "gelu": lambda a, _: torch.nn.functional.gelu(a),
    "sum": lambda a, _: a.sum(),
    "sum of a dimension": lambda a, _: a.sum(dim=1),
    "mean": lambda a, _: a.mean(dim=0, keepdim=True),
    "largest": lambda a, _: a.max(dim=1).values,
    "argmax": lambda a, _: a.argmax(dim=1),
    "variance": lambda a, _: a.var(),
    "matmul": lambda a, b: a @ b,
    "batched matmul": lambda a, b: torch.bmm(a.expand(3, 8, 8), b.expand(3, 8, 8)),
    "matrix and vector": lambda a, b: a @ b[0],
    "linear": lambda a, b: torch.nn.functional.linear(a, b, a[0]),
    "einsum": lambda a, b: torch.einsum("ij,kj->ik", a, b),
    "softmax": lambda a, _: a.softmax(dim=-1),
    "log softmax": lambda a, _: a.log_softmax(dim=0),
    "layer norm": lambda a, b: torch.nn.functional.layer_norm(a, (8,), b[0], b[1]),
    "conv2d": lambda a, b: torch.nn.functional.conv2d(a[None, None], b[None, None, :3, :3]),
    "transpose": lambda a, _: a.t().contiguous(),
    "slice": lambda a, _: a[2:5, ::2] * 1,
    "reshape": lambda a, _: a.reshape(4, 16) + 0,
    "cat": lambda a, b: torch.cat([a, b], dim=1),
    "stack": lambda a, b: torch.stack([a, b]),
    "gather rows": lambda a, _: a[torch.tensor([3, 1], device=a.device)],
    "mask": lambda a, _: a[a > 0],
    "assign a slice": lambda a, _: a.clone().index_fill_(0, torch.tensor([1], device=a.device), 7),
    "sort": lambda a, _: a.sort(dim=1).values,
    "top 3": lambda a, _: a.topk(3).values,
    "cumulative sum": lambda a, _: a.cumsum(dim=0),
    "embedding": lambda a, _: torch.nn.functional.embedding(
        torch.tensor([0, 5], device=a.device), a
    ),
    "nonzero": lambda a, _: (a > 0).nonzero(),
    "full": lambda a, _: torch.full((3, 2), 1.5, device=a.device),
    "arange": lambda a, _: torch.arange(2, 9, 3, device=a.device),
    "zeros like": lambda a, _: torch.zeros_like(a),
    "double": lambda a, _: a.double() * 2,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_gives_the_values_of_the_cpu(name: str) -> None:
    """An operation on the virtual GPU has the CPU's shape, type and values."""
    torch.manual_seed(1)
    a, b = torch.randn(8, 8), torch.randn(8, 8)
    expected = OPERATIONS[name](a, b)
    with gpulab.virtual_gpu("H200"):
        computed = OPERATIONS[name](a.cuda(), b.cuda())
        assert computed.device == torch.device("cuda:0")
        on_host = computed.cpu()
    torch.testing.assert_close(on_host, expected)


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
def test_half_precision_keeps_its_type() -> None:
    """A matmul of halves is a half, as accurate as float32 arithmetic rounded at the end."""
    a = torch.randn(16, 16, dtype=torch.float16)
    on_device = (a.cuda() @ a.cuda()).cpu()
    torch.testing.assert_close(on_device, (a.float() @ a.float()).half())


@pytest.mark.usefixtures("gpu")
def test_a_module_in_inference() -> None:
    """A small network moved to the GPU gives the CPU's result."""
    layers = torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.LayerNorm(16)
    model = torch.nn.Sequential(*layers).eval()
    x = torch.randn(4, 8)
    with torch.inference_mode():
        expected = model(x)
        on_device = model.to("cuda")(x.to("cuda"))
    assert next(model.parameters()).is_cuda
    torch.testing.assert_close(on_device.cpu(), expected)


@pytest.mark.usefixtures("gpu")
def test_backward_runs() -> None:
    """The gradient of a small expression is the CPU's."""
    x = torch.randn(5)
    on_device = x.cuda().requires_grad_()
    (on_device**2).sum().backward()
    assert on_device.grad is not None
    torch.testing.assert_close(on_device.grad.cpu(), 2 * x)


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
def test_an_interval_before_its_end_raises_as_on_hardware() -> None:
    """An interval whose end has not happened yet raises CUDA's message."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    torch.cuda._sleep(1_000_000)
    end.record()
    with pytest.raises(RuntimeError) as error:
        start.elapsed_time(end)
    assert str(error.value) == "Both events must be completed before calculating elapsed time."


@pytest.mark.usefixtures("gpu")
def test_an_interval_of_events_without_timing_raises_as_on_hardware() -> None:
    """An interval of events without timing raises PyTorch's message."""
    start, end = torch.cuda.Event(), torch.cuda.Event()
    with pytest.raises(ValueError, match="Both events must be created") as error:
        start.elapsed_time(end)
    assert str(error.value) == "Both events must be created with argument 'enable_timing=True'."


@pytest.mark.usefixtures("gpu")
def test_an_interval_of_unrecorded_events_raises_as_on_hardware() -> None:
    """An interval of events that were not recorded raises PyTorch's message."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with pytest.raises(ValueError, match="Both events must be recorded") as error:
        start.elapsed_time(end)
    assert str(error.value) == "Both events must be recorded before calculating elapsed time."


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
def test_the_current_stream_follows_its_context() -> None:
    """Work inside a stream's context goes to that stream, and afterwards to the one before."""
    side = torch.cuda.Stream()
    before = torch.cuda.current_stream()
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        torch.cuda._sleep(1_000_000)
    assert torch.cuda.current_stream() == before
    assert not side.query()
    assert before.query()
    side.synchronize()
    assert side.query()


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
def test_reading_pinned_memory_too_early_gives_old_values() -> None:
    """A host that reads pinned memory before the copy has ended reads the old bytes."""
    on_host = torch.zeros(3).pin_memory()
    on_device = torch.ones(3, device="cuda")
    torch.cuda._sleep(1_000_000)
    on_host.copy_(on_device, non_blocking=True)
    early = (on_host + 0).tolist()
    torch.cuda.synchronize()
    assert (early, on_host.tolist()) == ([0.0] * 3, [1.0] * 3)


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


@pytest.mark.parametrize("wait", ["item", "cpu", "tolist", "__repr__"])
@pytest.mark.usefixtures("gpu")
def test_reading_a_value_waits_for_the_device(wait: str) -> None:
    """``item``, ``cpu``, ``tolist`` and printing wait for the device."""
    x = torch.ones((), device="cuda")
    torch.cuda._sleep(10_000_000)
    assert elapsed_s(getattr(x, wait)) > 5e-3


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
def test_pinned_copies_return_and_pageable_ones_wait() -> None:
    """A copy of 64 MB returns at once from pinned memory, and takes milliseconds from pageable."""
    on_device = torch.empty(1 << 24, device="cuda")
    pageable = torch.empty(1 << 24)
    pinned = torch.empty(1 << 24, pin_memory=True)
    assert pinned.is_pinned()
    assert not pageable.is_pinned()
    assert elapsed_s(lambda: on_device.copy_(pinned, non_blocking=True)) < 50 * US
    torch.cuda.synchronize()
    assert elapsed_s(lambda: on_device.copy_(pageable, non_blocking=True)) > 2e-3


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


def test_the_second_matmul_is_cheaper_than_the_first() -> None:
    """The first matmul takes over 0.1 s for the first use, and the next under 1 ms."""
    with gpulab.virtual_gpu("H200"):
        a = torch.randn(64, 64, device="cuda")
        first_s = elapsed_s(lambda: a @ a)
        settle(lambda: a @ a)
        assert first_s > 0.1
        assert elapsed_s(lambda: a @ a) < 1e-3


@pytest.mark.usefixtures("gpu")
def test_mixed_devices_raise_as_on_hardware() -> None:
    """An operation on tensors of two devices raises PyTorch's message."""
    with pytest.raises(RuntimeError) as error:
        torch.ones(3, device="cuda") + torch.ones(3)
    assert str(error.value) == (
        "Expected all tensors to be on the same device, "
        "but found at least two devices, cuda:0 and cpu!"
    )


@pytest.mark.usefixtures("gpu")
def test_too_large_a_tensor_runs_out_of_memory_as_on_hardware() -> None:
    """A tensor that does not fit raises ``torch.OutOfMemoryError``."""
    with pytest.raises(torch.OutOfMemoryError, match=r"^CUDA out of memory"):
        torch.empty(1 << 40, device="cuda")


@pytest.mark.usefixtures("gpu")
def test_an_operation_without_a_model_is_named() -> None:
    """An operation without a model raises an error that names it, with advice."""
    with pytest.raises(NotModelledError) as error:
        torch.ones(3, 3, device="cuda").to_mkldnn()
    assert "the virtual GPU has no model of aten." in str(error.value)
    assert str(error.value).endswith("; run this part on the CPU, or on a CUDA GPU")


@pytest.mark.usefixtures("gpu")
def test_autocast_on_the_cpu_still_works() -> None:
    """Autocast for the CPU casts host tensors inside the context."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16


@pytest.mark.usefixtures("gpu")
def test_the_device_reports_its_properties() -> None:
    """Name, capability, memory and cache are those that a real H200 reports."""
    properties = torch.cuda.get_device_properties(0)
    assert torch.cuda.get_device_name() == "NVIDIA H200"
    assert torch.cuda.get_device_capability() == (9, 0)
    assert (properties.L2_cache_size, properties.multi_processor_count) == (62914560, 132)
    assert torch.cuda.mem_get_info()[1] == 150109880320
    assert torch.cuda.device_count() == 1


@pytest.mark.usefixtures("gpu")
def test_memory_is_counted() -> None:
    """A tensor's memory counts as allocated until the tensor is deleted."""
    before = torch.cuda.memory_allocated()
    x = torch.empty(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4 << 20
    del x
    assert torch.cuda.memory_allocated() == before


@pytest.mark.usefixtures("gpu")
def test_seeds_repeat_the_devices_random_numbers() -> None:
    """Equal seeds give equal random numbers and do not change the host's generator."""
    host_state = torch.get_rng_state()
    torch.cuda.manual_seed(3)
    first = torch.randn(4, device="cuda").tolist()
    assert torch.randn(4, device="cuda").tolist() != first
    torch.cuda.manual_seed(3)
    assert torch.randn(4, device="cuda").tolist() == first
    assert torch.equal(torch.get_rng_state(), host_state)


def test_leaving_the_context_restores_torch() -> None:
    """After the context ``torch.cuda`` and ``time`` are the originals, also after an error."""
    names = ("is_available", "synchronize", "Stream", "Event", "get_device_properties")
    before = [getattr(torch.cuda, name) for name in names]
    bases, clock, to = torch.cuda.Event.__bases__, time.perf_counter, torch.Tensor.to
    with pytest.raises(ZeroDivisionError), gpulab.virtual_gpu("H200"):
        1 / 0  # noqa: B018 # the error is the point
    assert [getattr(torch.cuda, name) for name in names] == before
    assert (torch.cuda.Event.__bases__, time.perf_counter, torch.Tensor.to) == (bases, clock, to)


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


def test_an_unknown_gpu_is_refused_by_name() -> None:
    """An unknown GPU raises an error that lists the known ones."""
    with pytest.raises(UnknownNameError) as error:
        gpulab.virtual_gpu("Voodoo")
    assert str(error.value) == f"unknown GPU 'Voodoo'; Known: {', '.join(gpus.names())}"


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
def test_other_threads_keep_real_time() -> None:
    """Another thread reads the real clock inside the context."""
    import threading

    readings: list[float] = []
    thread = threading.Thread(target=lambda: readings.append(time.perf_counter()))
    thread.start()
    thread.join()
    assert readings[0] < 1_000_000 <= time.perf_counter()


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
