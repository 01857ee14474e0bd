"""The caching allocator reuses, splits, merges and counts memory as PyTorch's does."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations

import pytest

from gpulab.virtual.simulator.memory._allocator import Allocator
from gpulab.virtual.simulator.memory._blocks import MemoryBlock, Segment
from gpulab.virtual.simulator.memory._out_of_memory import (
    OutOfDeviceMemoryError,
    _size,
    oom_message,
)
from gpulab.virtual.simulator.memory._pending_frees import DeviceHooks
from gpulab.virtual.simulator.memory._pools import ReservedMemory
from gpulab.virtual.simulator.memory._statistics import MemoryUsage

MB = 1 << 20
GB = 1 << 30


def make(n_mb: int = 1000) -> Allocator:
    """Return an allocator of a device whose memory is all free."""
    return Allocator(n_mb * MB, context_bytes=0)


@dataclass
class Work:
    """A device whose work is pending until a test adds it to ``done``."""

    pending: dict[int, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    done: set[str] = field(default_factory=set)

    def hooks(self) -> DeviceHooks:
        """Return the functions by which an allocator asks this device."""
        return DeviceHooks(
            mark=self.pending.get,
            is_done=lambda mark: mark in self.done,
            wait=lambda mark: self.asked.append(f"wait for {mark}"),
            on_malloc=lambda size_bytes: self.asked.append(f"malloc {size_bytes // MB}"),
            on_free=lambda size_bytes: self.asked.append(f"free {size_bytes // MB}"),
        )

    def allocator(self, n_mb: int = 1000) -> Allocator:
        """Return the allocator of this device."""
        return Allocator(n_mb * MB, context_bytes=0, hooks=self.hooks())


# Each word is size@stream=segment+offset, as an H200 gave them (PyTorch 2.11.0, CUDA 13.0).
# "-3" releases block 3, counted from 0, and "r6>2" records stream 2 as a user of block 6.
RECORDED = """
34603013@0=0+0 1048576@0=1+0 r0>0 -1 22020096@0=2+0 22020096@0=3+0 -0 10485760@1=4+0 peak -3
70000@2=5+0 -2 1048576@1=6+0 -4 r6>2 5242880@1=4+0 1@0=1+0 3145728@1=4+5242880 -8 -6
66060288@1=7+0 -9 22020096@1=8+0 -7 r5>0 -10 -5 1@0=1+0 513@2=5+0 -12 100@1=6+0 -13 r11>1 -14
100@1=6+0 1048575@0=1+0 306797976@1=9+0 2097152@0=2+0 100@0=1+1048576 -15 -19 -16 1048576@0=1+0
2097152@1=4+0 -17 70000@1=6+0 20971520@2=10+0 -11 512@1=6+70144 -22 r20>1 10485759@1=8+0
9437191@2=11+0 -18 -20 20971520@2=12+0 10485760@2=11+9437696 10485760@1=8+10485760 -26
39932764@1=7+0 r27>2 -21 513@2=5+0 -23
"""
# Current, peak, allocated and freed after this program on the H200; "peak" resets the peaks.
RECORDED_FIGURES = {
    "allocation": (7, 8, 32, 25),
    "segment": (13, 13, 13, 0),
    "active": (7, 8, 32, 25),
    "inactive_split": (6, 7, 21, 15),
    "allocated_bytes": (93411328, 335109632, 629991936, 536580608),
    "reserved_bytes": (559939584, 559939584, 559939584, 0),
    "active_bytes": (93411328, 335109632, 629991936, 536580608),
    "inactive_split_bytes": (42903552, 56622080, 120860160, 77956608),
    "requested_bytes": (92362588, 334060952, 623696654, 531334066),
}
RECORDED_SMALL = {
    "inactive_split": (3, 3, 13, 10),
    "active_bytes": (1536, 1119232, 4339712, 4338176),
    "requested_bytes": (1025, 1119088, 4336143, 4335118),
}


def replay(memory: Allocator, program: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the segment and offset that were recorded, and those that the allocator gives."""
    blocks: list[MemoryBlock] = []
    for word in program.split():
        if word == "peak":
            memory.usage.reset_peak()
        elif word.startswith("-"):
            memory.release(blocks[int(word[1:])])
        elif word.startswith("r"):
            number, stream = word[1:].split(">")
            memory.record_stream(blocks[int(number)], int(stream))
        else:
            size_bytes, stream = word.partition("=")[0].split("@")
            blocks.append(memory.allocate(int(size_bytes), int(stream)))
            order = memory.segments().index(blocks[-1].segment)
            yield word.partition("=")[2], (order, blocks[-1].offset_bytes)


def test_the_blocks_are_those_of_a_real_gpu() -> None:
    """A recorded program gets the same segments and offsets as on an H200."""
    places = list(replay(make(), RECORDED))
    assert [given for given, _ in places] == [f"{order}+{at}" for _, (order, at) in places]
    assert len(places) == 32


