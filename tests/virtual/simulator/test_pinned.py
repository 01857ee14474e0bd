"""Pinned host memory is reused as soon as no copy uses it any more."""

import pytest

from gpulab.virtual.simulator.memory import PinnedAllocator


class _Device:
    """A device whose streams are done when a test says so."""

    def __init__(self) -> None:
        self.done: set[object] = set()
        self.asked: list[int] = []
        self.pinned = PinnedAllocator(lambda stream: f"end of {stream}", self.done.__contains__)

    def new_block(self, size_bytes: int) -> None:
        """Record a request to the system."""
        self.asked.append(size_bytes)


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
