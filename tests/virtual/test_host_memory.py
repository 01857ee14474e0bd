"""How much real memory the values of a virtual GPU take, and when the system gets it back.

The tensors are so large that nothing else in the process moves the memory as much.
"""

import gc
import math
import mmap
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import gpulab

MIB = 1 << 20
N = 64 * MIB // 4  # elements of 64 MiB
_STATM = Path("/proc/self/statm")
needs_linux = pytest.mark.skipif(
    not _STATM.exists(), reason="Linux says how much memory is in use"
)

Tensor = torch.Tensor


def resident_bytes() -> int:
    """Return the bytes of this process that are in RAM."""
    return int(_STATM.read_text("ascii").split()[1]) * mmap.PAGESIZE


@needs_linux
@pytest.mark.parametrize(
    "zeros",
    [
        lambda: torch.zeros(N, device="cuda"),
        lambda: torch.empty(N, device="cuda").zero_(),
        lambda: torch.zeros_like(torch.empty(N, device="cuda")),
        lambda: torch.ones(N, device="cuda").zero_(),
    ],
)
def test_zeros_take_no_memory(zeros: Callable[[], Tensor]) -> None:
    """A buffer of zeros that is only read, as a flush of the cache reads it, needs no pages."""
    with gpulab.virtual_gpu("H200", first_use=False):
        torch.zeros(MIB, device="cuda").sum().item()  # imports what it needs
        before = resident_bytes()
        made = zeros()
        assert made.sum().item() == 0
        assert resident_bytes() - before < 16 * MIB


@pytest.mark.parametrize(
    ("part", "n_ones"),
    [
        (lambda x: x, 0),
        (lambda x: x.view(-1)[1:-1], 2),
        (lambda x: x.view(-1)[5:2000], 2**20 - 1995),
        (lambda x: x[:, 1:], 1024),
        (lambda x: x.t(), 0),
        (lambda x: x.t()[3:5], 2**20 - 2048),
    ],
)
def test_zeros_are_written_to_the_tensor_alone(
    part: Callable[[Tensor], Tensor], n_ones: int
) -> None:
    """Views with gaps, and views that begin or end within a page, leave their neighbours."""
    with gpulab.virtual_gpu("H200", first_use=False):
        x = torch.ones(1024, 1024, device="cuda")
        part(x).zero_()
        assert x.sum().item() == n_ones
        assert part(x).count_nonzero().item() == 0


@needs_linux
@pytest.mark.slow
def test_a_virtual_gpu_that_is_dropped_frees_its_memory() -> None:
    """A program that makes GPU after GPU needs no garbage collector to get the memory back."""
    gc.collect()
    gc.disable()
    try:
        before = resident_bytes()
        for _ in range(2):
            with gpulab.virtual_gpu("H200", first_use=False):
                kept = torch.ones(N, device="cuda")
                assert kept.sum().item() == N
        del kept  # after its virtual GPU
        assert resident_bytes() - before < 48 * MIB
    finally:
        gc.enable()


@needs_linux
def test_leaving_frees_the_values_that_no_tensor_uses() -> None:
    """The allocator keeps the device memory, but in the next cell nobody reads the old bytes."""
    gpu = gpulab.virtual_gpu("H200", first_use=False)
    with gpu:
        kept, dropped = (torch.full((N,), value, device="cuda") for value in (2.0, 3.0))
        assert (kept.sum().item(), dropped.sum().item()) == (2.0 * N, 3.0 * N)
        reserved = torch.cuda.memory_reserved()
        del dropped
        before = resident_bytes()
    assert before - resident_bytes() > 48 * MIB
    with gpu:
        assert torch.cuda.memory_reserved() == reserved
        assert kept.sum().item() == 2.0 * N


@needs_linux
def test_abandoned_kernels_that_wait_take_no_memory() -> None:
    """A notebook's history of outputs may hold a GPU whose last kernels nobody waited for."""
    gpu = gpulab.virtual_gpu("H200", first_use=False)
    with gpu:
        dropped = [torch.full((N // 4,), 2.0, device="cuda") for _ in range(4)]
        assert sum(each.sum().item() for each in dropped) == 2.0 * N
        torch.cuda._sleep(1_000_000_000)
        for each in dropped:
            each.mul_(3)
        del dropped, each
    before = resident_bytes()
    gpu.abandon()
    assert before - resident_bytes() > 48 * MIB


def test_leaving_keeps_the_memory_of_a_kernel_that_waits() -> None:
    """It still writes to the next owner of memory that the program dropped too early."""
    gpu = gpulab.virtual_gpu("H200", first_use=False)
    with gpu:
        dropped = torch.zeros(N, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(1_000_000_000)
            dropped.fill_(9)
        del dropped
    with gpu:
        owner = torch.ones(N, device="cuda")
        torch.cuda.synchronize()
        assert owner.sum().item() == 9.0 * N


@needs_linux
def test_a_large_call_gives_freed_memory_back() -> None:
    """Its temporary tensors do not stay with the C library until the end of a long cell."""
    with gpulab.virtual_gpu("H200", first_use=False):
        x = torch.ones(N // 4, device="cuda")
        torch.exp(x).sum().item()  # imports what it needs
        pieces = [torch.ones(25_000) for _ in range(800)]
        del pieces[:-1]
        before = resident_bytes()
        assert torch.exp_(x)[0].item() == pytest.approx(math.e)
        assert before - resident_bytes() > 48 * MIB
    assert len(pieces) == 1
