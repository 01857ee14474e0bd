"""A ``query()`` orders work only if the program does something with its answer."""

import time
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from io import StringIO
from typing import Any, Self

import pytest
import torch

import gpulab
from gpulab.happens_before import Checker
from gpulab.tracing.sanitizer import Hazards, hazards
from gpulab.tracing.sanitizer._cuda_program import Hardware, watched

UNUSED = (
    "{q}",
    "x = asked\nx.query(\n)",
    "for _ in range(2):\n    (asked\n        .query())",
    "try:\n    {q}\nfinally:\n    pass",
)
USED = (
    "if {q}: pass",
    "if not {q}: asked.synchronize()",
    "while not {q}: pass",
    "done = {q}",
    "print({q})",
    "if all({q} for _ in range(2)): pass",
    "def wait(f):\n    while not f(): pass\nwait(asked.query)",
    "if any(map(type(asked).query, [asked])): pass",
)


class FakeEvent:
    """An event that is done as soon as it is recorded."""

    def record(self, stream: object = None) -> None:
        """Do nothing."""

    def wait(self, stream: object = None) -> None:
        """Do nothing."""

    def query(self) -> bool:
        """Return that the event is done."""
        return True

    def synchronize(self) -> None:
        """Do nothing."""


class FakeStream(torch.Stream):
    """A stream that is always idle."""

    def __new__(cls, number: int) -> Self:
        """Make a stream that needs no GPU."""
        return super().__new__(cls, stream_id=number, device_index=0, device_type=1)

    query, synchronize = FakeEvent.query, FakeEvent.synchronize

    def wait_event(self, event: FakeEvent) -> None:
        """Wait through the event, as torch does."""
        event.wait(self)


@contextmanager
def on_the_virtual_gpu() -> Iterator[tuple[dict[str, Any], Hazards]]:
    """Yield the names for a program on the virtual GPU, where work ends during a sleep."""
    with gpulab.virtual_gpu("H200", first_use=False):
        names = {
            "streams": [torch.cuda.Stream() for _ in range(3)],
            "events": [torch.cuda.Event() for _ in range(2)],
            "buffers": [torch.zeros(64, device="cuda") for _ in range(3)],
            "on": torch.cuda.stream,
            "sleep": time.sleep,
        }
        torch.cuda.synchronize()
        with hazards() as found:
            yield names, found


@contextmanager
def on_a_fake_gpu() -> Iterator[tuple[dict[str, Any], Hazards]]:
    """Yield the names for a program on a CUDA GPU whose tensors are CPU tensors."""
    event = type("Event", (FakeEvent,), dict(vars(FakeEvent)))
    stream = type("Stream", (FakeStream,), dict(vars(FakeStream)))
    current = [stream(0)]

    @contextmanager
    def on(stream: FakeStream) -> Iterator[None]:
        current.append(stream)
        yield
        current.pop()

    cuda: Any = types.SimpleNamespace(
        Event=event,
        Stream=stream,
        current_stream=lambda _device=None: current[-1],
        current_device=lambda: 0,
        synchronize=lambda _device=None: None,
        is_current_stream_capturing=lambda: False,
    )
    checker = Checker()
    hardware = Hardware(cuda, lambda _: True, lambda _: 0, lambda _: False)
    names = {
        "streams": [stream(number) for number in (1, 2, 3)],
        "events": [event() for _ in range(2)],
        "buffers": [torch.zeros(64) for _ in range(3)],
        "on": on,
        "sleep": lambda _: None,
    }
    with watched(checker, hardware):
        yield names, Hazards(checker)


World = Callable[[], AbstractContextManager[tuple[dict[str, Any], Hazards]]]
on_each_gpu = pytest.mark.parametrize("world", [on_the_virtual_gpu, on_a_fake_gpu])


def found_in(world: World, text: str) -> list[str]:
    """Run a program on a GPU, and return the kinds of its hazards."""
    with world() as (names, found), redirect_stdout(StringIO()):
        exec(text, names)
    return [hazard.kind for hazard in found]


def racing(form: str, asked: str) -> str:
    """Return a program in which only a query is between two writes in different streams."""
    return "\n".join(
        [
            "with on(streams[0]): buffers[0].add_(1)",
            "events[0].record(streams[0])",
            "sleep(1e-3)",
            f"asked = {asked}",
            form.format(q="asked.query()"),
            "with on(streams[1]): buffers[0].mul_(2)",
        ]
    )


@on_each_gpu
@pytest.mark.parametrize("asked", ["events[0]", "streams[0]"])
def test_an_answer_that_is_dropped_orders_nothing(world: World, asked: str) -> None:
    """A race is found if the answer is dropped."""
    missed = [form for form in UNUSED if not found_in(world, racing(form, asked))]
    assert not missed


@on_each_gpu
@pytest.mark.parametrize("asked", ["events[0]", "streams[0]"])
def test_an_answer_that_the_program_takes_orders(world: World, asked: str) -> None:
    """No race is reported if the program does anything with the answer."""
    wrong = [form for form in USED if found_in(world, racing(form, asked))]
    assert not wrong
