"""Races in whole programs: on the virtual GPU, and on a fake CUDA GPU with CPU tensors."""

import time
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, Self

import pytest
import torch
from torch import nn

import gpulab
from gpulab.happens_before import NOWHERE, Checker
from gpulab.tracing.sanitizer import Hazards, hazards
from gpulab.tracing.sanitizer._cuda_program import Hardware, watched

N = 64
HERE = Path(__file__).name


class FakeEvent:
    """An event with the methods that torch's Python class adds to the C class."""

    def record(self, stream: object = None) -> None:
        """Do nothing."""

    def wait(self, stream: object = None) -> None:
        """Do nothing."""

    def query(self) -> bool:
        """Return that the event has completed."""
        return True

    def synchronize(self) -> None:
        """Do nothing."""


class FakeStream(torch.Stream):
    """A stream with the methods that torch's Python class adds to the C class."""

    n_made = 0

    def __new__(cls, stream_id: int | None = None, device_index: int = 0) -> Self:
        """Make a stream that needs no GPU; its id is not a small number."""
        FakeStream.n_made += 1
        number = 32 * FakeStream.n_made + 3 if stream_id is None else stream_id
        return super().__new__(cls, stream_id=number, device_index=device_index, device_type=1)

    def query(self) -> bool:
        """Return that the stream is idle."""
        return True

    def synchronize(self) -> None:
        """Do nothing."""

    def wait_event(self, event: FakeEvent) -> None:
        """Wait through the event, as torch does."""
        event.wait(self)

    def wait_stream(self, other: "FakeStream") -> None:
        """Wait through an event, as torch does."""
        event = World.fake_event()
        event.record(other)
        self.wait_event(event)


class World:
    """A GPU for a program: its ``cuda`` module, and ways to make tensors on GPU and host."""

    cuda: Any
    device: str
    fake_event: Callable[[], FakeEvent]

    def checked(self) -> AbstractContextManager[Hazards]:
        """Return the context in which hazards are found."""
        raise NotImplementedError

    def pinned(self) -> torch.Tensor:
        """Return a pinned host tensor of ones."""
        raise NotImplementedError

    def fill(self, value: float = 1.0) -> torch.Tensor:
        """Launch a kernel that makes a tensor."""
        return torch.full((N,), value, device=self.device)


class Virtual(World):
    """The virtual GPU."""

    cuda = torch.cuda
    device = "cuda"

    @contextmanager
    def checked(self) -> Iterator[Hazards]:
        """Enter a virtual H200 and look for hazards."""
        with gpulab.virtual_gpu("H200"), hazards() as found:
            yield found

    def pinned(self) -> torch.Tensor:
        """Return a tensor pinned on the virtual GPU."""
        return torch.ones(N).pin_memory()


