"""The memory functions of torch.cuda and torch.accelerator on the virtual GPU."""

import time
from collections.abc import Iterator

import pytest
import torch

import gpulab
from gpulab.core.torch_private import C
from gpulab.virtual import VirtualGpu
from gpulab.virtual.patches import _memory as memory

KNOWS_POOLS = torch.__version__ >= "2.13"  # earlier versions of torch have no statistics by pool
MB = 1 << 20


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[VirtualGpu]:
    """Enter a virtual H200 whose memory functions are those under test."""
    made = gpulab.virtual_gpu("H200", first_use=False)
    with made, monkeypatch.context() as patch:
        for owner, names in memory.replacements(made.machine):
            for name, value in names.items():
                patch.setattr(owner, name, value, raising=False)
        yield made


@pytest.mark.usefixtures("gpu")
def test_a_device_that_does_not_exist_has_no_memory() -> None:
    """Statistics of a device that does not exist raise PyTorch's message."""
    with pytest.raises(RuntimeError) as error:
        torch.cuda.memory_stats(3)
    assert str(error.value) == "Allocator not initialized for device 3: did you call init?"


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", ["_host_emptyCache", "_accelerator_emptyHostCache"])
def test_emptying_the_hosts_cache_gives_pinned_memory_back(name: str) -> None:
    """Pinned memory that no tensor uses goes back to the system, so the next is pinned anew."""
    kept = torch.empty(1 << 20, pin_memory=True)
    times_s = []
    for empties in (False, False, True):
        if empties:
            getattr(C, name)()
        start_s = time.perf_counter()
        dropped = torch.empty(1 << 20, pin_memory=True)
        times_s.append(time.perf_counter() - start_s)
        del dropped
    first_s, cached_s, after_s = times_s
    assert min(first_s, after_s) > 10 * cached_s
    assert kept.is_pinned()
