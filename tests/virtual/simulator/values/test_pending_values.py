"""The log computes what somebody needs, in its order, and drops the rest."""

import random
import signal
from functools import partial

import pytest

import gpulab
from gpulab.virtual.simulator._event_queue import EventQueue
from gpulab.virtual.simulator.values import (
    BufferContents,
    ByteSpan,
    LogEntry,
    PendingValues,
    _pending_values,
)


class Memory:
    """A buffer of bytes, which entries of a log write to."""

    def __init__(self) -> None:
        self.queue = EventQueue()
        self.log = PendingValues(self.queue)
        self.queue.before_going_on(self.log.do_more)
        self.contents = BufferContents()
        self.cells = [0] * 64
        self.computed: list[str] = []

    def span(self, first: int, end: int) -> ByteSpan:
        """Return some of the bytes."""
        return self.contents, first, end

    def add(  # what an entry consists of
        self,
        name: str,
        source: tuple[int, int],
        target: tuple[int, int],
        *,
        key: str | None = None,
        is_due: bool = False,
    ) -> None:
        """Append an entry that writes the sum of the source and of its name's length."""

        def compute() -> None:
            self.computed.append(name)
            self.cells[slice(*target)] = [sum(self.cells[slice(*source)]) + len(name)] * (
                target[1] - target[0]
            )

        entry = LogEntry(compute, name, key, is_due=is_due)
        self.log.append(entry, [self.span(*source)], [self.span(*target)])

    def read(self, first: int, end: int) -> list[int]:
        """Return what the bytes contain."""
        self.log.settle(self.span(first, end))
        return self.cells[first:end]


@pytest.fixture
def memory() -> Memory:
    """Return an empty memory with its log."""
    return Memory()


def test_what_is_overwritten_unread_is_dropped_with_what_only_it_needs(memory: Memory) -> None:
    """A chain is computed if its end is read, and not if its end is overwritten."""
    memory.add("a", (0, 8), (8, 16))
    memory.add("b", (8, 16), (16, 24))
    memory.add("c", (0, 8), (8, 16))
    assert len(memory.log._entries) == 3  # "b" still needs "a"
    memory.add("d", (0, 8), (16, 24))
    assert len(memory.log._entries) == 2
    assert memory.read(8, 24) == [1] * 16
    assert memory.computed == ["c", "d"]


def test_a_call_with_the_same_key_and_inputs_is_known(memory: Memory) -> None:
    """Until an input or the result changes, also if the change is not computed yet."""
    for _ in range(3):
        memory.add("a", (0, 8), (8, 16), key="sum")
    assert len(memory.log._entries) == 1
    memory.read(8, 16)
    memory.add("a", (0, 8), (8, 16), key="sum")
    assert len(memory.log._entries) == 0
    memory.add("b", (32, 40), (4, 5))
    memory.add("a", (0, 8), (8, 16), key="sum")
    assert memory.read(8, 16) == [2] * 8
    memory.add("c", (32, 40), (9, 10))
    memory.add("a", (0, 8), (8, 16), key="sum")
    assert memory.read(8, 16) == [2] * 8


def test_random_writes_and_reads_give_what_computing_at_once_gives() -> None:
    """Any ranges, overlapping and in place, with and without few pieces."""
    for seed in range(60):
        draw = random.Random(seed)
        now, later = Memory(), Memory()
        later.contents._most = draw.choice((2, 1_000))
        for step in range(60):
            source, target = (sorted(draw.sample(range(0, 65, 8), 2)) for _ in range(2))
            name = "x" * (step % 3 + 1)
            now.add(name, tuple(source), tuple(target))
            later.add(name, tuple(source), tuple(target), key=name)
            now.read(0, 64)
            if draw.random() < 0.2:
                assert later.read(*source) == now.read(*source)
        assert later.read(0, 64) == now.read(0, 64)


@pytest.mark.parametrize("limit", ["MOST_ENTRIES", "MOST_HOST_S", "MOST_HELD_BYTES"])
def test_the_oldest_are_computed_if_too_much_is_pending(
    limit: str, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By number, by estimated time and by memory; as few as needed."""
    monkeypatch.setattr(_pending_values, limit, 3)
    for at in range(5):
        entry = LogEntry(lambda: None, "x", None, host_s=1.0, held_bytes=1)
        memory.log.append(entry, (), [memory.span(at, at + 1)])
    memory.queue.advance(0)
    assert len(memory.log._entries) == 3


def test_what_is_due_is_computed_before_the_program_goes_on(memory: Memory) -> None:
    """With all that is before it, and nothing after it."""
    memory.add("a", (0, 4), (8, 12))
    memory.add("b", (0, 4), (16, 20), is_due=True)
    memory.add("c", (0, 4), (24, 28))
    memory.queue.advance(0)
    assert memory.computed == ["a", "b"]


def test_what_is_only_in_released_memory_is_dropped(memory: Memory) -> None:
    """Also if Python frees the memory in the middle of another change."""
    memory.add("a", (0, 4), (8, 12))
    memory.log.release(memory.contents)
    memory.contents = BufferContents()
    memory.add("b", (0, 4), (8, 12))
    assert [entry.what for entry in memory.log._entries.values()] == ["b"]


def test_an_error_waits_for_the_next_read_and_the_rest_is_computed(memory: Memory) -> None:
    """The error says where it comes from, and the same call is computed again."""

    def fail() -> None:
        raise ZeroDivisionError

    for _ in range(2):
        entry = LogEntry(fail, "aten.div", "div")
        memory.log.append(entry, (), [memory.span(0, 4)])
        memory.add("a", (8, 12), (16, 20))
        with pytest.raises(ZeroDivisionError) as raised:
            memory.read(16, 20)
        told = "The error comes from aten.div, which was launched earlier."
        assert raised.value.__notes__ == [told]
        assert memory.read(16, 20) == [1] * 4


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_a_shortage_of_memory_asks_for_a_restart(error: Exception, memory: Memory) -> None:
    """Whether Python or PyTorch gets no memory for a value."""

    def fail() -> None:
        raise error

    memory.log.append(LogEntry(fail, "aten.add"), (), [memory.span(0, 4)])
    with pytest.raises(type(error)) as raised:
        memory.read(0, 4)
    assert raised.value.__notes__[-1] == "Values are missing from now on; restart the kernel."


@pytest.mark.parametrize("waits", [False, True], ids=["read", "wait"])
def test_ctrl_c_stops_between_two_entries(*, waits: bool, memory: Memory) -> None:
    """The one that is computed is finished, and the others are computed at the next read."""
    for number in range(5):
        memory.add("x" * number, (0, 4), (8 * number, 8 * number + 4), is_due=waits)
    compute = memory.log._entries[3].compute
    assert compute is not None

    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)
        compute()

    memory.log._entries[3].compute = interrupted
    look = partial(memory.queue.run_until, lambda: True) if waits else partial(memory.read, 0, 64)
    # Handlers wait for the end of a step only while a virtual GPU is entered.
    with gpulab.virtual_gpu("H200"), pytest.raises(KeyboardInterrupt):
        look()
    assert memory.computed == ["", "x", "xx"]
    memory.read(0, 64)
    assert memory.computed == ["", "x", "xx", "xxx", "xxxx"]
