"""Playing a program gives exact times, and remarks about mistakes."""

from dataclasses import replace

import pytest

from gpulab.views.machine._playback import Playback, play
from gpulab.views.machine._program import MachineProgram, ProgramOperation
from gpulab.views.machine._readings import readings
from gpulab.views.machine._starts import start
from gpulab.views.machine._words import playback_words, time_words

O = ProgramOperation  # noqa: E741 # short, because every line of a program needs it


def spans(playback: Playback, kind: str) -> list[tuple[int, float, float]]:
    """Return stream, start and end of the tasks of this kind."""
    found = playback.tasks_of(kind)
    return [(task.stream, round(task.start_us, 3), round(task.end_us, 3)) for task in found]


def texts(program: MachineProgram, kind: str) -> list[str]:
    """Return the texts of the remarks of this kind."""
    return [remark.text for remark in play(program).remarks if remark.kind == kind]


def test_the_stopwatch_reads_the_launch() -> None:
    """The stopwatch reads the call of 5 µs, and the kernel starts 2.8 µs after it."""
    playback = play(start("stopwatch"))
    assert spans(playback, "kernel") == [(0, 7.85, 207.85)]
    assert playback.stopwatch_us == pytest.approx(5.05)
    assert playback.events_us is None


def test_pinned_copies_run_beside_a_kernel_and_pageable_ones_stop_the_host() -> None:
    """A pageable copy blocks the host, and a pinned one overlaps with a kernel."""
    pinned = MachineProgram((O("copy in", stream=1, buffer="y"), O("kernel")), n_streams=2)
    copy, kernel = play(pinned).tasks
    assert kernel.start_us < copy.end_us
    pageable = MachineProgram(
        (O("copy in", stream=1, buffer="y", is_pinned=False), O("kernel")), n_streams=2
    )
    playback = play(pageable)
    copy, kernel = playback.tasks
    assert kernel.start_us > copy.end_us
    assert playback.calls[0].waited_us > 20


def test_a_full_queue_makes_the_host_wait() -> None:
    """Launches beyond the queue's depth wait for room and are marked."""
    program = MachineProgram((O("kernel"),), queue_depth=4, repetitions=20)
    rooms = [call.is_queue_full for call in play(program).calls]
    assert rooms.index(True) == 4
    assert all(rooms[4:])


def test_a_graph_runs_its_kernels_with_shorter_gaps() -> None:
    """A graph's kernels come from one call and are 0.1 µs apart."""
    playback = play(MachineProgram((O("graph", n_kernels=3, duration_us=2.0),)))
    (first, second, third) = spans(playback, "kernel")
    assert second[1] - first[2] == pytest.approx(0.1)
    assert third[1] - second[2] == pytest.approx(0.1)
    assert len(playback.calls) == 1


def test_a_program_without_work_has_a_remark() -> None:
    """A program without work has no readings, and a remark about it."""
    program = MachineProgram((O("clock"), O("synchronize"), O("clock")))
    assert texts(program, "empty") == [
        "There is no kernel, copy or graph: nothing to time. Drop one in."
    ]
    assert readings(program) == ()
    assert play(MachineProgram()).end_us == 0


def test_an_idle_stream_has_a_remark() -> None:
    """A stream without work is named in a remark."""
    assert texts(MachineProgram((O("kernel"),), n_streams=2), "stream") == [
        "Stream 1 has no work."
    ]


@pytest.mark.parametrize(
    ("operations", "when"),
    [
        ((O("wait", event="a"), O("kernel")), "never"),
        ((O("wait", stream=1, event="a"), O("kernel"), O("record", event="a")), "only later"),
    ],
)
def test_a_wait_without_a_record_passes(operations: tuple[O, ...], when: str) -> None:
    """A wait for an unrecorded event passes, as in CUDA, with a remark about the cure."""
    program = MachineProgram(operations, n_streams=2)
    assert texts(program, "wait") == [
        (
            f"Operation 1 waits for event a, which is {when} recorded. CUDA lets the wait pass. "
            "Record the event before the wait."
        )
    ]
    assert len(play(program).tasks_of("kernel")) == 1
    assert not play(program).is_stuck


