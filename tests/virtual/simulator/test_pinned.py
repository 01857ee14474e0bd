"""Pinned host memory is reused when no copy uses it any more."""

import pytest

from gpulab.virtual.simulator.memory import PinnedAllocator


class _Device:
    """Streams are lists of open marks."""

    def __init__(self) -> None:
        self.done: set[object] = set()
        self.asked: list[int] = []
        self.pinned = PinnedAllocator(lambda stream: f"end of {stream}", self.done.__contains__)

    def new_block(self, size_bytes: int) -> int:
        """Note that the system was asked for memory, which takes 5 µs."""
        self.asked.append(size_bytes)
        return 5_000


@pytest.fixture
def device() -> _Device:
    """Return a device with nothing done."""
    return _Device()


def test_a_dropped_block_is_used_again(device: _Device) -> None:
    """For any request with the same next power of two, and not for another."""
    block = device.pinned.allocate(1000, device.new_block)
    assert block.size_bytes == 1024
    device.pinned.release(block)
    assert device.pinned.allocate(513, device.new_block) is block
    device.pinned.release(block)
    assert device.pinned.allocate(512, device.new_block) is not block
    assert device.asked == [1024, 512]


def test_a_block_that_a_copy_uses_is_not(device: _Device) -> None:
    """Until all streams are done that used it by the time it was dropped."""
    block = device.pinned.allocate(64, device.new_block)
    block.streams.update({"a": None, "b": None})
    device.pinned.release(block)
    device.done.add("end of a")
    other = device.pinned.allocate(64, device.new_block)
    assert other is not block
    device.done.add("end of b")
    assert device.pinned.allocate(64, device.new_block) is block
    assert not block.streams


def test_the_figures(device: _Device) -> None:
    """Blocks and bytes, in use and in all, their peaks, and what the system was asked for."""
    first, second = (device.pinned.allocate(64, device.new_block) for _ in range(2))
    second.streams["a"] = None
    device.pinned.release(first)
    device.pinned.release(second)
    found = device.pinned.statistics()
    assert found["active_requests"] == {"current": 1, "peak": 2, "allocated": 2, "freed": 1}
    assert found["active_bytes"] == {"current": 64, "peak": 128, "allocated": 128, "freed": 64}
    assert found["allocations"] == {"current": 2, "peak": 2, "allocated": 2, "freed": 0}
    assert (found["num_host_alloc"], found["num_host_free"]) == (2, 0)
    time_us = {"total": 10, "max": 5, "min": 5, "count": 2, "avg": 5.0}
    assert found["host_alloc_time"] == time_us
    device.pinned.reset_peak()
    device.pinned.reset_accumulated()
    found = device.pinned.statistics()
    assert found["active_requests"] == {"current": 1, "peak": 1, "allocated": 0, "freed": 0}
    assert found["host_alloc_time"] == dict.fromkeys(time_us, 0)


def test_an_emptied_cache_keeps_what_is_used(device: _Device) -> None:
    """The rest goes back to the system."""
    first, second = (device.pinned.allocate(64, device.new_block) for _ in range(2))
    second.streams["a"] = None
    device.pinned.release(first)
    device.pinned.release(second)
    device.pinned.empty_cache(lambda _size_bytes: 7_000)
    found = device.pinned.statistics()
    assert (found["num_host_free"], found["host_free_time"]["total"]) == (1, 7)
    assert found["allocated_bytes"]["current"] == 64
