"""Streams and events without a device's name, ``with`` for streams, and marks for profilers."""

import time
from collections.abc import Callable, Iterator

import pytest
import torch

import gpulab
from gpulab.virtual.simulator._host import HostCosts

CLOCK_NS = HostCosts().clock_read_ns


@pytest.fixture
def gpu() -> Iterator[None]:
    """Enter a virtual H200 without first-use costs."""
    with gpulab.virtual_gpu("H200", first_use=False):
        yield


def host_ns(work: Callable[[], object]) -> int:
    """Return the virtual host time of a call in nanoseconds."""
    start_ns = time.perf_counter_ns()
    work()
    return time.perf_counter_ns() - start_ns - CLOCK_NS


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("device", [None, "cuda", "cuda:0", torch.device("cuda"), 0])
def test_events_of_the_accelerator_are_virtual(device: object) -> None:
    """A pair of them reads the time between them, as CUDA's own do."""
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
def test_events_wait_for_streams() -> None:
    """Work after a wait comes after the work before the record."""
    side = torch.Stream("cuda")
    x = torch.zeros(3, device="cuda")
    torch.cuda._sleep(10_000_000)
    x.fill_(1)
    done = torch.Event()
    done.record()
    done.wait(side)
    with side:
        y = x * 10
    side.synchronize()
    assert y.tolist() == [10.0] * 3


@pytest.mark.usefixtures("gpu")
def test_an_event_of_the_host_is_torchs() -> None:
    """Only CUDA is replaced."""
    assert repr(torch.Event("cpu")).startswith("torch.Event device_type=cpu")


@pytest.mark.usefixtures("gpu")
def test_a_stream_or_an_event_is_written_as_torch_does() -> None:
    """Kind of device, index and number."""
    stream, event = torch.Stream("cuda"), torch.Event(enable_timing=True)
    assert repr(stream) == "torch.Stream device_type=cuda, device_index=0, stream_id=1"
    assert repr(event) == (
        "torch.Event device_type=cuda, device_index=-1, event_flag=1, event_id=0"
    )


@pytest.mark.usefixtures("gpu")
def test_events_of_two_classes_have_no_interval() -> None:
    """The message is PyTorch's, word for word."""
    start, end = torch.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with pytest.raises(RuntimeError) as error:
        start.elapsed_time(end)
    assert str(error.value) == "expected other to be a torch.Event object"


@pytest.mark.usefixtures("gpu")
def test_cudas_own_are_among_them() -> None:
    """Both isinstance and issubclass answer as with CUDA."""
    assert isinstance(torch.cuda.Event(), torch.Event)
    assert isinstance(torch.cuda.Stream(), torch.Stream)
    assert issubclass(torch.cuda.Event, torch.Event)
    assert issubclass(torch.cuda.Stream, torch.Stream)
    assert not isinstance(torch.cuda.Stream(), torch.Event)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("make", [lambda: torch.Stream("cuda"), lambda: torch.cuda.Stream()])  # noqa: PLW0108 # looked up inside the context
def test_a_stream_is_current_inside_its_context(make: Callable[[], torch.Stream]) -> None:
    """Contexts nest, one stream in itself too, and give back what was current."""
    first, second = make(), make()
    ids = []
    with first:
        with second, first:
            ids.append(torch.cuda.current_stream().stream_id)
        ids.append(torch.accelerator.current_stream().stream_id)
    ids.append(torch.cuda.current_stream().stream_id)
    assert ids == [first.stream_id, first.stream_id, 0]


def test_a_stream_makes_its_device_current() -> None:
    """Inside its context; afterwards device and streams are those of before."""
    with gpulab.virtual_gpu("H200", count=2):
        before = torch.cuda.current_stream(1)
        with torch.Stream("cuda:1") as stream:
            assert torch.cuda.current_device() == stream.device_index == 1
            assert torch.accelerator.current_stream() == stream
            assert torch.ones(2, device="cuda").device == torch.device("cuda:1")
        assert torch.cuda.current_device() == 0
        assert torch.cuda.current_stream(1) == before


@pytest.mark.usefixtures("gpu")
def test_a_stream_equals_its_like() -> None:
    """The same stream under torch's two names is not equal, as with CUDA."""
    stream = torch.Stream("cuda")
    with stream as entered:
        assert entered is stream
        assert torch.accelerator.current_stream() == stream
        assert hash(torch.accelerator.current_stream()) == hash(stream)
        assert stream != torch.cuda.current_stream()


@pytest.mark.usefixtures("gpu")
def test_the_accelerator_sets_and_tells_the_current_stream() -> None:
    """What it sets, torch.cuda sees."""
    stream = torch.Stream(device="cuda", priority=-1)
    torch.accelerator.set_stream(stream)
    assert torch.cuda.current_stream().stream_id == stream.stream_id
    assert stream.priority == -1  # type: ignore[attr-defined] # torch's has none
    torch.accelerator.set_stream(torch.cuda.default_stream())
    assert host_ns(torch.accelerator.current_stream) == 1_300


@pytest.mark.usefixtures("gpu")
def test_the_accelerator_takes_streams_only() -> None:
    """The message is PyTorch's, word for word."""
    with pytest.raises(TypeError) as error:
        torch.accelerator.set_stream(None)  # type: ignore[arg-type] # the point
    assert str(error.value) == (
        "_accelerator_setStream(): incompatible function arguments. The following argument types "
        "are supported:\n    1. (arg0: torch.Stream) -> None\n\nInvoked with: None"
    )


@pytest.mark.usefixtures("gpu")
def test_the_accelerator_has_no_list_of_types() -> None:
    """As with CUDA, in PyTorch's words."""
    with pytest.raises(RuntimeError, match=r"^Backend doesn't support getting device capab"):
        torch.accelerator.get_device_capability()


@pytest.mark.usefixtures("gpu")
def test_streams_and_events_order_each_other() -> None:
    """record_event, wait_event and wait_stream do what their names say."""
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


def test_the_classes_are_given_back() -> None:
    """After the context torch has its own again, and streams of CUDA enter no context."""
    before = torch.Stream, torch.Event
    with gpulab.virtual_gpu("H200"):
        assert torch.Stream is not before[0]
    assert (torch.Stream, torch.Event) == before


@pytest.mark.usefixtures("gpu")
def test_ranges_count_their_depth_and_cost() -> None:
    """A push and its pop take 0.6 µs together; the depth starts at 0."""
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
    """The message says what was given."""
    with pytest.raises(TypeError) as error:
        torch.cuda.nvtx.range_push(3)
    assert str(error.value) == "an NVTX message is a str, not int"


@pytest.mark.usefixtures("gpu")
def test_a_profiler_may_be_told_to_start() -> None:
    """torch.cuda.profiler works, and the runtime returns the free memory."""
    with torch.cuda.profiler.profile():
        torch.ones(3, device="cuda")
    runtime = torch.cuda.cudart()
    assert runtime.cudaMemGetInfo(0) == torch.cuda.mem_get_info()
    assert runtime.cudaGetErrorString(runtime.cudaError.success) == "no error"
    torch.cuda.check_error(0)