class Fake(World):
    """A CUDA GPU whose tensors are CPU tensors, except those registered as the host's."""

    device = "cpu"

    def __init__(self) -> None:
        self.is_capturing = self.is_pageable = False
        self.host_memory: set[int] = set()
        self.kept: list[torch.Tensor] = []
        event, stream = (type(c.__name__, (c,), dict(vars(c))) for c in (FakeEvent, FakeStream))
        self.stream = self.default = stream(0)
        self.second = stream(0, 1)
        self.cuda = types.SimpleNamespace(
            Event=event,
            Stream=stream,
            stream=self.use,
            current_stream=lambda device=None: self.second if device == 1 else self.stream,
            default_stream=lambda: self.default,
            current_device=lambda: 0,
            synchronize=lambda _device=None: None,
            is_current_stream_capturing=lambda: self.is_capturing,
        )
        World.fake_event = event

    @contextmanager
    def use(self, stream: FakeStream) -> Iterator[None]:
        """Make this stream current."""
        before, self.stream = self.stream, stream
        try:
            yield
        finally:
            self.stream = before

    @contextmanager
    def checked(self) -> Iterator[Hazards]:
        """Look for hazards as on a real GPU."""
        checker = Checker()
        hardware = Hardware(
            self.cuda,
            lambda t: not self.is_on_host(t),
            self.index_of,
            lambda t: self.is_on_host(t) and not self.is_pageable,
        )
        with watched(checker, hardware):
            yield Hazards(checker)

    def pinned(self) -> torch.Tensor:
        """Register a tensor as the host's, and keep it alive so that its address is not reused."""
        tensor = torch.ones(N)
        self.kept.append(tensor)
        self.host_memory.add(tensor.untyped_storage().data_ptr())
        return tensor

    def index_of(self, tensor: torch.Tensor) -> int:
        """Return the GPU of a tensor: int32 tensors count as those of the second GPU."""
        return int(tensor.dtype is torch.int32)

    def is_on_host(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor is registered as the host's."""
        return tensor.untyped_storage().data_ptr() in self.host_memory


@pytest.fixture(params=[Virtual, Fake])
def world(request: pytest.FixtureRequest) -> World:
    """Return the virtual GPU or the fake one."""
    return request.param()


def kinds(found: Hazards) -> list[str]:
    """Return the kinds of the hazards."""
    return [hazard.kind for hazard in found]


def test_a_missing_wait_is_found(world: World) -> None:
    """A side stream that reads what the default stream writes without a wait is a hazard."""
    with world.checked() as found:
        side = world.cuda.Stream()
        x = world.fill()
        with world.cuda.stream(side):
            x * 2
    assert kinds(found) == ["read before the write is done"]
    (hazard,) = found
    assert hazard.tensor == "float32 tensor of shape (64,)"
    assert (hazard.first.stream, hazard.second.stream) == ("the default stream", "stream 1")
    assert hazard.second.place.startswith(f"{HERE}:")
    assert f"add after {hazard.first.place}: done = torch.cuda.default_stream()." in hazard.cure
    assert "s1.wait_event(done), where s1 is stream 1" in hazard.cure


@pytest.mark.parametrize(
    "make", [torch.zeros_like, lambda x: torch.randint_like(x, 9), lambda x: x.new_full((3,), 2.0)]
)
def test_a_shape_is_no_value(world: World, make: Callable[[torch.Tensor], object]) -> None:
    """Reading only shape and type of a tensor is no access to its memory."""
    with world.checked() as found:
        side = world.cuda.Stream()
        x = world.fill()
        with world.cuda.stream(side):
            make(x)
    assert kinds(found) == []


def waits(world: World, side: FakeStream) -> dict[str, Callable[[], None]]:
    """Return all ways to make a side stream wait for the default one."""
    default = world.cuda.default_stream()

    def recorded() -> FakeEvent:
        event = world.cuda.Event()
        event.record()
        return event

    return {
        "wait_stream": lambda: side.wait_stream(default),
        "event.wait": lambda: recorded().wait(side),
        "wait_event": lambda: side.wait_event(recorded()),
        "event.synchronize": lambda: recorded().synchronize(),
        "stream.synchronize": default.synchronize,
        "synchronize": world.cuda.synchronize,
    }


WAITS = ("wait_stream", "event.wait", "wait_event", "event.synchronize", "stream.synchronize")


@pytest.mark.parametrize("name", [*WAITS, "synchronize"])
def test_every_wait_orders(world: World, name: str) -> None:
    """After any of the ways to wait there is no hazard."""
    with world.checked() as found:
        side = world.cuda.Stream()
        x = world.fill()
        waits(world, side)[name]()
        with world.cuda.stream(side):
            x * 2
    assert kinds(found) == []
    assert (found.n_operations, found.n_streams) == (2, 2)


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


def racing(form: str, asked: str) -> str:
    """Return a program in which only a query is between two writes in different streams."""
    return "\n".join(
        [
            "with on(streams[0]): data.add_(1)",
            "events[0].record(streams[0])",
            "sleep(1e-3)",
            f"asked = {asked}",
            form.format(q="asked.query()"),
            "with on(streams[1]): data.mul_(2)",
        ]
    )


@pytest.mark.parametrize("form", [*UNUSED, *USED])
def test_a_query_orders_if_its_answer_is_used(world: World, form: str) -> None:
    """A race is found where the answer is dropped, and none where the program takes it."""
    for asked in ("events[0]", "streams[0]"):
        with world.checked() as found:
            names = {
                "streams": [world.cuda.Stream(), world.cuda.Stream()],
                "events": [world.cuda.Event()],
                "data": world.fill(),
                "on": world.cuda.stream,
                "sleep": time.sleep,
            }
            world.cuda.synchronize()
            with redirect_stdout(StringIO()):
                exec(racing(form, asked), names)
        assert kinds(found) == (["write over a write"] if form in UNUSED else [])


@pytest.mark.parametrize("asked", ["event", "stream"])
def test_a_query_that_says_no_orders_nothing(asked: str) -> None:
    """Work that is not done may still run, whatever the program does with the answer."""
    world = Fake()
    for owner in (world.cuda.Event, world.cuda.Stream):
        owner.query = lambda _self: False
    with world.checked() as found:
        side, event = world.cuda.Stream(), world.cuda.Event()
        x = world.fill()
        event.record()
        assert not (event if asked == "event" else world.default).query()
        with world.use(side):
            x * 2
    assert kinds(found) == ["read before the write is done"]


def test_halves_of_a_tensor_are_apart(world: World) -> None:
    """Views that share no byte can be written at the same time, also columns."""
    with world.checked() as found:
        side = world.cuda.Stream()
        x = torch.zeros(8, 8, device=world.device)
        side.wait_stream(world.cuda.default_stream())
        x[:, ::2].add_(1)
        with world.cuda.stream(side):
            x[:, 1::2].add_(1)
            assert kinds(found) == []
            x[3].fill_(1)
    assert kinds(found) == ["write over a write"]


@pytest.mark.parametrize(
    ("n_waits", "expected"),
    [
        (0, ["read before the write is done", "write while it is read"]),
        (1, ["write while it is read"]),
        (2, []),
    ],
)
def test_double_buffer(world: World, n_waits: int, expected: list[str]) -> None:
    """A double buffer needs both waits: one for the copy and one for the reader."""
    with world.checked() as found:
        cuda, loader = world.cuda, world.cuda.Stream()
        hosts = [world.pinned() for _ in range(2)]
        buffers = [world.fill(0.0) for _ in range(2)]
        loader.wait_stream(cuda.default_stream())
        copied, used = ([cuda.Event() for _ in range(2)] for _ in range(2))
        for step in range(6):
            slot = step % 2
            with cuda.stream(loader):
                if n_waits == 2:
                    loader.wait_event(used[slot])
                buffers[slot].copy_(hosts[slot], non_blocking=True)
                copied[slot].record(loader)
            if n_waits >= 1:
                cuda.current_stream().wait_event(copied[slot])
            buffers[slot] * 2
            used[slot].record(cuda.current_stream())
    assert sorted(kinds(found)) == expected


def test_host_reads_a_copy_in_flight(world: World) -> None:
    """Reading a pinned result before its copy's event is a hazard, and after it is not."""
    with world.checked() as found:
        result, x, event = world.pinned(), world.fill(), world.cuda.Event()
        result.copy_(x, non_blocking=True)
        event.record()
        first, _ = result[0], torch.empty_like(result)
        assert kinds(found) == []  # a view and an allocation read nothing
        first.item()
        event.synchronize()
        result.tolist()
    assert kinds(found) == ["host read before the copy is done"]
    assert next(iter(found)).cure.endswith("done.synchronize()")


@pytest.mark.parametrize("read", ["numpy", "tolist"])
def test_host_reads_without_an_operator(world: World, read: str) -> None:
    """`numpy` and `tolist` count as host reads, although they run no operator."""
    with world.checked() as found:
        result, x = world.pinned(), world.fill()
        result.copy_(x, non_blocking=True)
        getattr(result, read)()
    assert kinds(found) == ["host read before the copy is done"]


def test_host_writes_a_buffer_in_flight(world: World) -> None:
    """A pinned buffer must not be written before the copy out of it is done."""
    with world.checked() as found:
        host, x = world.pinned(), world.fill()
        x.copy_(host, non_blocking=True)
        host[0].item()
        assert kinds(found) == []
        host.fill_(2)
    assert kinds(found) == ["host write into a buffer in flight"]


def test_blocking_copies_and_items_wait(world: World) -> None:
    """A blocking copy or `item` orders the host, and what it launches, after the stream."""
    with world.checked() as found:
        side, host = world.cuda.Stream(), world.pinned()
        with world.cuda.stream(side):
            x, y = world.fill(), world.fill()
            x.copy_(host)
            host.fill_(2)
            host.copy_(x)
            host[0].item()
            y.sum().item()
        x + y
    assert kinds(found) == []


def test_memory_reused_while_it_is_read() -> None:
    """Memory read by a side stream needs record_stream before it is freed and reused."""
    for is_recorded, expected in ((False, ["read after free"]), (True, [])):
        with gpulab.virtual_gpu("H200"), hazards() as found:
            side = torch.cuda.Stream()
            x = torch.ones(N, device="cuda")
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                x * 2
            if is_recorded:
                x.record_stream(side)
            del x
            torch.ones(N, device="cuda")
        assert kinds(found) == expected


@contextmanager
def recording() -> Iterator[list[torch.Tensor]]:
    """Register a `record_stream` for CPU tensors that notes the tensors."""
    library = torch.library.Library("aten", "IMPL")
    recorded: list[torch.Tensor] = []
    library.impl("record_stream", lambda tensor, _stream: recorded.append(tensor.clone()), "CPU")
    try:
        yield recorded
    finally:
        library._destroy()


@pytest.mark.parametrize(("is_recorded", "expected"), [(False, ["read after free"]), (True, [])])
def test_real_memory_is_known_by_its_address(is_recorded: bool, expected: list[str]) -> None:  # noqa: FBT001 # pytest gives it
    """New memory at the address of a freed storage inherits the users of that storage."""
    world, arena = Fake(), bytearray(4 * N)
    with recording() as recorded, world.checked() as found:
        side = world.cuda.Stream()
        x = torch.frombuffer(arena, dtype=torch.float32)
        with world.use(side):
            x * 2
        if is_recorded:
            x.record_stream(side)
        del x
        torch.frombuffer(arena, dtype=torch.float32).fill_(1)
    assert kinds(found) == expected
    assert len(recorded) == is_recorded  # PyTorch's own is called, too
    if expected:
        assert "x.record_stream(s1)" in next(iter(found)).cure


def train(world: World, n_steps: int) -> None:
    """Train a small model."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).to(world.device)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(n_steps):
        loss = model(torch.randn(4, 8, device=world.device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    loss.item()


@pytest.mark.slow
def test_a_training_step_has_no_hazard(world: World) -> None:
    """Training on one stream has no hazard, and the checker's memory does not grow."""
    with world.checked() as found:
        train(world, 3)
        n_kept = found._checker.n_recorded
        train(world, 6)
        assert found._checker.n_recorded <= n_kept + 64
    assert kinds(found) == []
    assert found.n_operations > 200


def test_a_backward_pass_is_ordered_by_autograd() -> None:
    """Autograd orders the streams of its steps and its caller, so there is no hazard."""
    world = Fake()
    with world.checked() as found:
        side = world.cuda.Stream()
        weight = torch.ones(N, requires_grad=True)
        loss = (weight * 2).sin().sum()

        def to_side(_grad: torch.Tensor) -> None:
            world.stream = side

        loss.register_hook(to_side)
        loss.backward()
        world.stream = world.default
        weight.grad.add_(1)
        assert found.n_streams == 2
    assert kinds(found) == []


def test_a_thread_of_autograd_has_its_callers_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a thread without user code, the line that called backward is shown."""
    world = Fake()
    with world.checked() as found:
        weight = torch.ones(N, requires_grad=True)
        loss = (weight * 2).sum()

        def ask_nobody(_grad: torch.Tensor) -> None:
            monkeypatch.setattr("gpulab.happens_before.user_site", lambda: NOWHERE)

        loss.register_hook(ask_nobody)
        loss.backward()
        monkeypatch.undo()
        with world.use(world.cuda.Stream()):
            weight.grad + 1
    (hazard,) = found
    line = test_a_thread_of_autograd_has_its_callers_line.__code__.co_firstlineno + 11
    assert hazard.first.place == f"{HERE}:{line}"


def test_the_allocator_knows_its_own_stream() -> None:
    """record_stream with the allocating stream changes nothing."""
    world, arena = Fake(), bytearray(4 * N)
    with recording(), world.checked() as found:
        x = torch.frombuffer(arena, dtype=torch.float32)
        x.add_(1)
        x.record_stream(world.default)
        del x
        with world.use(world.cuda.Stream()):
            torch.frombuffer(arena, dtype=torch.float32).fill_(1)
    assert kinds(found) == ["write after free"]
    assert "wait_event" in next(iter(found)).cure


def test_a_pinned_buffer_that_is_gone_is_forgotten() -> None:
    """A new pinned buffer at an old address has no copy in flight."""
    world, arena = Fake(), bytearray(4 * N)
    with world.checked() as found:
        world.pinned().copy_(world.fill(), non_blocking=True)
        for _ in range(2):
            host = torch.frombuffer(arena, dtype=torch.float32)
            world.host_memory.add(host.data_ptr())
            host[0].item()
            host.copy_(world.fill(), non_blocking=True)
            del host
    assert kinds(found) == []


def test_pageable_memory_is_copied_before_the_call_returns() -> None:
    """The host can reuse pageable memory at once, but the GPU's side may still be written."""
    world = Fake()
    world.is_pageable = True
    with world.checked() as found:
        side, host = world.cuda.Stream(), world.pinned()
        with world.use(side):
            x = world.fill()
            host.copy_(x, non_blocking=True)
        x.add_(1)
        host[0].item()
        assert kinds(found) == []
        side.wait_stream(world.default)
        with world.use(side):
            x.copy_(host, non_blocking=True)
        host.fill_(2)
        x.add_(1)
    assert kinds(found) == ["write over a write"]


def test_autograd_records_its_streams() -> None:
    """Memory that a backward pass uses on another stream is not reused too early."""
    world, arena = Fake(), bytearray(4 * N)
    with world.checked() as found:
        saved = [torch.frombuffer(arena, dtype=torch.float32)]
        weight = torch.ones(N, requires_grad=True)
        loss = (weight * 2).sum()

        def use_on_side(_grad: torch.Tensor) -> None:
            world.stream = world.cuda.Stream()
            saved.pop().mul(2)
            world.stream = world.default

        loss.register_hook(use_on_side)
        loss.backward()
        with world.use(world.cuda.Stream()):
            torch.frombuffer(arena, dtype=torch.float32).fill_(1)
    assert kinds(found) == []


def test_nothing_is_followed_after_the_block() -> None:
    """After the block, no callback remains on the storages of living tensors."""
    world = Fake()
    with world.checked():
        x, host = world.fill(), world.pinned()
        x.copy_(host, non_blocking=True)
        assert weakref.getweakrefcount(x.untyped_storage()) == 1
    assert weakref.getweakrefcount(x.untyped_storage()) == 0
    assert weakref.getweakrefcount(host.untyped_storage()) == 0


def test_what_launches_nothing_is_no_operation() -> None:
    """Views, empty, sparse and meta tensors count as no operation."""
    world = Fake()
    with world.checked() as found:
        x = torch.empty(N, N)
        x.t()[3:].unsqueeze(0).detach()
        torch.empty_like(x).resize_(3)
        torch.ones(3, device="meta").add_(1)
    assert found.n_operations == 0
    with world.checked() as found:
        torch.eye(3).to_sparse()
    assert kinds(found) == []


@pytest.mark.parametrize(("is_mask", "expected"), [(True, 0), (False, 1)])
def test_indexing_by_a_mask_waits(is_mask: bool, expected: int) -> None:  # noqa: FBT001 # pytest gives it
    """Indexing by a mask synchronizes, as the host needs the count; by numbers it does not."""
    world = Fake()
    with world.checked() as found:
        x, mask = world.fill(), torch.ones(N, dtype=torch.bool)
        numbers = torch.arange(N)
        y = x[mask if is_mask else numbers]
        with world.use(world.cuda.Stream()):
            y * 2
    assert len(found) == expected


def test_a_graph_from_before_the_block_names_its_lines() -> None:
    """The replay of a graph that was captured earlier races, with the captured line."""

    def captured(x: torch.Tensor, copied: torch.Tensor) -> None:
        x.add_(1)
        copied.copy_(x, non_blocking=True)

    line = captured.__code__.co_firstlineno
    with gpulab.virtual_gpu("H200"):
        side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        x, copied = torch.zeros(N, device="cuda"), torch.empty(N, pin_memory=True)
        with torch.cuda.graph(graph):
            captured(x, copied)
        torch.cuda.synchronize()
        with hazards() as found:
            graph.replay()
            with torch.cuda.stream(side):
                x * 2
            copied.numpy()
    assert kinds(found) == ["read before the write is done", "host read before the copy is done"]
    assert [each.first.place for each in found] == [f"{HERE}:{line + n}" for n in (1, 2)]


def test_everything_is_put_back() -> None:
    """After the block, also after an error in it, torch is as it was."""
    world = Fake()
    owners = (world.cuda, world.cuda.Event, world.cuda.Stream, torch.autograd, torch.Tensor)
    before = [dict(vars(owner)) for owner in owners]
    with pytest.raises(ZeroDivisionError), world.checked():
        1 / ("tolist" not in vars(torch.Tensor))
    assert [dict(vars(owner)) for owner in owners] == before
    with gpulab.virtual_gpu("H200") as gpu:
        with pytest.raises(ZeroDivisionError), hazards():
            1 / (gpu.machine.hazards is None)
        assert gpu.machine.hazards is None


def test_an_inner_block_reports_what_came_since_its_begin() -> None:
    """A judge may try an answer inside a block of the learner, who has raced before."""

    def race() -> None:
        x = torch.ones(N, device="cuda")
        with torch.cuda.stream(side):
            x * 2
        torch.cuda.synchronize()

    with gpulab.virtual_gpu("H200"), hazards() as outer:
        side = torch.cuda.Stream()
        race()
        with hazards() as clean:
            torch.ones(N, device="cuda")
        with hazards() as inner:
            race()
        race()
    assert [(len(report), report.n_operations) for report in (clean, inner, outer)] == [
        (0, 1), (1, 2), (1, 7)
    ]  # fmt: skip
    assert [hazard.count for hazard in (*inner, *outer)] == [1, 3]
    assert (clean.n_streams, inner.n_streams) == (1, 2)


def test_the_gpu_in_use_is_entered() -> None:
    """Outside a virtual GPU's context, the block enters the one chosen by `use`."""
    gpulab.use("A100")
    with hazards() as found:
        torch.ones(N, device="cuda")
    assert (len(found), found.n_operations) == (0, 1)
    assert str(found) == "no hazard in 1 operation on 1 stream"
    assert found._checker.n_recorded == 0


@pytest.fixture
def found() -> Hazards:
    """Return a report of one hazard that occurred twice."""
    checker = Checker()
    report = Hazards(checker)
    with gpulab.virtual_gpu("H200") as gpu:
        gpu.machine.hazards = checker
        side = torch.cuda.Stream()
        for _ in range(2):
            x = torch.ones(2, 3, device="cuda")
            with torch.cuda.stream(side):
                x * 2
        gpu.machine.hazards = None
    return report


def test_report_as_text(found: Hazards) -> None:
    """The text of a hazard says what, where, the missing lines, and that a loop repeats it."""
    first, *rest = str(found).splitlines()
    assert first == "1 hazard in 4 operations on 2 streams"
    assert rest[0] == "1. read before the write is done: float32 tensor of shape (2, 3), 2 times"
    (hazard,) = found
    made, read = hazard.first, hazard.second
    assert rest[1] == (
        f"  {made.name} on the default stream writes it, {made.place}; "
        f"{read.name} on stream 1 reads it, {read.place}"
    )
    assert rest[2:] == [
        f"  add after {made.place}: done = torch.cuda.default_stream().record_event()",
        f"  and before {read.place}: s1.wait_event(done), where s1 is stream 1",
        "  if this is a loop over several buffers, with an event for each",
    ]


def test_report_in_a_notebook(found: Hazards) -> None:
    """Text and HTML have the same content, and HTML is escaped."""
    shown: list[str] = []
    found._repr_pretty_(types.SimpleNamespace(text=shown.append), False)  # noqa: FBT003 # IPython's call
    assert shown == [str(found)]
    page = found._repr_html_()
    assert page.startswith('<div class="gpulab-hazards">\n<p><strong>1 hazard in 4 operations')
    assert page.count("<li>") == page.count("</li>") == 1
    assert (
        "<li>read before the write is done: float32 tensor of shape (2, 3), 2 times<br/>" in page
    )


@pytest.mark.slow  # it imports PyTorch's compiler
def test_an_operator_of_operators_is_one_operation() -> None:
    """It reads its arguments and makes its result, and PyTorch does not refuse it."""
    import torch._higher_order_ops.cond

    cond = torch.ops.higher_order.cond
    world = Fake()
    x = torch.ones(N)
    with world.checked() as found:
        side = world.cuda.Stream()
        x.mul_(2)
        with world.cuda.stream(side):
            (doubled,) = cond(True, lambda t: (t * 2,), lambda t: (t,), (x,))  # noqa: FBT003 # torch's signature
    assert torch.equal(doubled, 4 * torch.ones(N))
    assert kinds(found) == ["read before the write is done"]
    assert "cond" in str(next(iter(found)))


@pytest.mark.slow  # as above
def test_the_compiler_does_not_look_at_the_watch(capfd: pytest.CaptureFixture[str]) -> None:
    """Where a program calls a compiled function, PyTorch compiles none of gpulab's code."""
    torch._logging.set_logs(recompiles=True)
    try:
        work = torch.compile(lambda x: (x @ x).relu() + 1, backend="eager", dynamic=False)
        with Fake().checked(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch 2.13 says that it compiles nothing here
            for n in range(3, 14):
                work(torch.ones(n, n))
    finally:
        torch._logging.set_logs()
    assert "gpulab" not in capfd.readouterr().err
