"""``torch.Stream``, ``torch.Event``, ``torch.accelerator`` and NVTX work as with CUDA."""

import time
from collections.abc import Callable

import pytest
import torch

import gpulab
from gpulab.virtual.simulator._host import HostCosts

CLOCK_NS = HostCosts().clock_read_ns


def host_ns(work: Callable[[], object]) -> int:
    """Return the virtual host time of a call in nanoseconds."""
    start_ns = time.perf_counter_ns()
    work()
    return time.perf_counter_ns() - start_ns - CLOCK_NS


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("device", [None, "cuda", "cuda:0", torch.device("cuda"), 0])
def test_events_of_the_accelerator_are_virtual(device: object) -> None:
    """A pair of ``torch.Event`` reads the virtual time between them."""
    start, end = (torch.Event(device, enable_timing=True) for _ in range(2))  # type: ignore[arg-type] # a number too
    assert start.device == torch.device("cuda")
    start.record()
    torch.cuda._sleep(10_000_000)
    end.record()
    end.synchronize()
    assert start.device == torch.device("cuda:0")
    assert start.query()
    assert start.elapsed_time(end) > 5
    assert type(start) is torch.Event


@pytest.mark.usefixtures("gpu")
def test_an_event_of_the_host_is_torchs_own() -> None:
    """``torch.Event("cpu")`` is still PyTorch's own event."""
    assert repr(torch.Event("cpu")).startswith("torch.Event device_type=cpu")


@pytest.mark.usefixtures("gpu")
def test_a_stream_or_an_event_is_written_as_torch_does() -> None:
    """The repr of a stream and of an event is the one that PyTorch writes."""
    stream, event = torch.Stream("cuda"), torch.Event(enable_timing=True)
    assert repr(stream) == "torch.Stream device_type=cuda, device_index=0, stream_id=1"
    assert repr(event) == (
        "torch.Event device_type=cuda, device_index=-1, event_flag=1, event_id=0"
    )


@pytest.mark.usefixtures("gpu")
def test_events_of_two_classes_have_no_interval() -> None:
    """An interval between a ``torch.Event`` and a CUDA event raises PyTorch's message."""
    start, end = torch.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with pytest.raises(RuntimeError) as error:
        start.elapsed_time(end)
    assert str(error.value) == "expected other to be a torch.Event object"


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("make", [lambda: torch.Stream("cuda"), lambda: torch.cuda.Stream()])  # noqa: PLW0108 # looked up inside the context
def test_a_stream_is_current_inside_its_context(make: Callable[[], torch.Stream]) -> None:
    """Stream contexts nest, also a stream in itself, and restore the previous stream."""
    first, second = make(), make()
    ids = []
    with first:
        with second, first:
            ids.append(torch.cuda.current_stream().stream_id)
        ids.append(torch.accelerator.current_stream().stream_id)
    ids.append(torch.cuda.current_stream().stream_id)
    assert ids == [first.stream_id, first.stream_id, 0]


def test_a_stream_makes_its_device_current() -> None:
    """A stream's device is current inside its context; then device and streams are restored."""
    with gpulab.virtual_gpu("H200", count=2):
        before = torch.cuda.current_stream(1)
        with torch.Stream("cuda:1") as stream:
            assert torch.cuda.current_device() == stream.device_index == 1
            assert torch.accelerator.current_stream() == stream
            assert torch.ones(2, device="cuda").device == torch.device("cuda:1")
        assert torch.cuda.current_device() == 0
        assert torch.cuda.current_stream(1) == before


@pytest.mark.usefixtures("gpu")
def test_a_stream_equals_another_handle_to_it() -> None:
    """Handles to one stream are equal, unless one is a ``torch.cuda.Stream``, as with CUDA."""
    stream = torch.Stream("cuda")
    with stream as entered:
        assert entered is stream
        assert torch.accelerator.current_stream() == stream
        assert hash(torch.accelerator.current_stream()) == hash(stream)
        assert stream != torch.cuda.current_stream()


@pytest.mark.usefixtures("gpu")
def test_the_accelerator_sets_and_returns_the_current_stream() -> None:
    """``torch.cuda`` sees the stream that ``torch.accelerator.set_stream`` makes current."""
    stream = torch.Stream(device="cuda", priority=-1)
    torch.accelerator.set_stream(stream)
    assert torch.cuda.current_stream().stream_id == stream.stream_id
    assert stream.priority == -1  # type: ignore[attr-defined] # torch's has none
    torch.accelerator.set_stream(torch.cuda.default_stream())
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
def test_the_accelerator_reports_no_capability() -> None:
    """``get_device_capability`` raises PyTorch's error, as it does with CUDA."""
    with pytest.raises(RuntimeError, match=r"^Backend doesn't support getting device capab"):
        torch.accelerator.get_device_capability()


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


def test_the_classes_are_restored() -> None:
    """After the context ``torch.Stream`` and ``torch.Event`` are PyTorch's classes again."""
    before = torch.Stream, torch.Event
    with gpulab.virtual_gpu("H200"):
        assert torch.Stream is not before[0]
    assert (torch.Stream, torch.Event) == before


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
    handle = nvtx._device_range_start("work")
    nvtx._device_range_end(handle)


@pytest.mark.usefixtures("gpu")
def test_a_message_is_text() -> None:
    """An NVTX message that is not text raises an error that names its type."""
    with pytest.raises(TypeError) as error:
        torch.cuda.nvtx.range_push(3)
    assert str(error.value) == "an NVTX message is a str, not int"


@pytest.mark.usefixtures("gpu")
def test_the_cuda_profiler_can_be_started() -> None:
    """``torch.cuda.profiler`` runs, and ``cudart()`` returns free memory and error texts."""
    with torch.cuda.profiler.profile():
        torch.ones(3, device="cuda")
    runtime = torch.cuda.cudart()
    assert runtime.cudaMemGetInfo(0) == torch.cuda.mem_get_info()
    assert runtime.cudaGetErrorString(runtime.cudaError.success) == "no error"
    torch.cuda.check_error(0)
