"""A small program for one GPU as a frozen record: operations in the order of the host's calls."""

from dataclasses import dataclass, replace
from typing import ClassVar

from gpulab.core.errors import InvalidOptionError, UnknownNameError
from gpulab.core.requirements import FLAG, NUMBER, WHOLE, NameOf, Requirement
from gpulab.core.serialization import Saved
from gpulab.gpus import GpuSpec, gpu
from gpulab.virtual import copied_bytes, copy_ns

WORK_KINDS = ("kernel", "copy in", "copy out", "graph")
OPERATION_KINDS = (*WORK_KINDS, "sleep", "record", "wait", "synchronize", "clock")
COPY_KINDS = ("copy in", "copy out")
TIMED_KINDS = (*WORK_KINDS, "sleep")
HOST_KINDS = ("synchronize", "clock")
BUFFERS = ("x", "y", "z")
# The limits keep a program so small that its picture can be read.
MAX_OPERATIONS = 100
MAX_LAUNCHES = 1_500
MAX_STREAMS = 4
SHORTEST_US, LONGEST_US = 0.5, 10_000.0
_MOST_NODES = 50
_NAME_LENGTH = 12
_US = 1e3  # nanoseconds


def _between(least: float, most: float, unit: str) -> Requirement:
    return Requirement(
        f"a number from {least:g} to {most:,g}{unit}",
        lambda value: NUMBER.accepts(value) and least <= value <= most,
    )


def _count(least: int, most: int) -> Requirement:
    return Requirement(
        f"a whole number from {least} to {most:,}",
        lambda value: WHOLE.accepts(value) and least <= value <= most,
    )


_KIND = NameOf("operation", OPERATION_KINDS)
_BUFFER = NameOf("buffer", BUFFERS)
_DURATION = _between(SHORTEST_US, LONGEST_US, " (microseconds)")
_STREAM = _count(0, MAX_STREAMS - 1)
_NODES = _count(1, _MOST_NODES)
_EVENT = Requirement(
    f"a Python name of at most {_NAME_LENGTH} characters, or empty",
    lambda value: (
        isinstance(value, str)
        and len(value) <= _NAME_LENGTH
        and (not value or (value.isidentifier() and value.isascii()))
    ),
)
N_STREAMS = _count(1, MAX_STREAMS)
LAUNCH_US = _between(1, 50, " (microseconds)")
QUEUE_DEPTH = _count(4, 1_022)  # the upper limit is the depth of an H200's queue
REPETITIONS = _count(1, 1_000)


@dataclass(frozen=True, slots=True)
class ProgramOperation:
    """One call of a program; fields that its kind does not use are ignored.

    Attributes
    ----------
    kind
        One of ``OPERATION_KINDS``.
    stream
        Number of the stream; 0 is the default stream.
    duration_us
        How long a kernel, a copy, a sleep, or each kernel of a graph runs, in microseconds.
    is_pinned
        Whether the host memory of a copy is pinned.
    buffer
        Device memory that a kernel, a graph or a copy in writes, and that a copy out reads.
    event
        Name of the event that the call records or waits for.
    n_kernels
        Number of kernels of a graph.
    """

    kind: str
    stream: int = 0
    duration_us: float = 20.0
    is_pinned: bool = True
    buffer: str = "x"
    event: str = ""
    n_kernels: int = 4

    def __post_init__(self) -> None:
        _KIND.check(kind=self.kind)
        _STREAM.check(stream=self.stream)
        _DURATION.check(duration_us=self.duration_us)
        FLAG.check(is_pinned=self.is_pinned)
        _BUFFER.check(buffer=self.buffer)
        _EVENT.check(event=self.event)
        _NODES.check(n_kernels=self.n_kernels)

    @property
    def is_work(self) -> bool:
        """Whether it is work to time: a kernel, a copy or a graph."""
        return self.kind in WORK_KINDS

    @property
    def is_copy(self) -> bool:
        """Whether it moves bytes between host and GPU."""
        return self.kind in COPY_KINDS

    @property
    def runs_on_stream(self) -> bool:
        """Whether it goes into a stream; clock readings and synchronize stay on the host."""
        return self.kind not in HOST_KINDS

    @property
    def n_launches(self) -> int:
        """Number of tasks that it launches on the GPU."""
        return self.n_kernels if self.kind == "graph" else int(self.runs_on_stream)

    def with_pinned(self, is_pinned: bool, spec: GpuSpec) -> "ProgramOperation":  # noqa: FBT001 # the value that is set
        """Return a copy of the same number of bytes with pinned or pageable host memory."""
        size_bytes = copied_bytes(round(self.duration_us * _US), spec, pinned=self.is_pinned)
        # The bytes stay and the duration changes: that pageable copies are slower is the lesson.
        duration_us = copy_ns(size_bytes, spec, pinned=is_pinned) / _US
        # Rounded to 0.1 µs, so that switching twice gives the first value back.
        limited_us = min(LONGEST_US, max(SHORTEST_US, round(duration_us, 1)))
        return replace(self, is_pinned=is_pinned, duration_us=limited_us)

    def __str__(self) -> str:
        if self.is_copy:
            memory = "pinned" if self.is_pinned else "pageable"
            return f"{self.kind} of {self.buffer}, {memory}"
        if self.kind == "graph":
            return f"graph of {self.n_kernels} kernels on {self.buffer}"
        if self.kind == "kernel":
            return f"kernel on {self.buffer}"
        if self.kind in {"record", "wait"}:
            verb = "record event" if self.kind == "record" else "wait for event"
            return f"{verb} {self.event or '(none)'}"
        return {"clock": "read the clock"}.get(self.kind, self.kind)


