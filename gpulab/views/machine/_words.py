"""Describe a program, its run and its readings in words, as the picture shows them."""

from gpulab.core.units import format_time
from gpulab.views.machine._playback import Playback, PlayedTask
from gpulab.views.machine._program import TIMED_KINDS, MachineProgram
from gpulab.views.machine._readings import MethodReading

_MICRO = 1e-6
_SHOWN_TURNS = 2  # later repetitions look like the second one


def operation_words(program: MachineProgram, index: int) -> str:
    """Return one operation in words: what it does, where, and for how long."""
    operation = program.operations[index]
    where = f" on stream {operation.stream}" if operation.runs_on_stream else " on the host"
    each = ", each" if operation.kind == "graph" else ","
    long = f"{each} {time_words(operation.duration_us)}" if operation.kind in TIMED_KINDS else ""
    return f"{index + 1}. {operation}{where}{long}"


def playback_words(playback: Playback) -> tuple[str, ...]:
    """Return a run in words: one line for each call, the end, and the remarks."""
    program = playback.program
    lines = []
    shown = [call for call in playback.calls if call.turn < _SHOWN_TURNS]
    for call in shown:
        turn = f" (repetition {call.turn + 1})" if program.repetitions > 1 else ""
        line = (
            f"{operation_words(program, call.place)}{turn}: called at {time_words(call.start_us)}"
        )
        if call.is_stuck:
            line += ", never comes back"
        elif call.waited_us:
            why = "for room in the launch queue" if call.is_queue_full else "for the GPU"
            line += f", waits {time_words(call.waited_us)} {why}"
        tasks = [
            task for task in playback.tasks if (task.place, task.turn) == (call.place, call.turn)
        ]
        lines.append(line + _ran(tasks) + ".")
    if program.repetitions > _SHOWN_TURNS:
        lines.append(f"And so on, {program.repetitions:,} repetitions.")
    subject = "All that can finish" if playback.is_stuck else "All"
    lines.append(f"{subject} is done at {time_words(playback.done_us)}.")
    return (*lines, *(remark.text for remark in playback.remarks))


def reading_words(reading: MethodReading) -> str:
    """Return a reading in words, with the true time."""
    if reading.value_us is None:
        return f"{reading.name}: no reading ({reading.reason})"
    verdict = "right" if reading.is_right else f"wrong: {reading.reason}"
    read, truth = time_words(reading.value_us), time_words(reading.truth_us)
    return f"{reading.name}: {read}, truth {truth} ({verdict})"


def _ran(tasks: list[PlayedTask]) -> str:
    if not tasks:
        return ""
    if any(task.is_stuck for task in tasks):
        return "; never runs"
    if tasks[0].kind == "record":
        return f"; recorded at {time_words(tasks[0].end_us)}"
    if tasks[0].kind == "wait":
        return f"; lets the stream go on at {time_words(tasks[0].end_us)}"
    # A graph has several kernels; the sentence gives the first start and the last end.
    return f"; runs from {time_words(tasks[0].start_us)} to {time_words(tasks[-1].end_us)}"


def time_words(time_us: float) -> str:
    """Return a time of the machine as text with its unit."""
    # Not "0.00 s": the first call begins there, and every learner reads it.
    return format_time(time_us * _MICRO) if time_us else "0"
