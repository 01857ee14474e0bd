"""The data that the page needs to draw a machine: plain values and texts."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from gpulab.core.foreign_text import visible
from gpulab.views.machine import (
    BUFFERS,
    CHALLENGES,
    LONGEST_US,
    MAX_STREAMS,
    SHORTEST_US,
    MethodReading,
    Playback,
    PlayedCall,
    PlayedTask,
    ProgramOperation,
    operation_words,
    reading_words,
    time_words,
)

_FIELDS = tuple(each.name for each in fields(ProgramOperation))
# The names of columns in the page, and the fields in which they are found.
_CALL = {
    "place": "place",
    "turn": "turn",
    "start": "start_us",
    "end": "end_us",
    "waited": "waited_us",
    "is_queue_full": "for_room",
    "is_stuck": "is_stuck",
}
_TASK = {
    "place": "place",
    "turn": "turn",
    "kind": "kind",
    "stream": "stream",
    "engine": "engine",
    "called": "called_us",
    "start": "start_us",
    "end": "end_us",
    "is_stuck": "is_stuck",
}
_TIMES = {name for name in (*_CALL.values(), *_TASK.values()) if name.endswith("_us")}


def view_of(
    playback: Playback, readings: tuple[MethodReading, ...], words: tuple[str, ...]
) -> dict[str, Any]:
    """Return everything that the page draws of a run, with times in microseconds."""
    program = playback.program
    return {
        "source": f"computed: virtual {program.spec.driver_name}",
        "operations": [
            {**_fields(operation), "text": operation_words(program, index)}
            for index, operation in enumerate(program.operations)
        ],
        "n_streams": program.n_streams,
        "launch_us": program.launch_us,
        "queue_depth": program.queue_depth,
        "repetitions": program.repetitions,
        "calls": _columns(playback.calls, _CALL),
        "tasks": _columns(playback.tasks, _TASK),
        "end": playback.end_us,
        "remarks": [
            {"kind": remark.kind, "text": visible(remark.text), "places": list(remark.places)}
            for remark in playback.remarks
        ],
        "readings": [_reading(reading) for reading in readings],
        "words": [visible(line) for line in words],
        "limits": {"streams": MAX_STREAMS, "shortest": SHORTEST_US, "longest": LONGEST_US},
        "buffers": list(BUFFERS),
        "challenges": list(CHALLENGES),
    }


def _fields(operation: ProgramOperation) -> dict[str, Any]:
    # Not dataclasses.asdict, which copies each value deeply.
    return {name: getattr(operation, name) for name in _FIELDS}


def _columns(
    played: Sequence[PlayedCall | PlayedTask], names: Mapping[str, str]
) -> dict[str, list[Any]]:
    """Return calls or tasks as columns by name.

    Columns, because each answer to a drag contains all calls, up to 1,500, and names of fields for
    each of them would take most of the message.
    """
    columns = {}
    for name, field in names.items():
        values = [getattr(each, field) for each in played]
        # The simulator counts whole nanoseconds, so three digits of a microsecond lose nothing.
        columns[name] = [round(value, 3) for value in values] if field in _TIMES else values
    return columns


def _reading(reading: MethodReading) -> dict[str, Any]:
    value_us = reading.value_us
    return {
        "name": reading.name,
        "value": value_us,
        "truth": reading.truth_us,
        "shown": "none" if value_us is None else time_words(value_us),
        "truth_shown": time_words(reading.truth_us),
        "is_right": reading.is_right,
        "reason": reading.reason,
        "text": reading_words(reading),
    }
