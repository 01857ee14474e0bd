"""The memory functions of torch.cuda and torch.accelerator on the virtual GPU."""

import gc
from collections.abc import Iterator

import pytest
import torch

import gpulab
from gpulab.core.errors import NotModelledError
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


def mb_tensor(n_mb: int) -> torch.Tensor:
    """Return a tensor of ``n_mb`` MiB on the GPU."""
    return torch.empty(n_mb * MB, dtype=torch.uint8, device="cuda")


@pytest.mark.usefixtures("gpu")
def test_a_snapshot_lists_segments_and_blocks() -> None:
    """A snapshot has the form that PyTorch 2.11 gave on an H200, without stack traces."""
    x = mb_tensor(3)
    y = torch.empty(100, dtype=torch.uint8, device="cuda")
    y.record_stream(side := torch.cuda.Stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(1_000_000)
    address = y.data_ptr()
    del y
    large, small = torch.cuda.memory_snapshot()
    assert large == {
        "device": 0,
        "address": x.data_ptr(),
        "total_size": 20 * MB,
        "allocated_size": 3 * MB,
        "active_size": 3 * MB,
        "requested_size": 3 * MB,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [
            {
                "address": x.data_ptr(),
                "size": 3 * MB,
                "requested_size": 3 * MB,
                "state": "active_allocated",
                "frames": [],
            },
            {
                "address": x.data_ptr() + 3 * MB,
                "size": 17 * MB,
                "requested_size": 0,
                "state": "inactive",
                "frames": [],
            },
        ],
    }
    assert (small["address"], small["segment_type"]) == (address, "small")
    assert (small["allocated_size"], small["active_size"]) == (0, 512)
    assert [block["state"] for block in small["blocks"]] == ["active_pending_free", "inactive"]


@pytest.mark.usefixtures("gpu")
def test_a_pool_has_memory_of_its_own() -> None:
    """A pool's memory serves only requests inside its context, and has its own snapshot."""
    pool = torch.cuda.MemPool()
    assert (pool.id[0], pool.use_count()) == (0, 1)
    with torch.cuda.use_mem_pool(pool):
        assert pool.use_count() == 2
        inside = mb_tensor(30)
    outside = mb_tensor(30)
    address = inside.data_ptr()
    assert pool.use_count() == 1
    assert [segment["address"] for segment in pool.snapshot()] == [address]
    assert pool.snapshot(include_traces=False)[0]["segment_pool_id"] == pool.id
    assert len(torch.cuda.memory_snapshot()) == 2
    figures = torch.cuda.memory_stats_as_nested_dict()
    assert ("reserved_bytes_by_private_pools" in figures) == KNOWS_POOLS
    if KNOWS_POOLS:
        by_pool = figures["reserved_bytes_by_private_pools"]
        assert by_pool[pool.id]["all"]["current"] == 30 * MB
    del inside
    assert mb_tensor(30).data_ptr() not in (address, outside.data_ptr())


@pytest.mark.slow
@pytest.mark.usefixtures("gpu")
def test_a_dropped_pool_gives_its_memory_back() -> None:
    """A deleted pool gives its memory back as soon as no tensor uses it."""
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = mb_tensor(30)
    del pool
    gc.collect()
    assert torch.cuda.memory_reserved() == 30 * MB
    del inside
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0
    with torch.cuda.use_mem_pool(pool := torch.cuda.MemPool()):
        mb_tensor(30)
    del pool
    gc.collect()
    assert torch.cuda.memory_reserved() == 0


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("option", ["allocator", "use_on_oom", "no_split"])
def test_options_of_a_pool_are_refused(option: str) -> None:
    """A pool with an allocator of its own, or with other rules for its blocks, is refused."""
    with pytest.raises(
        NotModelledError, match=r"no model of the options of torch\.cuda\.MemPool;"
    ):
        torch.cuda.MemPool(**{option: True})  # type: ignore[arg-type] # an allocator may be anything


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
