"""The race detector against all legal orders of small programs; its texts and its cost.

A program is unsafe exactly if two of its legal orders let some operation observe different
values: what it reads and what it overwrites. ``tests.support.legal_orders`` finds
these orders and tries all of them, without using the checker.
"""

import sys
import threading
from collections.abc import Iterator
from itertools import product
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gpulab.happens_before import (
    HAZARD_KINDS,
    Allocation,
    Checker,
    MemoryAccess,
    Snapshot,
    _byte_ranges,
    _call_sites,
    extent,
)
from gpulab.happens_before._accesses import (
    _MIN_SWEPT,
    FreedMemory,
    RecordedAccess,
)
from gpulab.happens_before._byte_ranges import Extent
from gpulab.happens_before._checker import MAX_RECORDED
from gpulab.happens_before.tensor_accesses import forget_when_freed, host_access
from tests.support.legal_orders import PINNED, VIEWS, Orders, Part, Program, Step, Writer

# In three of these a stream repeats an operation, and another one waits only for the first.
SEEDS = range(400, 460)
ITEMSIZE = 4
A, B, C = (0, 0), (0, 1), (0, 2)
ALL = extent((1024,), (1,), 0, ITEMSIZE)


class Reporter:
    """Reports the calls of a small program to a checker, as the virtual GPU does."""

    def __init__(self, program: Program) -> None:
        self.checker = Checker()
        self.events: dict[int, Snapshot] = {}
        self.blocks = {
            name: Allocation((0, pool), 0x1000 * (1 + index), 4 * ITEMSIZE)
            for index, (name, pool) in enumerate(program.pools.items())
        }
        self.memories: dict[str, object] = {name: name for name in [*self.blocks, PINNED]}
        self.recorded: dict[str, set[tuple[int, int]]] = {name: set() for name in self.blocks}
        for line, step in enumerate(program.steps):
            getattr(self, f"_{step.does}")(line, step)

    def _accesses(self, parts: tuple[Part, ...], *, is_write: bool) -> Iterator[MemoryAccess]:
        for name, view in parts:
            yield MemoryAccess(
                self.memories[name], extent(*VIEWS[view][:3], ITEMSIZE), is_write, name
            )

    def _all_accesses(self, step: Step) -> list[MemoryAccess]:
        reads = self._accesses(step.reads, is_write=False)
        return [*reads, *self._accesses(step.writes, is_write=True)]

    def _work(self, line: int, step: Step) -> None:
        self.checker.launch((0, step.stream), "kernel", self._all_accesses(step), ("x.py", line))

    def _host(self, line: int, step: Step) -> None:
        for access in self._all_accesses(step):
            self.checker.host_access(access, "host", ("x.py", line))

    def _record(self, _line: int, step: Step) -> None:
        self.events[step.event] = self.checker.record((0, step.stream))

    def _wait(self, _line: int, step: Step) -> None:
        self.checker.stream_wait((0, step.stream), self.events.get(step.event))

    def _synchronize_event(self, _line: int, step: Step) -> None:
        self.checker.host_wait(self.events.get(step.event))

    def _synchronize_stream(self, _line: int, step: Step) -> None:
        self.checker.host_wait_stream((0, step.stream))

    def _synchronize_device(self, _line: int, _step: Step) -> None:
        self.checker.host_wait_device(0)

    def _record_stream(self, _line: int, step: Step) -> None:
        self.recorded[step.buffer].add((0, step.stream))

    def _free(self, _line: int, step: Step) -> None:
        name = step.buffer
        self.checker.free(self.memories[name], self.blocks[name], self.recorded[name])
        self.recorded[name] = set()

    def _allocate(self, line: int, step: Step) -> None:
        self.memories[step.buffer] = (step.buffer, line)
        self.checker.allocate(self.memories[step.buffer], self.blocks[step.buffer])


@pytest.mark.slow
def test_against_all_orders() -> None:
    """Of the random programs exactly the unsafe ones have hazards, and there are many of both."""
    is_unsafe, wrong = [], []
    for seed in SEEDS:
        program = Writer(seed).program()
        is_unsafe.append(Orders(program).differ())
        if bool(Reporter(program).checker.hazards) != is_unsafe[-1]:
            wrong.append(seed)
    assert wrong == []
    assert len(SEEDS) / 4 < sum(is_unsafe) < len(SEEDS) * 3 / 4


