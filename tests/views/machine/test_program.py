"""Programs of the machine as records: what they refuse, and how they are changed."""

from dataclasses import replace

import pytest

from gpulab.core.errors import InvalidOptionError, UnknownNameError
from gpulab.views.machine._program import MachineProgram, ProgramOperation
from gpulab.views.machine._starts import start

KERNEL = ProgramOperation("kernel")
CLOCK = ProgramOperation("clock")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"duration_us": 0.0},
            "duration_us=0.0; it must be a number from 0.5 to 10,000 (microseconds)",
        ),
        ({"duration_us": -3}, "duration_us=-3; it must be a number from 0.5 to 10,000"),
        ({"duration_us": float("nan")}, "duration_us=nan; it must be a number from 0.5"),
        ({"stream": 4}, "stream=4; it must be a whole number from 0 to 3"),
        ({"kind": "kernle"}, "unknown operation 'kernle'; did you mean 'kernel'?"),
        ({"buffer": "q"}, "unknown buffer 'q'; Known: x, y, z"),
        ({"event": "a b"}, "event='a b'; it must be a Python name of at most 12 characters"),
        ({"n_kernels": 0}, "n_kernels=0; it must be a whole number from 1 to 50"),
        ({"is_pinned": 1}, "is_pinned=1; it must be True or False"),
    ],
)
def test_an_operation_is_refused(changed: dict[str, object], message: str) -> None:
    """Each field of an operation is checked, and the error gives its limits."""
    with pytest.raises((InvalidOptionError, UnknownNameError)) as error:
        replace(KERNEL, **changed)  # type: ignore[arg-type]  # wrong on purpose
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"operations": (KERNEL,) * 10_000},
            (
                "a program of 10,000 operations; the machine takes at most 100, because the "
                "picture shows no more; use repetitions for a loop"
            ),
        ),
        (
            {"operations": (KERNEL,) * 2, "repetitions": 1_000},
            (
                "repetitions=1000 make 2,000 launches; the machine takes at most 1,500; repeat "
                "less, or remove operations"
            ),
        ),
        (
            {"operations": (KERNEL, replace(KERNEL, stream=2))},
            (
                "operation 2 is on stream 2 and the program has n_streams=1; raise n_streams, or "
                "choose another stream"
            ),
        ),
        ({"n_streams": 5}, "n_streams=5; it must be a whole number from 1 to 4"),
        ({"launch_us": 0.0}, "launch_us=0.0; it must be a number from 1 to 50 (microseconds)"),
        ({"queue_depth": 2}, "queue_depth=2; it must be a whole number from 4 to 1,022"),
        ({"repetitions": 0}, "repetitions=0; it must be a whole number from 1 to 1,000"),
    ],
)
def test_a_program_is_refused(fields: dict[str, object], message: str) -> None:
    """A program beyond a limit is refused with the number and the cure."""
    with pytest.raises(InvalidOptionError) as error:
        MachineProgram(**fields)  # type: ignore[arg-type]  # wrong on purpose
    assert str(error.value) == message


def test_what_is_repeated_and_what_is_timed() -> None:
    """All from the first work to the last is repeated; clocks and lone events are not timed."""
    program = MachineProgram(
        (
            CLOCK,
            KERNEL,
            ProgramOperation("record", event="a"),
            ProgramOperation("record", event="timing"),
            ProgramOperation("sleep"),
            ProgramOperation("wait", stream=1, event="a"),
            CLOCK,
        ),
        n_streams=2,
        repetitions=2,
    )
    assert list(program.body) == [1, 2, 3, 4, 5]
    assert program.work == (1, 2, 5)
    assert program.calls[:3] == ((0, 0), (1, 0), (2, 0))
    assert program.calls[6:] == ((1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 0))
    assert program.n_launches == 10
    fork = (program.operations[2], program.operations[5], replace(KERNEL, stream=1))
    assert list(MachineProgram(fork, n_streams=2).body) == [0, 1, 2]


def test_changes_leave_the_first_program_alone() -> None:
    """Replacing, inserting, moving and removing return a new program."""
    program = start("stopwatch")
    longer = replace(program.operations[1], duration_us=300.0, stream=1)
    changed = program.replaced(1, longer)
    assert (changed.n_streams, changed.operations[1]) == (2, longer)
    assert program == start("stopwatch")
    assert [each.kind for each in program.moved(1, 9).operations] == ["clock", "clock", "kernel"]
    assert [each.kind for each in program.moved(1, -1).operations] == ["kernel", "clock", "clock"]
    assert [each.kind for each in program.removed(0).operations] == ["kernel", "clock"]
    assert program.inserted(0, KERNEL).operations[0] == KERNEL
    assert program.free_event() == "a"
    assert program.inserted(0, ProgramOperation("record", event="a")).free_event() == "b"
    assert MachineProgram((KERNEL,)).removed(0).n_streams == 1
    with pytest.raises(UnknownNameError, match=r"^unknown operation 7; Known: 0, 1, 2$"):
        program.removed(7)


def test_pageable_memory_takes_longer_for_the_same_bytes() -> None:
    """Switching between pinned and pageable changes the time but not the bytes."""
    pinned = ProgramOperation("copy in", duration_us=60.0)
    pageable = pinned.with_pinned(is_pinned=False, spec=MachineProgram().spec)
    assert pageable.duration_us > 2 * pinned.duration_us
    assert pageable.with_pinned(is_pinned=True, spec=MachineProgram().spec) == pinned
