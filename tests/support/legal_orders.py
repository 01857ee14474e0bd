"""Find out by brute force whether the result of a small program depends on the order of its work.

This does not use the race detector, which is compared with it. An order is legal if

- each stream runs its items one after the other, and each after the host has submitted it;
- a stream or the host that waits for an event continues only after the record that the event had
  at the time of the call;
- the allocator reuses a freed block at once, unless a stream that ``record_stream`` named is not
  done: then it takes other memory.
"""

import random
from dataclasses import dataclass

# Views of a device buffer of 2 x 2 elements: sizes, strides, offset, and the elements they touch.
VIEWS = {
    "all": ((2, 2), (2, 1), 0, (0, 1, 2, 3)),
    "row 0": ((2,), (1,), 0, (0, 1)),
    "row 1": ((2,), (1,), 2, (2, 3)),
    "column 0": ((2,), (2,), 0, (0, 2)),
    "column 1": ((2,), (2,), 1, (1, 3)),
    "diagonal": ((2,), (3,), 0, (0, 3)),
    "last": ((1,), (1,), 3, (3,)),
}
PINNED = "pinned"

Part = tuple[str, str]  # a buffer and a view of it
Mark = tuple[int, int]  # a stream, and how many of its items must be done


@dataclass(frozen=True)
class Step:
    """One call of the host."""

    does: str
    stream: int = 0
    event: int = 0
    reads: tuple[Part, ...] = ()
    writes: tuple[Part, ...] = ()
    buffer: str = ""


@dataclass(frozen=True)
class Program:
    """The calls of the host, and for each device buffer the stream of its memory pool."""

    steps: tuple[Step, ...]
    n_streams: int
    pools: dict[str, int]


@dataclass(frozen=True)
class Item:
    """One item of a stream: the work of a line, or a wait; a record is an item without both."""

    line: int = -1
    waits: Mark | None = None