def test_every_kind_is_met() -> None:
    """The random programs have hazards of every kind."""
    met = {
        hazard.kind
        for seed in SEEDS
        for hazard in Reporter(Writer(seed).program()).checker.hazards
    }
    assert met == set(HAZARD_KINDS)


def write(memory: object, view: Extent = ALL) -> MemoryAccess:
    """Return a write of a whole tensor, or of a view of it."""
    return MemoryAccess(memory, view, is_write=True, label="x")


def read(memory: object, view: Extent = ALL) -> MemoryAccess:
    """Return a read of a whole tensor, or of a view of it."""
    return MemoryAccess(memory, view, is_write=False, label="x")


def places(checker: Checker) -> list[tuple[str, str]]:
    """Return the two places of each hazard."""
    return [(hazard.first.place, hazard.second.place) for hazard in checker.hazards]


def test_text_of_a_missing_stream_wait() -> None:
    """The text gives the tensor, both operations with their lines, and the missing line."""
    checker = Checker()
    checker.launch(B, "copy_", [write(1)], ("/somewhere/train.py", 12))
    checker.launch(A, "mul", [read(1)], ("/somewhere/train.py", 15))
    (hazard,) = checker.hazards
    assert str(hazard) == (
        "read before the write is done: x\n"
        "  copy_ on stream 1 writes it, train.py:12; mul on the default stream reads it, "
        "train.py:15\n"
        "  add after train.py:12: done = s1.record_event()\n"
        "  and before train.py:15: torch.cuda.default_stream().wait_event(done), "
        "where s1 is stream 1"
    )


def test_text_of_a_host_access() -> None:
    """The cure names the stream that the host must synchronize with."""
    checker = Checker()
    checker.launch(B, "copy_", [write("host")], ("train.py", 12))
    checker.host_access(read("host"), "sum", ("train.py", 15))
    (hazard,) = checker.hazards
    assert hazard.kind == "host read before the copy is done"
    assert str(hazard.second) == "sum on the host reads it, train.py:15"
    assert hazard.cure == (
        "add after train.py:12: done = s1.record_event()\n"
        "  and before train.py:15: done.synchronize(), where s1 is stream 1"
    )


def reuse(checker: Checker, user: tuple[int, int], owner: tuple[int, int]) -> None:
    """Free memory that `user` reads and let `owner` write to it; both are of A's pool."""
    block = Allocation(A, 0x1000, 4096)
    checker.allocate("old", block)
    freed = read("old")._replace(label="the freed tensor")
    checker.launch(user, "mul", [freed], ("train.py", 12))
    checker.free("old", block)
    checker.allocate("new", block)
    checker.launch(owner, "fill_", [write("new")], ("train.py", 15))


def test_text_of_a_missing_record_stream() -> None:
    """The cure is record_stream for the stream that used the freed tensor."""
    checker = Checker()
    reuse(checker, user=B, owner=A)
    (hazard,) = checker.hazards
    assert (hazard.kind, hazard.tensor) == ("read after free", "the freed tensor")
    assert hazard.first.place == "train.py:12"
    assert hazard.cure == (
        "add after train.py:12: x.record_stream(s1), where x is its tensor and s1 is stream 1"
    )


def test_a_hazard_is_reported_once_and_counted() -> None:
    """A hazard repeated in a loop is one entry with a count."""
    checker = Checker()
    for _ in range(3):
        checker.launch(A, "fill_", [write(1)], ("train.py", 1))
        checker.launch(B, "mul", [read(1)], ("train.py", 2))
        checker.host_wait_device(0)
    (hazard,) = checker.hazards
    assert hazard.count == 3
    assert str(hazard).startswith("read before the write is done: x, 3 times\n")