def test_the_figures_are_those_of_a_real_gpu() -> None:
    """After the recorded program every statistic is the one that PyTorch showed."""
    memory = make()
    list(replay(memory, RECORDED))
    nested = memory.usage.nested()
    names = ("current", "peak", "allocated", "freed")
    assert {
        key: tuple(nested[key]["all"][name] for name in names) for key in RECORDED_FIGURES
    } == RECORDED_FIGURES
    assert {
        key: tuple(nested[key]["small_pool"][name] for name in names) for key in RECORDED_SMALL
    } == RECORDED_SMALL


def test_an_empty_request_takes_nothing() -> None:
    """A request for 0 bytes gets a block without address and changes no figure."""
    memory = make()
    before = memory.usage.nested()
    block = memory.allocate(0, stream=0)
    memory.record_stream(block, stream=1)
    memory.release(block)
    assert (block.address, block.size_bytes) == (0, 0)
    assert memory.usage.nested() == before


def test_two_devices_have_different_addresses() -> None:
    """Addresses of two devices differ by 2**44, so that an address belongs to one device."""
    first = Allocator(GB, device_index=0).allocate(512, stream=0)
    second = Allocator(GB, device_index=1).allocate(512, stream=0)
    assert second.address - first.address == 1 << 44


def test_a_recorded_stream_delays_the_reuse_of_a_block() -> None:
    """A block is reused after the work that a recorded stream had when it was released."""
    work = Work({1: "kernel"})
    memory = work.allocator()
    block = memory.allocate(30 * MB, stream=0)
    memory.record_stream(block, stream=1)
    memory.release(block)
    other = memory.allocate(30 * MB, stream=0)
    assert other is not block
    assert (memory.usage.allocation.total, memory.usage.active.total) == (1, 2)
    work.done.add("kernel")
    assert memory.allocate(30 * MB, stream=0) is block
    assert memory.usage.active.total == 2


def test_emptying_the_cache_waits_for_pending_frees() -> None:
    """``empty_cache`` waits for recorded streams and then frees their blocks."""
    work = Work({1: "kernel"})
    memory = work.allocator()
    block = memory.allocate(30 * MB, stream=0)
    memory.record_stream(block, stream=1)
    memory.release(block)
    memory.empty_cache()
    assert work.asked == ["malloc 30", "wait for kernel", "free 30"]
    assert memory.usage.counts["num_sync_all_streams"] == 1


def test_cached_memory_is_freed_before_memory_runs_out() -> None:
    """A request that fits only after the cache is freed succeeds and counts as a retry."""
    work = Work()
    memory = work.allocator(100)
    memory.release(memory.allocate(80 * MB, stream=0))
    memory.allocate(90 * MB, stream=0)
    assert memory.reserved_bytes == 90 * MB
    assert work.asked == ["malloc 80", "free 80", "malloc 90"]
    assert memory.usage.counts["num_alloc_retries"] == 1
    assert memory.usage.counts["num_ooms"] == 0


