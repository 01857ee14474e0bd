"""No challenge is solved at its start, each has a solution, and attempts count."""

from dataclasses import replace

import pytest

from gpulab.core.errors import UnknownNameError
from gpulab.views.machine._challenges import CHALLENGES, Attempt, attempt, challenge
from gpulab.views.machine._playback import play
from gpulab.views.machine._program import MachineProgram, ProgramOperation
from gpulab.views.machine._starts import start

O = ProgramOperation  # noqa: E741 # short, because every line of a program needs it
KERNEL = O("kernel", duration_us=40.0)
RACING = MachineProgram((KERNEL, replace(KERNEL, stream=1)), n_streams=2)
MENDED = MachineProgram(
    (KERNEL, O("record", event="a"), O("wait", stream=1, event="a"), replace(KERNEL, stream=1)),
    n_streams=2,
)
STOPWATCH = start("stopwatch")
EVENTS = start("events")
HIDDEN = MachineProgram(
    (
        O("kernel", duration_us=100.0),
        O("copy in", stream=1, duration_us=60.0, buffer="y"),
    ),
    n_streams=2,
)


def judged(name: str, program: MachineProgram, *before: MachineProgram) -> str:
    """Return what the check says is missing, after some earlier attempts."""
    attempts = [Attempt(name, each, "?") for each in before]
    return attempt(name, play(program), attempts).said


@pytest.mark.parametrize("name", CHALLENGES)
def test_no_challenge_is_solved_at_its_start(name: str) -> None:
    """The first program of a challenge does not pass its check."""
    assert judged(name, challenge(name).program)


@pytest.mark.parametrize(
    ("name", "program", "before"),
    [
        ("right stopwatch", STOPWATCH.inserted(2, O("synchronize")), ()),
        ("three times", EVENTS.replaced(1, O("kernel", duration_us=3.0)), ()),
        ("hidden copy", HIDDEN, ()),
        ("full queue", replace(start("queue"), repetitions=30), ()),
        ("race", MENDED, (RACING,)),
    ],
)
def test_each_challenge_has_a_solution(
    name: str, program: MachineProgram, before: tuple[MachineProgram, ...]
) -> None:
    """A correct program passes the check."""
    assert not judged(name, program, *before)


@pytest.mark.parametrize(
    ("name", "program", "before", "said"),
    [
        (
            "right stopwatch",
            STOPWATCH.replaced(1, O("kernel", duration_us=30.0)).inserted(2, O("synchronize")),
            (),
            "The stopwatch reads 41.0 µs and the work takes 30.0 µs.",
        ),
        ("right stopwatch", STOPWATCH.removed(1), (), "There is no work to time."),
        (
            "right stopwatch",
            STOPWATCH.removed(0),
            (),
            "The stopwatch needs two readings of the clock.",
        ),
        (
            "three times",
            EVENTS.removed(2),
            (),
            "You need two events that nothing waits for, around the kernel.",
        ),
        ("three times", EVENTS, (), "The events read 1.3 times the kernel."),
        ("three times", EVENTS.removed(1), (), "There is no work to time."),
        ("hidden copy", HIDDEN.removed(0), (), "You need a copy and a kernel."),
        (
            "hidden copy",
            HIDDEN.replaced(1, replace(HIDDEN.operations[1], buffer="x")),
            (),
            "There is a race.",
        ),
        (
            "hidden copy",
            HIDDEN.replaced(0, KERNEL),
            (),
            "Copies run for 24.2 µs while no kernel runs.",
        ),
        ("full queue", start("queue"), (), "No launch has to wait; the queue has room for 16."),
        ("race", RACING, (), "They race. Now mend it with one wait."),
        (
            "race",
            MENDED,
            (),
            "No race yet: let both kernels write one buffer, with nothing between them.",
        ),
        (
            "race",
            start("two kernels"),
            (RACING,),
            "The kernels share a stream; keep them on two.",
        ),
        (
            "race",
            RACING.inserted(1, O("synchronize")),
            (RACING,),
            "Mend it with one wait for an event, and nothing else.",
        ),
        ("race", MENDED.removed(0), (RACING,), "You need two kernels."),
    ],
)
def test_what_is_missing_is_said(
    name: str, program: MachineProgram, before: tuple[MachineProgram, ...], said: str
) -> None:
    """Each way to fail has its own sentence."""
    assert judged(name, program, *before) == said


def test_unknown_names_are_refused() -> None:
    """The error for an unknown name suggests the nearest."""
    with pytest.raises(UnknownNameError, match=r"^unknown challenge 'rase'; did you mean 'race'"):
        challenge("rase")
    with pytest.raises(
        UnknownNameError, match=r"^unknown program to begin with 'stream'; did you"
    ):
        start("stream")