def test_a_missing_wait_counts_as_made() -> None:
    """After a hazard the stream may use the memory in another way, without a second report."""
    checker = Checker()
    checker.launch(A, "fill_", [write(1)], ("train.py", 1))
    checker.launch(B, "mul", [read(1)], ("train.py", 2))
    checker.launch(B, "add_", [write(1)], ("train.py", 3))
    assert places(checker) == [("train.py:1", "train.py:2")]


def test_a_piece_of_a_freed_block_inherits_its_own_part() -> None:
    """A write to the reused piece replaces all that the piece inherited, and nothing else."""
    checker = Checker()
    checker.launch(A, "fill_", [write("old")], ("train.py", 1))
    checker.launch(A, "mul", [read("old", extent((64,), (1,), 0, ITEMSIZE))], ("train.py", 2))
    checker.free("old", Allocation(A, 0x1000, 4096))
    checker.allocate("new", Allocation(A, 0x1400, 1024))
    # The write was cut into three pieces, and the read is in the first.
    assert checker.n_recorded == 4
    checker.launch(A, "fill_", [write("new", extent((256,), (1,), 0, ITEMSIZE))], ("train.py", 3))
    assert checker.n_recorded == 4


def test_a_device_wait_is_for_one_device() -> None:
    """A device synchronize orders the streams of that device only."""
    checker = Checker()
    checker.launch((0, 1), "copy_", [write("a")], ("train.py", 1))
    checker.launch((1, 1), "copy_", [write("b")], ("train.py", 2))
    checker.host_wait_device(0)
    checker.host_access(read("a"), "sum", ("train.py", 3))
    checker.host_access(read("b"), "sum", ("train.py", 4))
    assert places(checker) == [("train.py:2", "train.py:4")]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_program() -> None:
    """The checker stores no more uses after ten thousand operations than its limit."""
    recorded = []
    for n_steps in (10, 10_000):
        checker = Checker()
        for step in range(n_steps):
            row = extent((8,), (1,), 8 * (step % 500), ITEMSIZE)
            block = Allocation(A, 0x1000 * (step % 7), 4096)
            checker.allocate(step, block)
            checker.launch(A, "add", [read("x"), write(step)], ("train.py", 1))
            checker.launch(A, "fill_", [write("rows", row)], ("train.py", 2))
            checker.stream_wait(B, checker.record(A))
            checker.launch(B, "mul", [read(step), write("y")], ("train.py", 3))
            checker.free(step, block, [B])
            if step % 100 == 99:
                checker.host_wait_device(0)
        assert checker.hazards == ()
        recorded.append(checker.n_recorded)
    assert recorded[1] <= MAX_RECORDED + recorded[0]


def test_neighbours_of_one_line_become_one_use() -> None:
    """Adjacent rows from one line are merged into one use, except across an event."""
    checker = Checker()
    for row in range(512):
        view = extent((8,), (1,), 8 * row, ITEMSIZE)
        checker.launch(A, "fill_", [write("rows", view)], ("train.py", 1))
        if row == 255:
            event = checker.record(A)
    assert checker.n_recorded <= 20
    checker.stream_wait(B, event)
    checker.launch(B, "mul", [read("rows", extent((2048,), (1,), 0, ITEMSIZE))], ("train.py", 2))
    assert checker.hazards == ()
    checker.launch(B, "mul", [read("rows", extent((8,), (1,), 2048, ITEMSIZE))], ("train.py", 3))
    assert places(checker) == [("train.py:1", "train.py:3")]


def test_clear_keeps_what_was_found() -> None:
    """`clear` drops all uses and keeps the report."""
    checker = Checker()
    reuse(checker, user=B, owner=A)
    checker.free("new", Allocation(A, 0x1000, 4096))
    checker.clear()
    assert checker.n_recorded == 0
    assert (len(checker.hazards), *checker.operations.values()) == (1, 1, 1)


def test_pinned_memory_that_is_gone_is_forgotten() -> None:
    """New memory at the address of a freed buffer has no earlier accesses."""
    checker = Checker()
    buffer = torch.empty(4)
    for _ in range(2):
        forget_when_freed(checker, buffer)
    checker.launch(B, "copy_", [host_access(buffer, is_write=True)], ("train.py", 1))
    assert checker.n_recorded == 1
    del buffer
    assert checker.n_recorded == 0


