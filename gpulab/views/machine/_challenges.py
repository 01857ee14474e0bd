"""Challenges on the machine: a program to begin with, a goal, and a check of each attempt."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from gpulab.core.requirements import NameOf
from gpulab.views.machine._playback import Playback, PlayedTask, play
from gpulab.views.machine._program import COPY_KINDS, MachineProgram
from gpulab.views.machine._readings import TOLERANCE, truth_us
from gpulab.views.machine._starts import start
from gpulab.views.machine._words import time_words

_THREE, _NEAR_THREE = 3.0, 0.15  # three times, to within 5 percent
_TWO = 2  # kernels and streams of the race


@lru_cache(maxsize=256)  # each change of a program judges all programs tried before again
def _races(program: MachineProgram) -> bool:
    return play(program).has("race")


@dataclass(frozen=True, slots=True)
class Challenge:
    """A goal to reach by changing a program on the machine.

    ``missing`` returns a sentence about what a run lacks, after the programs tried before, or ""
    once the goal is reached.
    """

    name: str
    goal: str
    start: str
    missing: Callable[[Playback, Sequence[MachineProgram]], str]

    @property
    def program(self) -> MachineProgram:
        """The program to begin with."""
        return start(self.start)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A program that a learner tried for a challenge, and what was said to be missing, if any."""

    challenge: str
    program: MachineProgram
    said: str


def _stopwatch(playback: Playback, _before: object) -> str:
    read_us = playback.stopwatch_us
    if not playback.program.work:
        return "There is no work to time."
    if read_us is None:
        return "The stopwatch needs two readings of the clock."
    true_us = truth_us(playback.program)
    # The same tolerance by which the readings of the methods are called right or wrong.
    if abs(read_us - true_us) > TOLERANCE * true_us:
        read, true = time_words(read_us), time_words(true_us)
        return f"The stopwatch reads {read} and the work takes {true}."
    return ""


def _three_times(playback: Playback, _before: object) -> str:
    read_us = playback.events_us
    if not playback.program.work:
        return "There is no work to time."
    if read_us is None:
        return "You need two events that nothing waits for, around the kernel."
    # The events may be too far apart in any way: late launches, more kernels, other streams.
    factor = read_us / truth_us(playback.program)
    if abs(factor - _THREE) > _NEAR_THREE:
        return f"The events read {factor:.2g} times the kernel."
    return ""


def _hidden_copy(playback: Playback, _before: object) -> str:
    copies = playback.tasks_of(*COPY_KINDS)
    kernels = playback.tasks_of("kernel")
    if not copies or not kernels:
        return "You need a copy and a kernel."
    if playback.has("race"):
        return "There is a race."
    bare_us = sum(_bare_us(copy, kernels) for copy in copies)
    if bare_us > 0:
        return f"Copies run for {time_words(bare_us)} while no kernel runs."
    return ""


def _full_queue(playback: Playback, _before: object) -> str:
    if any(call.is_queue_full for call in playback.calls):
        return ""
    return f"No launch has to wait; the queue has room for {playback.program.queue_depth}."


def _mended_race(playback: Playback, before: Sequence[MachineProgram]) -> str:
    operations = playback.program.operations
    streams = {each.stream for each in operations if each.kind == "kernel"}
    kinds = [each.kind for each in operations]
    if kinds.count("kernel") < _TWO:
        return "You need two kernels."
    if playback.has("race"):
        return "They race. Now mend it with one wait."
    # The goal has two parts: a program without a race counts only if an earlier one had a race.
    if not any(map(_races, before)):
        return "No race yet: let both kernels write one buffer, with nothing between them."
    if len(streams) < _TWO:
        return "The kernels share a stream; keep them on two."
    # A remark about the wait means that its event is recorded too late, so that it orders nothing.
    is_late = playback.has("wait") or playback.is_stuck
    if kinds.count("wait") != 1 or "synchronize" in kinds or is_late:
        return "Mend it with one wait for an event, and nothing else."
    return ""


def _bare_us(copy: PlayedTask, kernels: Sequence[PlayedTask]) -> float:
    """Return for how many microseconds a copy runs while no kernel runs."""
    # One sweep over the kernels in order of start: from_us is the end of the time looked at.
    bare_us, from_us = 0.0, copy.start_us
    for kernel in sorted(kernels, key=lambda task: task.start_us):
        bare_us += max(0.0, min(kernel.start_us, copy.end_us) - from_us)
        from_us = max(from_us, kernel.end_us)
    return bare_us + max(0.0, copy.end_us - from_us)


CHALLENGES: Mapping[str, Challenge] = MappingProxyType(
    {
        challenge.name: challenge
        for challenge in (
            Challenge(
                "right stopwatch",
                "Make the stopwatch right: to within 10 percent of the time on the GPU.",
                "stopwatch",
                _stopwatch,
            ),
            Challenge(
                "three times",
                "Make the events read three times the kernel.",
                "events",
                _three_times,
            ),
            Challenge(
                "hidden copy",
                "Hide the copy entirely: it runs only while a kernel runs.",
                "copy and kernel",
                _hidden_copy,
            ),
            Challenge(
                "full queue",
                "Fill the launch queue, until a launch has to wait.",
                "queue",
                _full_queue,
            ),
            Challenge(
                "race",
                "Let two kernels race, then mend it with one wait.",
                "two kernels",
                _mended_race,
            ),
        )
    }
)
_CHALLENGE = NameOf("challenge", CHALLENGES)


def challenge(name: str) -> Challenge:
    """Return the challenge of this name."""
    _CHALLENGE.check(challenge=name)
    return CHALLENGES[name]


def attempt(name: str, playback: Playback, before: Sequence[Attempt]) -> Attempt:
    """Return a run of a program as a judged attempt at a challenge, after the earlier attempts."""
    programs = [each.program for each in before if each.challenge == name]
    hint = challenge(name).missing(playback, programs)
    return Attempt(name, playback.program, hint)