CIRCLE = MachineProgram(
    (
        O("wait", event="a"),
        O("record", event="b"),
        O("wait", stream=1, event="b"),
        O("record", stream=1, event="a"),
        O("kernel", stream=1),
        O("synchronize"),
    ),
    n_streams=2,
)


def test_a_circle_of_waits_is_shown_as_a_deadlock() -> None:
    """Circular waits are reported as a deadlock, and none of their work runs."""
    playback = play(CIRCLE)
    assert texts(CIRCLE, "deadlock") == [
        (
            "Deadlock: operation 1 (wait for event a) and 3 (wait for event b) can never end, "
            "because each needs what comes after another one. Take one wait away, or record its "
            "event earlier. (CUDA itself lets operation 1 pass, because its event is not recorded "
            "yet: no deadlock, but no order either.)"
        )
    ]
    assert all(task.is_stuck for task in playback.tasks)
    assert playback.calls[-1].is_stuck
    assert readings(CIRCLE) == ()
    assert "5. kernel on x on stream 1, 20.0 µs: called at 3.76 µs; never runs." in (
        playback_words(playback)
    )


def test_a_deadlock_is_drawn_after_what_can_finish() -> None:
    """Tasks that never run share the end of the picture, and the words say when the rest ended."""
    program = replace(CIRCLE, operations=(O("kernel", duration_us=100.0), *CIRCLE.operations))
    playback = play(program)
    kernel = playback.tasks[0]
    drawn = [(each.start_us, each.end_us) for each in playback.tasks if each.stream == 0]
    assert [round(start - kernel.start_us) for start, _ in drawn] == [0, 100, 127]
    assert [end for _, end in drawn] == [kernel.end_us, drawn[2][0], playback.end_us]
    assert f"All that can finish is done at {time_words(kernel.end_us)}." in (
        playback_words(playback)
    )
    assert texts(program, "wait") == []  # the remark about the deadlock says it


def test_a_host_that_waits_for_its_own_later_record_is_a_deadlock() -> None:
    """A synchronize drawn before the record it depends on is a deadlock."""
    program = MachineProgram(
        (O("wait", stream=1, event="a"), O("synchronize"), O("record", event="a"), O("kernel")),
        n_streams=2,
        repetitions=3,
    )
    assert play(program).is_stuck


def test_a_race_names_both_operations_and_one_wait_mends_it() -> None:
    """A race names both operations, and one event with a wait removes it."""
    first, second = O("kernel"), O("kernel", stream=1)
    assert texts(MachineProgram((first, second), n_streams=2), "race") == [
        (
            "Race: operation 1 (kernel on x) and operation 2 (kernel on x) use buffer x and "
            "nothing orders them. Record an event after operation 1 and let stream 1 wait for it."
        )
    ]
    mended = MachineProgram(
        (first, O("record", event="a"), O("wait", stream=1, event="a"), second), n_streams=2
    )
    assert texts(mended, "race") == []
    assert spans(play(mended), "wait") == [(1, 29.15, 29.15)]


@pytest.mark.parametrize(("is_pinned", "races"), [(True, ["race"]), (False, [])])
def test_a_copy_for_which_the_host_waits_races_with_nothing_after_it(
    *, is_pinned: bool, races: list[str]
) -> None:
    """What the host calls after it, on any stream, runs after it."""
    copy = O("copy out", stream=1, duration_us=300.0, is_pinned=is_pinned)
    program = MachineProgram((copy, O("kernel")), n_streams=2)
    assert [remark.kind for remark in play(program).remarks] == races


def test_words_say_what_the_picture_shows() -> None:
    """The text has one line per call: where it ran and what the host waited for."""
    words = playback_words(play(start("synchronize")))
    assert words[2:] == (
        "3. kernel on x on stream 0, 40.0 µs: called at 4.05 µs; runs from 11.8 µs to 51.9 µs.",
        "4. synchronize on the host: called at 9.05 µs, waits 42.0 µs for the GPU.",
        "5. read the clock on the host: called at 55.0 µs.",
        "All is done at 55.1 µs.",
    )
