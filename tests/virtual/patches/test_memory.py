"""The memory functions of torch.cuda and torch.accelerator on the virtual GPU."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import gpulab
from gpulab.core.errors import NotModelledError
from gpulab.core.torch_private import C
from gpulab.virtual import VirtualGpu
from gpulab.virtual.patches import _memory as memory

KNOWS_POOLS = torch.__version__ >= "2.13"  # earlier versions of torch have no statistics by pool
MB = 1 << 20
GB = 1 << 30


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
def test_statistics_have_pytorchs_keys() -> None:
    """``memory_stats`` has the keys that PyTorch 2.11 has on an H200."""
    quantities = (
        *("allocation", "segment", "active", "inactive_split", "allocated_bytes"),
        *("reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes"),
    )
    names = ("current", "peak", "allocated", "freed")
    pools = ("all", "small_pool", "large_pool")
    assert set(torch.cuda.memory_stats()) == {
        *(f"{key}.{pool}.{name}" for key in quantities for pool in pools for name in names),
        *(f"oversize_{key}.{name}" for key in ("allocations", "segments") for name in names),
        *("num_alloc_retries", "num_ooms", "num_sync_all_streams", "max_split_size"),
        *("num_device_alloc", "num_device_free", "num_oom_rejections"),
    }
    assert torch.cuda.memory_stats()["max_split_size"] == -1


@pytest.mark.usefixtures("gpu")
def test_statistics_have_requested_and_allocated_bytes() -> None:
    """The statistics show the bytes that were requested and the rounded bytes in use."""
    x = torch.empty(100, dtype=torch.uint8, device="cuda")
    stats = torch.cuda.memory_stats(x.device)
    assert stats["requested_bytes.small_pool.current"] == 100
    assert stats["allocated_bytes.small_pool.current"] == 512
    torch.cuda.reset_accumulated_memory_stats()
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == 0


@pytest.mark.usefixtures("gpu")
def test_the_summary_is_pytorchs_table() -> None:
    """``memory_summary`` prints our figures in PyTorch's table."""
    x = mb_tensor(30)
    lines = torch.cuda.memory_summary(abbreviated=True).splitlines()
    assert (
        lines[1] == "|                  PyTorch CUDA memory summary, device ID 0                 |"
    )
    assert (
        lines[7] == "| Allocated memory      |  30720 KiB |  30720 KiB |  30720 KiB |      0 B   |"
    )
    assert x.is_cuda


def test_free_memory_is_the_devices(gpu: VirtualGpu) -> None:
    """Free memory is the capacity without the CUDA context and what the allocator reserved."""
    total = gpu.spec.memory_bytes
    assert torch.cuda.mem_get_info() == (total - 554500096, total)
    x = mb_tensor(30)
    assert torch.cuda.mem_get_info("cuda") == (total - 554500096 - x.nbytes, total)
    assert torch.cuda.memory.mem_get_info(torch.device("cuda:0"))[1] == total


def test_a_limit_is_kept(gpu: VirtualGpu) -> None:
    """A request beyond the process's share of memory raises PyTorch's out-of-memory error."""
    torch.cuda.set_per_process_memory_fraction(0.5)
    assert torch.cuda.get_per_process_memory_fraction() == 0.5
    free = gpu.machine.gpu.memory.free_bytes / GB
    with pytest.raises(torch.OutOfMemoryError) as error:
        mb_tensor(100 * 1024)
    assert str(error.value).startswith(
        "CUDA out of memory. Tried to allocate 100.00 GiB. GPU 0 has a total capacity of "
        f"{gpu.spec.memory_bytes / GB:.2f} GiB of which {free:.2f} GiB is free. "
    )
    assert torch.cuda.memory_stats()["num_ooms"] == 1


def test_emptying_the_cache_waits_for_the_device(gpu: VirtualGpu) -> None:
    """``empty_cache`` waits for pending work if it frees memory, as ``cudaFree`` does."""
    x = mb_tensor(30)
    del x
    torch.cuda._sleep(20_000_000)
    before_s = gpu.now_s
    torch.cuda.empty_cache()
    assert gpu.now_s - before_s > 0.009
    before_s = gpu.now_s
    torch.cuda.empty_cache()
    assert gpu.now_s - before_s < 0.001


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
def test_a_whole_snapshot_has_pytorchs_parts() -> None:
    """A whole snapshot has the parts that PyTorch's viewers read."""
    snapshot: dict[str, Any] = C._cuda_memorySnapshot(None)
    assert sorted(snapshot) == [
        *("allocator_settings", "device_traces", "external_annotations", "segments"),
    ]
    assert snapshot["device_traces"] == [[]]


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
    with pytest.raises(NotModelledError) as error:
        torch.cuda.MemPool(**{option: True})  # type: ignore[arg-type] # an allocator may be anything
    assert str(error.value) == (
        f"the virtual GPU has no model of torch.cuda.MemPool({option}); "
        f"leave {option} out, or use a CUDA GPU"
    )


def test_memory_is_handed_out_by_address(gpu: VirtualGpu) -> None:
    """Raw memory counts as allocated until it is deleted, and a second delete raises."""
    side = torch.cuda.Stream()
    address = C._cuda_cudaCachingAllocator_raw_alloc(30 * MB, side.cuda_stream)
    assert torch.cuda.memory_allocated() == 30 * MB
    assert torch.cuda.memory_snapshot()[0]["stream"] == side.cuda_stream
    C._cuda_cudaCachingAllocator_raw_delete(address)
    assert torch.cuda.memory_allocated() == 0
    with pytest.raises(RuntimeError) as error:
        C._cuda_cudaCachingAllocator_raw_delete(address)
    assert str(error.value) == f"invalid device pointer: {address:#x}"
    assert C._cuda_cudaCachingAllocator_raw_alloc(0, 0) == 0
    C._cuda_cudaCachingAllocator_raw_delete(0)
    assert gpu.machine.gpu.memory.by_address == {}
    with pytest.raises(torch.OutOfMemoryError, match=r"^CUDA out of memory\. Tried to allocate"):
        C._cuda_cudaCachingAllocator_raw_alloc(1 << 42, 0)


@pytest.mark.usefixtures("gpu")
def test_the_cache_cannot_be_turned_off() -> None:
    """``caching_allocator_enable(False)`` is refused, and ``True`` changes nothing."""
    torch.cuda.caching_allocator_enable(value=True)
    with pytest.raises(NotModelledError) as error:
        torch.cuda.caching_allocator_enable(value=False)
    assert str(error.value) == (
        "the virtual GPU has no model of device memory without PyTorch's cache; "
        "leave caching_allocator_enable(False) out, or use a CUDA GPU"
    )
    assert torch.cuda.get_allocator_backend() == "native"


@pytest.mark.usefixtures("gpu")
def test_a_device_that_does_not_exist_has_no_memory() -> None:
    """Statistics of a device that does not exist raise PyTorch's message."""
    with pytest.raises(RuntimeError) as error:
        torch.cuda.memory_stats(3)
    assert str(error.value) == "Allocator not initialized for device 3: did you call init?"


@pytest.mark.usefixtures("gpu")
def test_emptying_the_hosts_cache_is_allowed() -> None:
    """Emptying the host's cache of pinned memory raises no error."""
    C._host_emptyCache()
    C._accelerator_emptyHostCache()