def test_too_much_memory_is_refused_in_pytorchs_words() -> None:
    """A request that does not fit raises PyTorch's message with all its figures."""
    memory = Allocator(10 * GB, context_bytes=GB // 2)
    memory.allocate(6 * GB, stream=0)
    with pytest.raises(OutOfDeviceMemoryError) as error:
        memory.allocate(6 * GB, stream=0)
    assert str(error.value) == (
        "CUDA out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total capacity of 10.00 GiB "
        "of which 3.50 GiB is free. Including non-PyTorch memory, this process has 6.50 GiB "
        "memory in use. Of the allocated memory 6.00 GiB is allocated by PyTorch, and 0 bytes is "
        "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "
        "setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
        "documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/"
        "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
    )
    assert memory.usage.counts["num_ooms"] == 1


def test_the_message_is_that_of_a_real_gpu() -> None:
    """The figures of an H200 give the message that PyTorch 2.11 wrote there.

    Only the free memory differs by 9 MB, which the driver needed besides.
    """
    usage, held_bytes = MemoryUsage(), 22 * MB
    usage.reserve(0, None, held_bytes)
    context_bytes = 612 * MB - held_bytes
    reserve = ReservedMemory(150109880320, context_bytes, first_address=0, usage=usage)
    reserve.allowed_bytes = 15010988032
    text = oom_message(0, 20 * GB, reserve, 3 * MB, 2 * MB)
    assert text == (
        "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 139.80 "
        "GiB of which 139.20 GiB is free. Including non-PyTorch memory, this process has 612.00 "
        "MiB memory in use. 13.98 GiB allowed; Of the allocated memory 5.00 MiB is allocated by "
        "PyTorch, with 2.00 MiB allocated in private pools (e.g., CUDA Graphs), and 17.00 MiB is "
        "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "
        "setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
        "documentation for Memory Management  "
        "(https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
    )


def test_sizes_are_written_as_pytorch_does() -> None:
    """A size is written in the largest unit of which it has more than one."""
    texts = [_size(size_bytes) for size_bytes in (1024, 1536, MB, GB, GB + 1)]
    assert texts == ["1024 bytes", "1.50 KiB", "1024.00 KiB", "1024.00 MiB", "1.00 GiB"]


def test_a_fraction_limits_the_reserved_memory() -> None:
    """A request beyond the fraction runs out of memory although the device has more."""
    memory = make(1000)
    assert memory.fraction == 1.0
    memory.set_fraction(0.5)
    memory.allocate(400 * MB, stream=0)
    with pytest.raises(OutOfDeviceMemoryError, match=r"500\.00 MiB allowed; Of the allocated"):
        memory.allocate(102 * MB, stream=0)
    memory.allocate(100 * MB, stream=0)
    assert (memory.fraction, memory.free_bytes) == (0.5, 500 * MB)


def test_requests_are_routed_to_the_innermost_pool() -> None:
    """A request goes to the last route that accepts its stream, or to the default pool."""
    memory = make()
    memory.pools.route("outer", lambda _: True)
    memory.pools.route("inner", lambda stream: stream == 1)
    assert [memory.allocate(512, stream).pool for stream in (0, 1)] == ["outer", "inner"]
    assert memory.allocate(512, 1, pool="outer").pool == "outer"
    memory.pools.unroute("outer")
    assert [memory.allocate(512, stream).pool for stream in (0, 1)] == [None, "inner"]


def test_nothing_is_asked_of_the_device_while_a_pool_serves() -> None:
    """While a pool is routed, as during a capture, no work is queried and no cache is freed."""
    work = Work({1: "kernel"})
    memory = work.allocator()
    block, free = memory.allocate(30 * MB, stream=0), memory.allocate(30 * MB, stream=0)
    memory.release(free)
    memory.record_stream(block, stream=1)
    memory.pools.route("graph", lambda _: True)
    memory.release(block)
    work.done.add("kernel")
    memory.empty_cache()
    memory.allocate(512, stream=0)
    assert memory.usage.active.total == 2
    assert work.asked == ["malloc 30", "malloc 30", "malloc 2"]
    memory.pools.unroute("graph")
    memory.allocate(512, stream=0)
    assert (memory.usage.active.total, memory.usage.allocation.total) == (2, 2)


@pytest.mark.slow
def test_released_memory_leaves_no_garbage() -> None:
    """After use no block or segment remains, and none needs the garbage collector."""
    memory = make()

    def round_trip() -> None:
        memory.pools.route("graph", lambda stream: stream == 1)
        blocks = [memory.allocate(size, size % 2) for size in (100, 4097, 3 * MB, 40 * MB + 1)]
        for block in blocks:
            memory.record_stream(block, stream=2)
            memory.release(block)
        memory.pools.unroute("graph")
        memory.pools.release("graph")
        memory.empty_cache()

    def n_pieces() -> int:
        return sum(type(item) in {MemoryBlock, Segment} for item in gc.get_objects())

    while gc.collect():
        pass  # collecting garbage of other tests may create new garbage
    gc.disable()
    try:
        n_before = n_pieces()
        for _ in range(5):
            round_trip()
        assert n_pieces() == n_before
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_neighbours_merge() -> None:
    """Blocks released in any order merge into one that fills its segment."""
    for order in permutations(range(4)):
        memory = make()
        blocks = [memory.allocate(4 * MB, stream=0) for _ in range(4)]
        for number in order:
            memory.release(blocks[number])
        (segment,) = memory.segments()
        assert [block.size_bytes for block in segment.blocks()] == [20 * MB]
        assert memory.usage.inactive_split.total == 0
        assert memory.usage.inactive_split_bytes.total == 0


def test_resetting_accumulated_figures_keeps_the_present_ones() -> None:
    """A reset of accumulated figures sets allocated and freed to 0, and not current or peak."""
    memory = make()
    memory.allocate(512, stream=0)
    memory.release(memory.allocate(512, stream=0))
    nested = memory.usage.nested()
    assert (nested["allocation"]["all"]["allocated"], nested["num_device_alloc"]) == (2, 1)
    memory.usage.reset_accumulated()
    memory.release(memory.allocate(100, stream=0))
    nested = memory.usage.nested()
    assert nested["allocation"]["all"] == {
        "current": 1,
        "peak": 2,
        "allocated": 1,
        "freed": 1,
    }
    assert nested["requested_bytes"]["small_pool"]["allocated"] == 100
    assert nested["num_device_alloc"] == 0
