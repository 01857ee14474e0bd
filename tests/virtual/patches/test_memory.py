"""The memory functions of torch.cuda and torch.accelerator on the virtual GPU."""

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
    """Pinned memory that no tensor uses goes back to the system."""
    kept, dropped = (torch.empty(1000, pin_memory=True) for _ in range(2))
    del dropped
    getattr(C, name)()
    assert torch.cuda.host_memory_stats()["num_host_free"] == 1
    assert kept.is_pinned()
