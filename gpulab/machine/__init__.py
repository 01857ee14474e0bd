"""A small program for a GPU as data: play it on the simulator, and read it by every method."""

from gpulab.machine._playback import Playback, PlayedCall, PlayedTask, Remark, play
from gpulab.machine._program import (
    BUFFERS,
    MAX_STREAMS,
    OPERATION_KINDS,
    Program,
    ProgramOperation,
)
from gpulab.machine._readings import MethodReading, readings
from gpulab.machine._starts import STARTS, start
from gpulab.machine._words import operation_words, playback_words, reading_words

__all__ = [
    "BUFFERS",
    "MAX_STREAMS",
    "OPERATION_KINDS",
    "STARTS",
    "MethodReading",
    "Playback",
    "PlayedCall",
    "PlayedTask",
    "Program",
    "ProgramOperation",
    "Remark",
    "operation_words",
    "play",
    "playback_words",
    "reading_words",
    "readings",
    "start",
]