@dataclass(frozen=True, slots=True)
class MachineProgram(Saved):
    """A small program for one GPU: what the host calls, in order, and what a launch costs.

    Attributes
    ----------
    operations
        The calls, in the order in which the host makes them.
    n_streams
        Number of streams, with or without work.
    launch_us
        Time that the host needs to launch a kernel, in microseconds.
    queue_depth
        Number of launches that may be pending before the next one blocks the host.
    repetitions
        How often the host repeats the work, from its first operation to its last.
    """

    schema: ClassVar[str] = "gpulab.program/1"

    operations: tuple[ProgramOperation, ...] = ()
    n_streams: int = 1
    launch_us: float = 5.0
    queue_depth: int = 64
    repetitions: int = 1

    def __post_init__(self) -> None:
        N_STREAMS.check(n_streams=self.n_streams)
        LAUNCH_US.check(launch_us=self.launch_us)
        QUEUE_DEPTH.check(queue_depth=self.queue_depth)
        REPETITIONS.check(repetitions=self.repetitions)
        if len(self.operations) > MAX_OPERATIONS:
            raise InvalidOptionError(
                f"a program of {len(self.operations):,} operations; the machine takes at most "
                f"{MAX_OPERATIONS}, because the picture shows no more; use repetitions for a loop"
            )
        for number, operation in enumerate(self.operations, 1):
            if operation.stream >= self.n_streams:
                raise InvalidOptionError(
                    f"operation {number} is on stream {operation.stream} and the program has "
                    f"n_streams={self.n_streams}; raise n_streams, or choose another stream"
                )
        if self.n_launches > MAX_LAUNCHES:
            raise InvalidOptionError(
                f"repetitions={self.repetitions} make {self.n_launches:,} launches; the machine "
                f"takes at most {MAX_LAUNCHES:,}; repeat less, or remove operations"
            )

    @property
    def spec(self) -> GpuSpec:
        """Data sheet of the GPU that it runs on."""
        return gpu("H200")

    @property
    def body(self) -> range:
        """Indices of the operations that are repeated: from the first work to the last.

        Waits between streams, and the events that they wait for, are part of the work. Without
        any kernel, copy or graph the range is empty.
        """
        # An event that no stream waits for belongs to a timing method, not to the work.
        awaited = {each.event for each in self.operations if each.kind == "wait"}
        indices = [
            index
            for index, each in enumerate(self.operations)
            if each.is_work
            or each.kind == "wait"
            or (each.kind == "record" and each.event in awaited)
        ]
        if not any(self.operations[index].is_work for index in indices):
            return range(0)
        return range(indices[0], indices[-1] + 1)

    @property
    def work(self) -> tuple[int, ...]:
        """Indices of the work to time: the body without clocks, sleeps and timing events."""
        awaited = {each.event for each in self.operations if each.kind == "wait"}
        kinds = {*WORK_KINDS, "wait", "synchronize"}
        return tuple(
            index
            for index in self.body
            for each in (self.operations[index],)
            if each.kind in kinds or (each.kind == "record" and each.event in awaited)
        )

    @property
    def n_launches(self) -> int:
        """Number of tasks that one run of the program launches on the GPU."""
        per_turn = sum(self.operations[index].n_launches for index in self.body)
        all_once = sum(each.n_launches for each in self.operations)
        # The first turn of the body is part of all_once.
        return all_once + (self.repetitions - 1) * per_turn

    @property
    def calls(self) -> tuple[tuple[int, int], ...]:
        """Index and repetition of each call, in the order in which the host makes them."""
        body = self.body
        if not body:
            return tuple((index, 0) for index in range(len(self.operations)))
        before = [(index, 0) for index in range(body.start)]
        turns = [(index, turn) for turn in range(self.repetitions) for index in body]
        after = [(index, 0) for index in range(body.stop, len(self.operations))]
        return (*before, *turns, *after)

    def replaced(self, index: int, operation: ProgramOperation) -> "MachineProgram":
        """Return the program with the operation at ``index`` replaced."""
        self._require(index)
        return self._with((*self.operations[:index], operation, *self.operations[index + 1 :]))

    def inserted(self, index: int, operation: ProgramOperation) -> "MachineProgram":
        """Return the program with one more operation, inserted before ``index``."""
        return self._with((*self.operations[:index], operation, *self.operations[index:]))

    def removed(self, index: int) -> "MachineProgram":
        """Return the program without the operation at ``index``."""
        self._require(index)
        return self._with((*self.operations[:index], *self.operations[index + 1 :]))

    def moved(self, index: int, to: int) -> "MachineProgram":
        """Return the program with one operation moved: the host calls it earlier or later."""
        self._require(index)
        # The target is clamped, because a learner may drag an operation beyond either end.
        return self.removed(index).inserted(
            min(max(0, to), len(self.operations) - 1), self.operations[index]
        )

    def free_event(self) -> str:
        """Return a name that no event recorded in the program has."""
        used = {each.event for each in self.operations if each.kind == "record"}
        return next(name for name in _event_names() if name not in used)

    def _with(self, operations: tuple[ProgramOperation, ...]) -> "MachineProgram":
        # An operation on a new stream adds that stream. An empty stream stays, so that an
        # operation can be moved there.
        n_needed = 1 + max((each.stream for each in operations), default=0)
        return replace(self, operations=operations, n_streams=max(self.n_streams, n_needed))

    def _require(self, index: int) -> None:
        if not (WHOLE.accepts(index) and 0 <= index < len(self.operations)):
            valid = (str(number) for number in range(len(self.operations)))
            raise UnknownNameError("operation", index, valid)


def _event_names() -> tuple[str, ...]:
    # Short names, which fit into the picture; more of them than a program can have operations.
    return (*"abcdefgh", *(f"e{number}" for number in range(MAX_OPERATIONS)))
