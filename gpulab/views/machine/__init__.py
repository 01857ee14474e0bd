"""A small program for a GPU as data: play it on the simulator, and time it by every method."""

from gpulab.views.machine._challenges import (
    CHALLENGES,
    Attempt,
    attempt,
    challenge,
)
from gpulab.views.machine._code import code
from gpulab.views.machine._playback import Playback, PlayedTask, play
from gpulab.views.machine._program import (
    BUFFERS,
    LONGEST_US,
    MAX_STREAMS,
    SHORTEST_US,
    MachineProgram,
    ProgramOperation,
)
from gpulab.views.machine._readings import READING_NAMES, MethodReading, own_readings, readings
from gpulab.views.machine._runner import PlayedCall
from gpulab.views.machine._starts import STARTS, methods_of, start
from gpulab.views.machine._words import operation_words, playback_words, reading_words, time_words

__all__ = [
    "BUFFERS",
    "CHALLENGES",
    "LONGEST_US",
    "MAX_STREAMS",
    "READING_NAMES",
    "SHORTEST_US",
    "STARTS",
    "Attempt",
    "MachineProgram",
    "MethodReading",
    "Playback",
    "PlayedCall",
    "PlayedTask",
    "ProgramOperation",
    "attempt",
    "challenge",
    "code",
    "methods_of",
    "operation_words",
    "own_readings",
    "play",
    "playback_words",
    "reading_words",
    "readings",
    "start",
    "time_words",
]
