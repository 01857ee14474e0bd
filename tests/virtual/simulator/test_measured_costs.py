"""The costs that were measured on an H200: a change of one needs a new measurement."""

import pytest

from gpulab.gpus import gpu
from gpulab.virtual.simulator import (
    Machine,
    ValueLimits,
)

MIB = 1 << 20


@pytest.fixture
def machine() -> Machine:
    """Return a machine without first-use costs."""
    return Machine(gpu("H200"), ValueLimits(0, 0.0, 0), first_use=False)


@pytest.mark.parametrize(
    ("call", "size_bytes", "expected_ns"),
    [
        ("malloc", 2 * MIB, 30_070),
        ("free", 2 * MIB, 34_600),  # it waits for the idle device first, which takes 4 µs
        ("pin", MIB, 10_000),
        ("pin", 16 * MIB, 10_000 + 5_242_880),
    ],
)
def test_memory_costs_what_was_measured(
    machine: Machine, call: str, size_bytes: int, expected_ns: int
) -> None:
    """Allocating takes a fixed time and a time for each MiB; little is pinned already."""
    if call == "pin":
        machine.host_alloc(size_bytes)
    elif call == "malloc":
        machine.device_malloc(machine.gpu, size_bytes)
    else:
        machine.device_free(machine.gpu, size_bytes)
    assert machine.host.now_ns == expected_ns


def test_a_cached_block_of_pinned_memory_costs_a_microsecond(machine: Machine) -> None:
    """The first block pays for the pinning as well, and a block that was given back does not."""
    machine.pinned.release(machine.pin(4096))
    before_ns = machine.host.now_ns
    machine.pin(4096)
    assert (before_ns, machine.host.now_ns - before_ns) == (11_000, 1_000)


def test_the_33rd_stream_is_the_first_one_again(machine: Machine) -> None:
    """PyTorch's pool has 32 side streams."""
    streams = [machine.gpu.next_stream() for _ in range(66)]
    assert [stream.number for stream in streams] == [*range(1, 33), *range(1, 33), 1, 2]
