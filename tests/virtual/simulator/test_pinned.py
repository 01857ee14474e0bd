"""Pinned host memory is reused as soon as no copy uses it any more."""

import pytest

from gpulab.virtual.simulator.memory import PinnedAllocator


class _Device:
    """A device whose streams are done when a test says so."""

    def __init__(self) -> None:
        self.done: set[object] = set()
        self.asked: list[int] = []
        self.pinned = PinnedAllocator(lambda stream: f"end of {stream}", self.done.__contains__)

    def new_block(self, size_bytes: int) -> int:
        """Record a request to the system, and return its duration of 5 µs."""
        self.asked.append(size_bytes)
        return 5_000


@pytest.fixture
def device() -> _Device:
    """Return a device whose work is all pending."""
    return _Device()


def test_a_block_that_a_copy_uses_is_not_used_again(device: _Device) -> None:
    """A released block is reused after all streams that used it are done."""
    block = device.pinned.allocate(64, device.new_block)
    block.streams.update({"a": None, "b": None})
    device.pinned.release(block)
    device.done.add("end of a")
    other = device.pinned.allocate(64, device.new_block)
    assert other is not block
    device.done.add("end of b")
    assert device.pinned.allocate(64, device.new_block) is block
    assert not block.streams


def test_statistics_of_pinned_memory(device: _Device) -> None:
    """The statistics count requests, bytes, peaks and calls to the system, and can be reset."""
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
