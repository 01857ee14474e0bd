"""Find the events and waits of a program on the virtual GPU, with the times of the model."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpulab.core.interrupts import contextmanager
from gpulab.happens_before.activity import HostCall
from gpulab.tracing._cuda_events import EventKind, EventNote

if TYPE_CHECKING:
    from gpulab.virtual import Machine, SimulatedStream, StreamTask


@dataclass(frozen=True, slots=True)
class _ObservedEvent:
    """One event or wait of a stream, or one wait of the host, with the end of its call."""

    kind: EventKind
    end_ns: int
    awaited: "StreamTask | None"
    task: "StreamTask | None" = None


class MachineWatch:
    """Notes the events and waits of the virtual GPUs' streams, and the waits of their host.

    It replaces methods of this one machine, so that other machines are no slower, and takes no
    virtual time.
    """

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine
        self._events: list[_ObservedEvent] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note the events and waits made inside the block."""
        machine, host = self._machine, self._machine.host
        replacements = (
            (machine, "mark", self._mark(machine.mark)),
            (host, "wait", self._wait(host.wait)),
        )
        try:
            for owner, name, function in replacements:
                vars(owner)[name] = function
            yield
        finally:
            for owner, name, _ in replacements:
                vars(owner).pop(name, None)

    def event_notes(self, calls: tuple[HostCall, ...]) -> list[EventNote]:
        """Return the noted events and waits, with the correlation numbers of the host's calls.

        Events of a CUDA graph are left out: the record of a capture contains no call of theirs.
        """
        # Calls follow one another on the virtual clock, so the end of a call identifies it.
        numbers = {call.end_ns: call.correlation for call in calls}
        return [
            EventNote(
                event.kind,
                numbers[event.end_ns],
                None if event.task is None else event.task.stream.key,
                self._number(event.awaited, numbers),
                None if event.task is None else event.task.end_ns,
            )
            for event in self._events
            if event.end_ns in numbers
        ]

    def _number(self, task: "StreamTask | None", numbers: dict[int, int]) -> int | None:
        """Return the number of the call that launched a task, or None if it is not known."""
        if task is None:
            return None
        # The device sees a task one launch latency after its call ended.
        return numbers.get(task.visible_ns - self._machine.host.costs.launch_latency_ns)

    def _mark(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def marked(
            stream: "SimulatedStream", host_ns: int, waits_for: "tuple[StreamTask, ...]" = ()
        ) -> Any:  # noqa: ANN401 # a task
            task = original(stream, host_ns, waits_for)
            kind: EventKind = "wait" if waits_for else "event"
            awaited = waits_for[-1] if waits_for else None
            self._events.append(_ObservedEvent(kind, self._machine.host.now_ns, awaited, task))
            return task

        return marked

    def _wait(self, original: Callable[..., Any]) -> Callable[..., Any]:
        # host.wait() waits for one task, as a wait for an event does.
        def waited(task: "StreamTask | None") -> None:
            original(task)
            self._events.append(
                _ObservedEvent("synchronize event", self._machine.host.now_ns, task)
            )

        return waited
