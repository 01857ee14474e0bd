"""Using a stream, event or graph outside its context raises an error with cause and cure."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import gpulab
from gpulab.core.errors import VirtualGpuError
from gpulab.virtual._streams import EventBase, StreamBase, class_with_base

_NAMED = "Named"  # the name of a subclass that a program defines


Held = SimpleNamespace


def hold(gpu: gpulab.virtual.VirtualGpu) -> Held:
    """Return one object of each kind, made on this GPU."""
    with gpu:
        # A build with CUDA has another torch.cuda.Stream inside the context than outside.
        named = type(_NAMED, (torch.cuda.Stream,), {})
        made = Held(
            stream=torch.cuda.Stream(),
            other=torch.cuda.Stream(),
            named=named(),
            event=torch.cuda.Event(enable_timing=True),
            later=torch.cuda.Event(enable_timing=True),
            graph=torch.cuda.CUDAGraph(),
            plain_stream=torch.Stream("cuda"),
            plain_event=torch.Event("cuda"),
        )
        for event in (made.event, made.later, made.plain_event):
            event.record()
        x = torch.ones(2, device="cuda")
        with torch.cuda.graph(made.graph):
            x.add_(1)
        torch.cuda.synchronize()
    return made


USES: dict[str, Callable[[Held], object]] = {
    "query a stream": lambda held: held.stream.query(),
    "synchronize a stream": lambda held: held.stream.synchronize(),
    "wait for a stream": lambda held: held.stream.wait_stream(held.other),
    "wait for an event": lambda held: held.stream.wait_event(held.event),
    "record an event": lambda held: held.stream.record_event(),
    "query a class of one's own": lambda held: held.named.query(),
    "query an event": lambda held: held.event.query(),
    "synchronize an event": lambda held: held.event.synchronize(),
    "record": lambda held: held.event.record(),
    "record in a stream": lambda held: held.event.record(held.stream),
    "wait": lambda held: held.event.wait(),
    "elapsed time": lambda held: held.event.elapsed_time(held.later),
    "replay": lambda held: held.graph.replay(),
    "query torch.Stream": lambda held: held.plain_stream.query(),
    "enter torch.Stream": lambda held: held.plain_stream.__enter__(),
    "query torch.Event": lambda held: held.plain_event.query(),
    "record torch.Event": lambda held: held.plain_event.record(),
}


@pytest.mark.skipif(
    torch.version.cuda is not None and not torch.cuda.is_available(),
    reason="a CUDA build asks for its driver first",
)
@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_use_outside_of_the_context_names_the_cause(use: Callable[[Held], object]) -> None:
    """Every use outside the context raises the error that no virtual GPU is active."""
    held = hold(gpulab.virtual_gpu("H200"))
    with pytest.raises(VirtualGpuError) as error:
        use(held)
    assert str(error.value) == (
        "no virtual GPU is active, but a tensor, stream, event or graph of one is used; "
        "work with it inside `with gpu:` or after gpulab.use(...)"
    )


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_use_on_another_virtual_gpu_names_the_cause(use: Callable[[Held], object]) -> None:
    """Every use on another virtual GPU raises an error that names the first one."""
    # Streams of both GPUs have the same numbers, so without a check they would be mixed up.
    held = hold(gpulab.virtual_gpu("H200"))
    with gpulab.virtual_gpu("A100"), pytest.raises(VirtualGpuError) as error:
        use(held)
    what = "graph" if use is USES["replay"] else "stream or event"
    assert str(error.value).startswith(f"a {what} of another virtual GPU (H200) is used; ")


def test_a_block_of_a_stream_that_ends_outside_names_the_cause() -> None:
    """Leaving a stream's context after the virtual GPU's raises an error."""
    with gpulab.virtual_gpu("H200"):
        block = torch.cuda.stream(torch.cuda.Stream())
        block.__enter__()
    with pytest.raises(VirtualGpuError, match=r"^no virtual GPU is active, but a tensor, stream"):
        block.__exit__(None, None, None)


def test_streams_and_events_can_be_shown_outside() -> None:
    """Streams and events have a repr, a type and equality outside the context."""
    held = hold(gpulab.virtual_gpu("H200"))
    assert repr(held.stream) == "<torch.cuda.Stream device=cuda:0 cuda_stream=0x1>"
    assert repr(held.event).startswith("<torch.cuda.Event 0x")
    assert isinstance(held.stream, torch.cuda.Stream)
    assert type(held.named).__name__ == _NAMED
    assert held.stream == held.stream
    assert len({held.stream, held.other}) == 2


@pytest.mark.parametrize(
    ("original", "base", "use"),
    [
        (torch.cuda.Stream, StreamBase, lambda stream: stream.record_event()),
        (torch.cuda.Stream, StreamBase, lambda stream: stream.wait_stream(stream)),
        (torch.cuda.Event, EventBase, lambda event: event.record()),
        (torch.cuda.Event, EventBase, lambda event: event.wait()),
    ],
)
def test_the_classes_for_builds_with_cuda_name_the_cause_first(
    original: type, base: type, use: Callable[[Any], object]
) -> None:
    """Classes for builds with CUDA raise our error before they ask a real GPU for its stream."""
    with gpulab.virtual_gpu("H200"):
        made = class_with_base(original, base)()
    with pytest.raises(VirtualGpuError, match=r"^no virtual GPU is active, but a tensor, stream"):
        use(made)


@pytest.mark.parametrize(
    ("original", "base"), [(torch.cuda.Stream, StreamBase), (torch.cuda.Event, EventBase)]
)
def test_the_classes_for_builds_with_cuda_show_themselves(original: type, base: type) -> None:
    """Classes for builds with CUDA have a repr outside the context."""
    with gpulab.virtual_gpu("H200"):
        made = class_with_base(original, base)()
        if base is EventBase:
            made.record()
        assert repr(made).startswith(f"<torch.cuda.{original.__name__} ")
        assert "uninitialized" not in repr(made)
