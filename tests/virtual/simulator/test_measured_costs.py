"""The costs that were measured on an H200: a change of one needs a new measurement."""

from dataclasses import asdict

import pytest

from gpulab.gpus import gpu
from gpulab.virtual.simulator import (
    GRAPH_GAPS,
    Capture,
    HostCosts,
    Kind,
    Machine,
    StreamTask,
    ValueLimits,
)
from gpulab.virtual.simulator._host import FIRST_USE_NS
from gpulab.virtual.simulator._task import Gaps

MIB = 1 << 20


@pytest.fixture
def machine() -> Machine:
    """Return a machine without first-use costs."""
    return Machine(gpu("H200"), ValueLimits(0, 0.0, 0), first_use=False)


def test_costs_of_the_host_are_those_measured() -> None:
    """Each call of the program costs the host what it cost on an H200's host."""
    assert asdict(HostCosts()) == {
        "launch_latency_ns": 2_800,
        "wake_ns": 3_200,
        "synchronize_ns": 4_000,
        "wait_call_ns": 450,
        "queue_depth": 1_022,
        "clock_read_ns": 50,
        "event_create_ns": 590,
        "event_record_ns": 1_280,
        "current_stream_ns": 3_020,
        "event_query_ns": 250,
        "stream_create_ns": 580,
        "stream_wait_ns": 600,
        "sleep_launch_ns": 3_060,
        "view_ns": 900,
        "empty_ns": 1_700,
        "copy_launch_ns": 4_200,
        "host_operation_ns": 1_300,
        "host_bytes_per_s": 100e9,
        "context_ns": 334_000_000,
    }
    assert FIRST_USE_NS == {
        "gemm": 106_000_000,
        "gemm16": 76_000_000,
        "conv": 250_000_000,
        "random": 16_000_000,
        "kernel": 400_000,
        "malloc": 1_000_000,
    }


def test_pauses_are_those_measured() -> None:
    """The pauses between tasks of a stream, and those inside a graph."""
    assert tuple(asdict(Gaps()).values()) == (1_250, 1_250, 1_350, 1_000)
    assert tuple(asdict(GRAPH_GAPS).values()) == (1_250, 1_300, 1_400, 100)


def test_a_graph_costs_a_fixed_part_and_a_little_for_each_node(machine: Machine) -> None:
    """A launch of two nodes takes 2,206 ns of the host."""
    capture = Capture(machine.gpu.stream, pool=(0, 1))
    for name in ("mul", "add"):
        task = StreamTask(Kind.KERNEL, machine.gpu.stream, name=name)
        capture.add(task, (), ("train.py", 3))
    assert capture.graph().host_ns == 2_206


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