def bytes_of(
    sizes: tuple[int, ...], strides: tuple[int, ...], offset: int, itemsize: int
) -> set[int]:
    """Return the set of all byte offsets of a view."""
    starts = {
        offset + sum(i * step for i, step in zip(index, strides, strict=True))
        for index in product(*map(range, sizes))
    }
    return {start * itemsize + byte for start in starts for byte in range(itemsize)}


def test_views_meet_exactly_if_they_share_a_byte() -> None:
    """Random views meet exactly if they share a byte, also strided and empty ones."""
    random = Random(0)
    n_meeting = 0
    for _ in range(3_000):
        itemsize = random.choice((1, 2, 4))
        views = []
        for _ in range(2):
            n_axes = random.randrange(4)
            sizes = tuple(random.choice((0, 1, 2, 2, 3, 4, 5)) for _ in range(n_axes))
            strides = tuple(random.choice((0, 1, 2, 3, 4, 6, 8, 12, 15)) for _ in range(n_axes))
            views.append((sizes, strides, random.randrange(20), itemsize))
        one, other = (extent(*view) for view in views)
        shared = bytes_of(*views[0]) & bytes_of(*views[1])
        assert one.meets(other) == other.meets(one) == bool(shared), views
        if one.covers(other):
            assert bytes_of(*views[1]) <= bytes_of(*views[0]), views
        n_meeting += bool(shared)
    assert 300 < n_meeting < 2_700


def test_large_views_are_compared_without_enumeration() -> None:
    """Columns of a large matrix are compared without listing their runs."""
    n = 1 << 20
    even, odd = (extent((n, n), (2 * n, 2), offset, 4) for offset in (0, 1))
    left, right = (extent((n, n), (2 * n, 1), offset, 4) for offset in (0, n))
    assert not even.meets(odd)
    assert not left.meets(right)
    assert left.meets(even)


def test_views_that_are_too_hard_to_compare_count_as_meeting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the search for a common byte takes too long, the answer is that there is one."""
    monkeypatch.setattr(_byte_ranges, "_MOST_WORK", 1)
    apart = extent((5,), (13,), 7, 1), extent((5, 2), (37, 7), 5, 1)
    assert apart[0].meets(apart[1])
    monkeypatch.undo()
    _byte_ranges._meet.cache_clear()
    assert not apart[0].meets(apart[1])


def test_a_view_has_a_stride_for_each_size() -> None:
    """A mistake of the caller is no view."""
    with pytest.raises(ValueError, match="zip"):
        extent((2,), (1, 1), 0, 1)


def written(view: Extent) -> RecordedAccess:
    """Return a write of these bytes on stream A."""
    access = MemoryAccess(None, view, is_write=True, label="")
    return RecordedAccess(Checker()._thread(A), access, "fill", ("", 0))


def test_the_host_reads_after_what_it_has_seen_done() -> None:
    """A host access drops the accesses that are done, and stands for the wait that is missing."""
    checker = Checker()
    first, second = (extent((4,), (1,), offset, 1) for offset in (0, 4))
    checker.launch(A, "copy_", [write("x", first), write("y", first)], ("train.py", 1))
    checker.launch(B, "copy_", [read("x", second)], ("train.py", 2))
    assert checker.n_recorded == 3
    for name in "xy":
        checker.host_access(read(name, first), "item", ("train.py", 3))
    # The missing wait for stream A counts as made, so the second read is no hazard of its own.
    assert (len(checker.hazards), checker.n_recorded) == (1, 1)
    checker.host_wait_stream(B)
    checker.host_access(read("x"), "item", ("train.py", 4))
    assert (len(checker.hazards), checker.n_recorded) == (1, 0)


def test_freed_memory_remembers_each_byte() -> None:
    """Against a table of single bytes: a new block inherits the uses of its bytes, and no other.

    A block for another stream shows that ``cudaFree`` came between, which ends whole blocks.
    """
    random = Random(0)
    for _ in range(150):
        freed = FreedMemory()
        table: dict[tuple[int, int], Any] = {}
        for name in range(20):
            stream = (random.choice((0, 0, 1)), random.choice((0, 0, 0, 1)))
            address = random.randrange(16)
            block = Allocation(stream, address, random.randint(1, 8))
            inherited = {
                (past.name, address + byte)
                for past in freed.claim(block)
                for byte in range(past.extent.start, past.extent.stop)
            }
            assert inherited == claimed(table, block)
            start = random.randrange(block.size_bytes)
            view = Extent(start, random.randint(1, block.size_bytes - start))
            past = written(view)
            past.name = f"use {name}"
            freed.keep(block, [past], {})
            for byte in range(block.size_bytes):
                names = {past.name} if view.start <= byte < view.stop else set()
                table[stream[0], address + byte] = (name, stream), names


def claimed(table: dict[tuple[int, int], Any], block: Allocation) -> set[tuple[str, int]]:
    """Remove a block from a table of freed bytes; return the uses of its bytes."""
    device, inherited = block.stream[0], set()
    inside = range(block.address, block.stop)
    met = {piece for (at, byte), (piece, _) in table.items() if at == device and byte in inside}
    for key, (piece, names) in list(table.items()):
        if key[0] != device or piece not in met:
            continue
        number, stream = piece
        is_after = key[1] >= block.stop
        if stream != block.stream:
            del table[key]
        elif key[1] in inside:
            del table[key]
            inherited |= {(name, key[1]) for name in names}
        else:  # the parts before and after are blocks of their own now
            table[key] = ((number, is_after), stream), names
    return inherited


def test_freed_blocks_are_swept_when_their_number_doubles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Freed blocks are swept when their number has doubled, so each costs constant time."""
    sweeps = []
    sweep = FreedMemory._sweep
    monkeypatch.setattr(
        FreedMemory, "_sweep", lambda freed, host: sweeps.append(host) or sweep(freed, host)
    )
    freed = FreedMemory()
    for index in range(8 * _MIN_SWEPT):
        freed.keep(Allocation(A, index << 12, 1 << 12), [written(ALL)], {})
    assert len(sweeps) == 4


