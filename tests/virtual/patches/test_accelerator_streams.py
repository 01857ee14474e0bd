"""``torch.Stream``, ``torch.Event``, ``torch.accelerator`` and NVTX work as with CUDA."""

import time
from collections.abc import Callable

import pytest
import torch

from gpulab.virtual.simulator._host import HostCosts

CLOCK_NS = HostCosts().clock_read_ns


def host_ns(work: Callable[[], object]) -> int:
    """Return the virtual host time of a call in nanoseconds."""
    start_ns = time.perf_counter_ns()
    work()
    return time.perf_counter_ns() - start_ns - CLOCK_NS


@pytest.mark.usefixtures("gpu")
def test_an_event_of_the_host_is_torchs_own() -> None:
    """``torch.Event("cpu")`` is still PyTorch's own event."""
    assert repr(torch.Event("cpu")).startswith("torch.Event device_type=cpu")


@pytest.mark.usefixtures("gpu")
def test_a_stream_equals_another_handle_to_it() -> None:
    """Handles to one stream are equal; asking for the current one takes the host 1.3 µs."""
    assert host_ns(lambda: torch.Stream("cuda")) == HostCosts().stream_create_ns
    stream = torch.Stream("cuda")
    with stream as entered:
        assert entered is stream
        assert torch.accelerator.current_stream() == stream
        assert hash(torch.accelerator.current_stream()) == hash(stream)
    assert host_ns(torch.accelerator.current_stream) == 1_300


@pytest.mark.usefixtures("gpu")
def test_the_accelerator_takes_streams_only() -> None:
    """Setting something else as the current stream raises PyTorch's message."""
    with pytest.raises(TypeError) as error:
        torch.accelerator.set_stream(None)  # type: ignore[arg-type] # the point
    assert str(error.value) == (
        "_accelerator_setStream(): incompatible function arguments. The following argument types "
        "are supported:\n    1. (arg0: torch.Stream) -> None\n\nInvoked with: None"
    )


@pytest.mark.usefixtures("gpu")
def test_streams_and_events_order_each_other() -> None:
    """``record_event``, ``wait_event`` and ``wait_stream`` order work of three streams."""
    first, second = torch.Stream("cuda"), torch.Stream("cuda")
    x = torch.zeros(3, device="cuda")
    torch.cuda.synchronize()
    with first:
        torch.cuda._sleep(10_000_000)
        x.fill_(2)
    second.wait_event(first.record_event())
    third = torch.Stream(stream_id=0, device_index=0, device_type=1)
    third.wait_stream(second)
    assert (x + 0).tolist() == [2.0] * 3
    assert first.query()


@pytest.mark.usefixtures("gpu")
def test_ranges_count_their_depth_and_cost() -> None:
    """NVTX pushes and pops return the depth from 0 on, and a mark takes 300 ns."""
    nvtx = torch.cuda.nvtx
    assert [nvtx.range_push("outer"), nvtx.range_push("inner")] == [0, 1]
    assert [nvtx.range_pop(), nvtx.range_pop(), nvtx.range_pop()] == [1, 0, -2]
    assert [nvtx.range_start("a"), nvtx.range_start("b")] == [1, 2]
    assert host_ns(lambda: nvtx.mark("here")) == 300
    nvtx.range_end(1)
    with nvtx.range("step {}", 3):
        assert nvtx.range_pop() == 0
        nvtx.range_push("again")


@pytest.mark.usefixtures("gpu")
def test_the_cuda_profiler_can_be_started() -> None:
    """``torch.cuda.profiler`` runs, and ``cudart()`` returns free memory and error texts."""
    with torch.cuda.profiler.profile():
        torch.ones(3, device="cuda")
    runtime = torch.cuda.cudart()
    assert runtime.cudaMemGetInfo(0) == torch.cuda.mem_get_info()
    assert runtime.cudaGetErrorString(runtime.cudaError.success) == "no error"
    torch.cuda.check_error(0)
