"""The data that the page needs to draw a machine: plain values and texts."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from gpulab.core.foreign_text import visible
from gpulab.views.machine._challenges import CHALLENGES
from gpulab.views.machine._playback import Playback, PlayedTask
from gpulab.views.machine._program import (
    BUFFERS,
    LONGEST_US,
    MAX_STREAMS,
    SHORTEST_US,
    ProgramOperation,
)
from gpulab.views.machine._readings import MethodReading
from gpulab.views.machine._runner import PlayedCall
from gpulab.views.machine._words import operation_words, reading_words, time_words

_FIELDS = tuple(each.name for each in fields(ProgramOperation))


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
        "calls": _columns(PlayedCall, playback.calls),
        "tasks": _columns(PlayedTask, playback.tasks),
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
    kind: type[PlayedCall | PlayedTask], played: Sequence[PlayedCall | PlayedTask]
) -> dict[str, list[Any]]:
    """Return the fields of calls or tasks as columns, named without the unit of times.

    Columns, because each answer to a drag contains all calls, up to 1,500, and names of fields for
    each of them would take most of the message.
    """
    columns = {}
    for name in (each.name for each in fields(kind)):
        values = [getattr(each, name) for each in played]
        # The simulator counts whole nanoseconds, so three digits of a microsecond lose nothing.
        is_time = name.endswith("_us")
        columns[name.removesuffix("_us")] = [round(v, 3) for v in values] if is_time else values
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
