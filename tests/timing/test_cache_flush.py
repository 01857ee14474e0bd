"""A flush on the virtual GPU empties the L2 cache, leaves it clean, and costs no extra memory."""

from collections.abc import Callable

import pytest
import torch

import gpulab
from gpulab.core.errors import FlushMemoryError
from gpulab.timing import flusher
from gpulab.timing._cache_flush import FLUSHES
from gpulab.virtual import Kind, VirtualGpu

MIB = 1024**2
L2_BYTES = 60 * MIB
BUFFER_BYTES = 2 * L2_BYTES
SUMS_BYTES = 4 * BUFFER_BYTES // 65_536


def kernels_of(virtual: VirtualGpu) -> list[tuple[str, int]]:
    """Return name and duration of each kernel that the GPU has run."""
    torch.cuda.synchronize()
    return [
        (task.name, (task.end_ns or 0) - (task.start_ns or 0))
        for task in virtual.machine.gpus[0].device.records()
        if task.kind is Kind.KERNEL
    ]


def linear() -> Callable[[], torch.Tensor]:
    """Return a linear layer on one row that reads nothing but its 32 MiB of weights."""
    row = torch.empty(1, 4096, dtype=torch.float16, device="cuda")
    weights = torch.empty(4096, 4096, dtype=torch.float16, device="cuda")
    out = torch.empty(1, 4096, dtype=torch.float16, device="cuda")
    return lambda: torch.mm(row, weights, out=out)


def small_sum() -> Callable[[], torch.Tensor]:
    """Return a sum over 8 MiB of rows."""
    rows = torch.empty(2048, 1024, device="cuda")
    out = torch.empty(2048, device="cuda")
    return lambda: torch.sum(rows, dim=1, out=out)


def last_ns(virtual: VirtualGpu, *steps: Callable[[], object]) -> int:
    """Run the steps one after the other and return how long the last one's kernels took."""
    *before, last = steps
    for step in before:
        step()
    n_before = len(kernels_of(virtual))
    last()
    return sum(duration_ns for _, duration_ns in kernels_of(virtual)[n_before:])


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(FLUSHES))
def test_a_flush_makes_the_next_kernel_cold(gpu: VirtualGpu, kind: str) -> None:
    """After a flush, a kernel takes as long as its first run on an empty cache."""
    work, empty = small_sum(), flusher(kind)
    first_ns = last_ns(gpu, flusher("read"), work)
    hot_ns = last_ns(gpu, work)
    assert hot_ns < first_ns <= last_ns(gpu, empty, work)


@pytest.mark.slow
def test_a_kernel_waits_for_what_a_write_flush_left(gpu: VirtualGpu) -> None:
    """A one-row linear layer takes 15 to 30 % longer after a write flush than a read flush."""
    work = linear()
    clean_ns, dirty_ns = (last_ns(gpu, flusher(kind), work) for kind in ("read", "write"))
    assert 1.15 * clean_ns < dirty_ns < 1.3 * clean_ns


@pytest.mark.slow
def test_a_flush_is_one_kernel_over_twice_the_cache(gpu: VirtualGpu) -> None:
    """Each call launches one kernel and allocates nothing beyond the buffer and its sums."""
    empty = flusher()
    assert torch.cuda.memory_allocated() == BUFFER_BYTES + SUMS_BYTES
    n_before = len(kernels_of(gpu))
    n_allocations = torch.cuda.memory_stats()["allocation.all.allocated"]
    for _ in range(3):
        empty()
    assert [name for name, _ in kernels_of(gpu)[n_before:]] == ["sum"] * 3
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == n_allocations


@pytest.mark.slow
def test_reading_leaves_nothing_to_write_back(gpu: VirtualGpu) -> None:
    """After a read flush the cache has no dirty lines, neither of the work nor of the flush."""
    written = torch.empty(8 * MIB, device="cuda")
    cache = gpu.machine.gpus[0].device.cache
    written.zero_()
    torch.cuda.synchronize()
    assert cache._dirty_bytes > L2_BYTES // 3
    flusher("read")()
    torch.cuda.synchronize()
    assert cache._dirty_bytes == SUMS_BYTES
    flusher("write")()
    torch.cuda.synchronize()
    assert cache._dirty_bytes > L2_BYTES // 3


@pytest.mark.slow
def test_the_buffers_of_a_gpu_that_was_replaced_are_freed() -> None:
    """A notebook's history of outputs may hold the GPU for the rest of the process."""
    first, second = gpulab.virtual_gpu("H200"), gpulab.virtual_gpu("H200")
    with first:
        flusher()
        assert torch.cuda.memory_allocated() > BUFFER_BYTES
    first.abandon()
    with second:
        flusher()
    with first:
        assert torch.cuda.memory_allocated() == 0


@pytest.mark.slow
def test_each_device_has_its_own_buffer() -> None:
    """The buffer is on the device that is current when the flusher is made."""
    with gpulab.virtual_gpu("H200", count=2, first_use=False):
        flusher()
        with torch.cuda.device(1):
            flusher()
        sizes = [torch.cuda.memory_allocated(device) for device in range(2)]
        assert sizes == [BUFFER_BYTES + SUMS_BYTES] * 2


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
def test_a_flush_is_no_part_of_a_gradient() -> None:
    """Both kinds work with and without inference mode, and are not recorded by autograd."""
    with torch.inference_mode():
        empty = flusher()
    empty()
    with torch.inference_mode():
        flusher("write")()
    empty()


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
def test_a_full_gpu_is_named_with_what_to_do() -> None:
    """Without memory for the buffer, the error gives its size and the cure, and a retry works."""
    free_bytes, _ = torch.cuda.mem_get_info()
    full = torch.empty(free_bytes - 64 * MIB, dtype=torch.uint8, device="cuda")
    with pytest.raises(FlushMemoryError) as caught:
        flusher()
    assert str(caught.value) == (
        "no room on cuda:0 for the 120 MiB that empty its cache; "
        "free tensors and call torch.cuda.empty_cache(), or measure hot"
    )
    del full
    flusher()()
