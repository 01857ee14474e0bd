"""A ``query()`` orders work only if the program decides something by its answer."""

import linecache
import logging
import time
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from io import StringIO
from itertools import count
from random import Random
from typing import Any, Self

import pytest
import torch

import gpulab
from gpulab.happens_before import Checker
from gpulab.tracing.sanitizer import Hazards, hazards
from gpulab.tracing.sanitizer._cuda_program import Hardware, watched

UNUSED = (
    "{q}",
    "print({q})",
    "print('is it done?', {q}, end='')",
    "_ = {q}",
    "done = {q}\nprint(done)",
    "done: bool = {q}",
    "done, other = {q}, 1",
    "n_done = 0\nfor _ in range(2):\n    n_done += {q}",
    "f'{{{q}}}'",
    "not {q}",
    "{q} == True",
    "log.info('done: %s', {q})",
    "x = asked\nx.query(\n)",
    "for _ in range(2):\n    (asked\n        .query())",
    "try:\n    {q}\nfinally:\n    pass",
)
USED = (
    "if {q}: pass",
    "if not {q}: asked.synchronize()",
    "while not {q}: pass",
    "while True:\n    if {q}:\n        break",
    "assert {q}",
    "1 if {q} else 2",
    "{q} and print()",
    "match {q}:\n    case True: pass",
    "done = {q}\nif done: pass",
    "done = {q}\nprint(done)\nwhile not done: done = {q}",
    "if (done := {q}): pass",
    "done = other = {q}\nif other: pass",
    "if all({q} for _ in range(2)): pass",
    "if all([{q} for _ in range(2)]): pass",
    "answers = []\nanswers.append({q})\nif all(answers): pass",
    "answers = dict()\nanswers['first'] = {q}\nif answers['first']: pass",
    "[i for i in range(2) if {q}]",
    "def poll():\n    return {q}\nif poll(): pass",
    "def poll():\n    done = {q}\n    return not done\nwhile poll(): pass",
    "def poll():\n    yield {q}\nif any(poll()): pass",
    "def wait(f):\n    while not f(): pass\nwait(lambda: {q})",
    "def wait(f):\n    while not f(): pass\nwait(asked.query)",
    "[print, print][{q}]()",
    # The source does not tell what becomes of the answer.
    "check({q})",
    "state.done = {q}",
    "if any(map(type(asked).query, [asked])): pass",
)
_numbers = count()


def run(text: str, names: dict[str, Any]) -> None:
    """Run a program whose source Python can find, as that of a file or a cell."""
    file = f"program-{next(_numbers)}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    with redirect_stdout(StringIO()):
        exec(compile(text, file, "exec"), names)


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
    with world() as (names, found):
        own = {"log": logging.getLogger(__name__), "check": bool, "state": types.SimpleNamespace()}
        run(text, {**names, **own})
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
def test_an_answer_that_nobody_uses_orders_nothing(world: World, asked: str) -> None:
    """A race is found if the answer is dropped, shown or stored without further use."""
    missed = [form for form in UNUSED if not found_in(world, racing(form, asked))]
    assert not missed


@on_each_gpu
@pytest.mark.parametrize("asked", ["events[0]", "streams[0]"])
def test_an_answer_that_decides_something_orders(world: World, asked: str) -> None:
    """No race is reported if the program branches on the answer, or may do so."""
    wrong = [form for form in USED if found_in(world, racing(form, asked))]
    assert not wrong


def random_program(random: Random) -> Iterator[tuple[str, bool]]:
    """Yield the statements of a program, and whether each is a query without use."""
    for _ in range(random.randint(6, 14)):
        stream, event = f"streams[{random.randrange(3)}]", f"events[{random.randrange(2)}]"
        target, source = (f"buffers[{random.randrange(3)}]" for _ in range(2))
        asked = random.choice([stream, event])
        statements = [
            f"with on({stream}): {target}.add_({source})",
            f"with on({stream}): {target} * {source}",
            f"{event}.record({stream})",
            f"{stream}.wait_event({event})",
            f"{event}.synchronize()",
        ]
        weights = [6, 4, 4, 2, 1]
        if random.random() < 0.4:
            form = random.choice(UNUSED).format(q="asked.query()")
            yield f"sleep(1e-3)\nasked = {asked}\n{form}", True
        else:
            yield random.choices(statements, weights)[0], False


@on_each_gpu
def test_unused_queries_change_nothing_in_random_programs(world: World) -> None:
    """Random programs have the same hazards with their unused queries and without them."""
    n_with_hazards = 0
    for seed in range(40):
        program = list(random_program(Random(seed)))
        without = "\n".join(text for text, is_query in program if not is_query)
        with_queries = "\n".join(text for text, _ in program)
        expected = found_in(world, without)
        n_with_hazards += bool(expected)
        assert found_in(world, with_queries) == expected, with_queries
    assert n_with_hazards >= 10


@on_each_gpu
def test_without_its_source_only_a_dropped_answer_is_unused(world: World) -> None:
    """A program of a string has no source: its answers count as used unless they are dropped."""
    for form, n_expected in (("{q}", 1), ("_ = {q}", 0)):
        with world() as (names, found):
            exec(racing(form, "events[0]"), names)
        assert len(found) == n_expected