class Plan:
    """A program with its waits resolved, which are the same in every order.

    Attributes
    ----------
    queues
        The items of each stream.
    submitted
        For each line, the number of items that each stream has after it.
    blocks
        The items that the host waits for in a line.
    asks
        The items that the allocator checks in a line.
    owners
        For each line and buffer, the number of allocations before the present one.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.queues: list[list[Item]] = [[] for _ in range(program.n_streams)]
        self.submitted: list[tuple[int, ...]] = []
        self.blocks: dict[int, list[Mark]] = {}
        self.asks: dict[int, list[Mark]] = {}
        self.owners: list[dict[str, int]] = []
        self._events: dict[int, Mark] = {}
        self._told: dict[str, set[int]] = {name: set() for name in program.pools}
        self._held: dict[str, list[Mark]] = {}
        self._owners = dict.fromkeys([*program.pools, PINNED], 0)
        for line, step in enumerate(program.steps):
            getattr(self, f"_{step.does}", lambda *_: None)(line, step)
            self.submitted.append(tuple(map(len, self.queues)))
            self.owners.append(dict(self._owners))

    def _end(self, stream: int) -> Mark:
        return stream, len(self.queues[stream])

    def _work(self, line: int, step: Step) -> None:
        self.queues[step.stream].append(Item(line))

    def _record(self, _line: int, step: Step) -> None:
        self.queues[step.stream].append(Item())
        self._events[step.event] = self._end(step.stream)

    def _wait(self, _line: int, step: Step) -> None:
        if step.event in self._events:
            self.queues[step.stream].append(Item(waits=self._events[step.event]))

    def _synchronize_event(self, line: int, step: Step) -> None:
        if step.event in self._events:
            self.blocks[line] = [self._events[step.event]]

    def _synchronize_stream(self, line: int, step: Step) -> None:
        self.blocks[line] = [self._end(step.stream)]

    def _synchronize_device(self, line: int, _step: Step) -> None:
        self.blocks[line] = [self._end(stream) for stream in range(self.program.n_streams)]

    def _record_stream(self, _line: int, step: Step) -> None:
        self._told[step.buffer].add(step.stream)

    def _free(self, _line: int, step: Step) -> None:
        self._held[step.buffer] = [self._end(stream) for stream in self._told[step.buffer]]
        self._told[step.buffer] = set()

    def _allocate(self, line: int, step: Step) -> None:
        self.asks[line] = self._held[step.buffer]
        self._owners[step.buffer] += 1


@dataclass(frozen=True)
class Moment:
    """A state: progress of host and streams, the memory of each allocation, and its content."""

    line: int
    done: tuple[int, ...]
    pieces: dict[tuple[str, int], int]
    cells: dict[tuple[str, int, int], tuple[int, int]]  # generation and line of the last writer

    def key(self) -> object:
        """Return a key that is the same for equal states."""
        return self.line, self.done, frozenset(self.pieces.items()), frozenset(self.cells.items())

    def past(self, marks: list[Mark]) -> bool:
        """Return whether all these items are done."""
        return all(self.done[stream] >= n for stream, n in marks)


class Orders:
    """Goes through all legal orders of a program until two of them differ."""

    def __init__(self, program: Program) -> None:
        self.plan = Plan(program)
        self.seen: dict[int, object] = {}

    def differ(self) -> bool:
        """Return whether some operation observes different values in two orders."""
        pieces = {(name, 0): 0 for name in [*self.plan.program.pools, PINNED]}
        start = Moment(0, (0,) * self.plan.program.n_streams, pieces, {})
        waiting, known = [start], {start.key()}
        while waiting:
            moment = waiting.pop()
            following = self._following(moment)
            if following is None or (not following and self._is_new(-1, self._final(moment))):
                return True
            for after in following:
                if after.key() not in known:
                    known.add(after.key())
                    waiting.append(after)
        return False

    def _following(self, now: Moment) -> list[Moment] | None:
        """Return the next states of all orders, or None if an observation differs."""
        after = [self._host_step(now)] if now.line < len(self.plan.program.steps) else []
        submitted = self.plan.submitted[now.line - 1] if now.line else (0,) * len(now.done)
        for stream, n in enumerate(now.done):
            if n == submitted[stream]:
                continue
            item = self.plan.queues[stream][n]
            if item.waits is not None and not now.past([item.waits]):
                continue
            done = (*now.done[:stream], n + 1, *now.done[stream + 1 :])
            moved = Moment(now.line, done, now.pieces, now.cells)
            after.append(moved if item.line < 0 else self._run(moved, item.line))
        possible = [moment for moment in after if moment is not _BLOCKED]
        return None if any(moment is None for moment in possible) else possible

    def _host_step(self, now: Moment) -> Moment | None:
        line, step = now.line, self.plan.program.steps[now.line]
        if not now.past(self.plan.blocks.get(line, [])):
            return _BLOCKED
        moved = Moment(line + 1, now.done, now.pieces, now.cells)
        if step.does == "host":
            return self._run(moved, line)
        if step.does == "allocate":
            owner = self.plan.owners[line][step.buffer]
            reused = now.past(self.plan.asks[line])
            piece = now.pieces[step.buffer, owner - 1] if reused else line + 1
            pieces = {**now.pieces, (step.buffer, owner): piece}
            return Moment(line + 1, now.done, pieces, now.cells)
        return moved

    def _run(self, now: Moment, line: int) -> Moment | None:
        step, owners = self.plan.program.steps[line], self.plan.owners[line]
        observed: list[object] = []
        cells = dict(now.cells)
        for part in step.reads:
            observed += [cells.get(place) for place in self._places(now, part, owners)]
        for part in step.writes:
            owner = owners[part[0]]
            for place in self._places(now, part, owners):
                before = cells.get(place, (-1, -1))
                # Values that an earlier allocation left count as one and the same garbage.
                observed.append(before if before[0] >= owner else "garbage")
                cells[place] = (owner, line)
        if self._is_new(line, tuple(observed)):
            return None
        return Moment(now.line, now.done, now.pieces, cells)

    def _places(
        self, now: Moment, part: Part, owners: dict[str, int]
    ) -> list[tuple[str, int, int]]:
        name, view = part
        return [(name, now.pieces[name, owners[name]], cell) for cell in VIEWS[view][3]]

    def _final(self, now: Moment) -> object:
        owners = self.plan.owners[-1]
        places = [self._places(now, (name, "all"), owners) for name in owners]
        return tuple(now.cells.get(place) for some in places for place in some)

    def _is_new(self, line: int, observed: object) -> bool:
        return self.seen.setdefault(line, observed) != observed


_BLOCKED = Moment(-1, (), {}, {})


class Writer:
    """Writes a random program with all waits that it needs, with some, or with all but one."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.n_streams = self.random.choice((2, 3))
        buffers = ("x", "y", "z")[: self.random.choice((1, 1, 2, 3))]
        self.pools = {name: self.random.randrange(self.n_streams) for name in buffers}
        self.steps: list[Step] = []
        self.readers: dict[str, set[int]] = {name: set() for name in [*buffers, PINNED]}
        self.writers: dict[str, set[int]] = {name: set() for name in [*buffers, PINNED]}
        self.care = self.random.choice((0.5, 0.8, 1.0, 1.0, 1.0))
        self.left_out = self.random.choice((-1, *range(6)))
        self.n_needed = -1

    def program(self) -> Program:
        """Return the program: six to fourteen operations and the calls between them."""
        for _ in range(self.random.randrange(6, 15)):
            self.random.choices(
                (self._kernel, self._copy, self._on_host, self._renew, self._call),
                weights=(6, 2, 2, 2, 2),
            )[0]()
        return Program(tuple(self.steps), self.n_streams, self.pools)

    def _is_careful(self) -> bool:
        self.n_needed += 1
        return self.n_needed != self.left_out and self.random.random() < self.care

    def _stream(self) -> int:
        return self.random.randrange(self.n_streams)

    def _part(self) -> Part:
        view = "all" if self.random.random() < 0.6 else self.random.choice(list(VIEWS))
        return self.random.choice(list(self.pools)), view

    def _kernel(self) -> None:
        form = self.random.choice(("read", "read", "write", "in place", "two"))
        part = self._part()
        reads = (part,) if form in {"read", "in place"} else ()
        writes = (part,) if form in {"write", "in place"} else ()
        if form == "two":
            reads, writes = (part,), (self._part(),)
        self._work(self._stream(), reads, writes)

    def _copy(self) -> None:
        host, part = (PINNED, "all"), self._part()
        into_device = self.random.random() < 0.5
        reads, writes = ((host,), (part,)) if into_device else ((part,), (host,))
        self._work(self._stream(), reads, writes)

    def _work(self, stream: int, reads: tuple[Part, ...], writes: tuple[Part, ...]) -> None:
        for name, _ in reads:
            self._order(stream, self.writers[name])
        for name, _ in writes:
            self._order(stream, self.writers[name] | self.readers[name])
        step = Step("work", stream, reads=reads, writes=writes)
        self.steps.append(step)
        if self.random.random() < 0.3:  # as in a loop
            self.steps += [Step("record", stream, self.random.randrange(2)), step]
        for name, _ in reads:
            self.readers[name].add(stream)
        for name, _ in writes:
            self.writers[name].add(stream)

    def _order(self, stream: int, others: set[int]) -> None:
        """Make a stream wait for others, except for waits that are left out."""
        for other in sorted(others - {stream}):
            if self._is_careful():
                event = self.random.randrange(2)
                if self.random.random() < 0.9:  # otherwise the wait may be for an earlier round
                    self.steps.append(Step("record", other, event))
                self.steps.append(Step("wait", stream, event))

    def _on_host(self) -> None:
        part = ((PINNED, self.random.choice(("all", "row 0", "row 1"))),)
        is_read = self.random.random() < 0.5
        users = self.writers[PINNED] | (set() if is_read else self.readers[PINNED])
        for stream in sorted(users):
            if self._is_careful():
                self.steps.append(Step("synchronize_stream", stream))
        reads, writes = (part, ()) if is_read else ((), part)
        self.steps.append(Step("host", reads=reads, writes=writes))

    def _renew(self) -> None:
        """Free a buffer and allocate it again, sometimes with a kernel in between."""
        name = self.random.choice(list(self.pools))
        pool = self.pools[name]
        for stream in sorted((self.readers[name] | self.writers[name]) - {pool}):
            if self._is_careful():
                self.steps.append(Step("record_stream", stream, buffer=name))
        self.steps.append(Step("free", buffer=name))
        others = [other for other in self.pools if other != name]
        if others and self.random.random() < 0.5:
            self._work(self._stream(), ((self.random.choice(others), "all"),), ())
        self.steps.append(Step("allocate", buffer=name))
        self.readers[name], self.writers[name] = set(), {pool}
        # Write it first: reading uninitialized memory depends on the order whatever the waits.
        self._work(self._stream(), (), ((name, "all"),))

    def _call(self) -> None:
        waits = ("wait", "synchronize_event", "synchronize_stream", "synchronize_device")
        does = self.random.choice(("record", "record", *waits))
        self.steps.append(Step(does, self._stream(), self.random.randrange(2)))