def test_the_text_of_a_hazard_says_how_often_and_what() -> None:
    """The count is given from 2 on, and a tensor is described by its type and shape."""
    label = SimpleNamespace(dtype="torch.float32", sizes=[2, 3])
    checker = Checker()
    heads = []
    for _ in range(2):
        for stream in (A, B):
            access = MemoryAccess("x", ALL, is_write=True, label=label)
            checker.launch(stream, "fill_", [access], ("train.py", 1))
        heads.append(str(checker.hazards[0]).splitlines()[0])
        checker.clear()
    what = "write over a write: float32 tensor of shape (2, 3)"
    assert heads == [what, f"{what}, 2 times"]


def test_the_site_is_the_users_line() -> None:
    """The site is the innermost line outside gpulab and PyTorch."""
    name, line = _call_sites.user_site()
    assert name == __file__
    assert line == test_the_site_is_the_users_line.__code__.co_firstlineno + 2
    assert _call_sites.site_text((name, line)) == f"test_checker.py:{line}"


def test_a_thread_without_a_line_of_the_users() -> None:
    """A thread without user code, such as autograd's, has an unknown line."""
    sites: list[_call_sites.Site] = []
    code = compile("def ask():\n    sites.append(user_site())", _call_sites.__file__, "exec")
    names = {"sites": sites, "user_site": _call_sites.user_site}
    exec(code, names)
    thread = threading.Thread(target=names["ask"])
    thread.start()
    thread.join()
    assert sites == [_call_sites.NOWHERE]
    assert _call_sites.site_text(_call_sites.NOWHERE) == "an unknown line"


def test_cells_are_named_as_ipython_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell has the number that IPython gives it, or just "cell" without a shell."""
    name = "/somewhere/ipykernel_123/456.py"
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert _call_sites.site_text((name, 4)) == "cell line 4"
    names = {name: ("Cell", "In[3]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=names.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert _call_sites.site_text((name, 4)) == "cell In[3] line 4"
    assert _call_sites.site_text(("/somewhere/model.py", 4)) == "model.py:4"
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert _call_sites.site_text((name, 4)) == "cell line 4"
