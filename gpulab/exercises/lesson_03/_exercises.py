"""How the GPU times itself, and the constant that a pair of events adds."""

from typing import TYPE_CHECKING

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Choice, Diagnosis, TimerFunction, near, unexplained
from gpulab.exercises.lesson_03._event_floor import EventFloor, floor_readings

if TYPE_CHECKING:
    from gpulab.exercises.answers import FunctionTrial


_HALF = 0.5  # a reading below half of the work cannot hold the work


def _explain_events(idle: "FunctionTrial", busy: "FunctionTrial") -> Diagnosis | None:
    """Say what an event timer, or what was written in its place, did wrong."""
    if idle.n_elapsed == 0:
        return _HOST_CLOCK
    if idle.ratio is not None and idle.ratio < _HALF:
        return _NOTHING_BETWEEN
    if near(idle.ratio, 1) and near(busy.ratio, 1):
        return None
    return unexplained(idle, busy)


_HOST_CLOCK = Diagnosis(
    "host-clock",
    "No pair of events was asked for its distance: your reading is the host's, with the launch "
    "and the wake-up in it. Record an event before and one after the work, and let elapsed_time "
    "tell.",
)
_NOTHING_BETWEEN = Diagnosis(
    "nothing-between",
    "The work does not lie between your two events. Record one before work() and one after it, "
    "on the stream on which the work runs.",
)
_NO_SYNCHRONIZE = Diagnosis(
    "no-synchronize",
    "elapsed_time raised RuntimeError: both events must be completed. The host was there before "
    "the GPU: wait for the second event (end.synchronize()) before you ask.",
)
_NO_TIMING = Diagnosis(
    "no-timing",
    "elapsed_time raised ValueError: an event takes the time only if it was made with "
    "torch.cuda.Event(enable_timing=True). Without, it only orders streams.",
)

EVENT_TIME = Exercise(
    "03.event-time",
    "Write event_seconds(work): the seconds that the work takes on the GPU, read from a pair of "
    "events.",
    TimerFunction(
        name="event_seconds",
        why="The GPU itself took the time, when its stream reached each marker. What was queued "
        "before does not count, and neither does the wake-up of the host.",
        explain=_explain_events,
        errors=(
            ("must be completed", _NO_SYNCHRONIZE),
            ("not ready", _NO_SYNCHRONIZE),
            ("enable_timing", _NO_TIMING),
        ),
    ),
    hints=(
        "start.record(), the work, end.record(): three entries in the same queue.",
        "Wait for end before you ask, and mind the unit of elapsed_time.",
    ),
)

WRONG_STREAM = Exercise(
    "03.wrong-stream",
    "The kernel takes 5 ms. What does the pair of events read?\n\n"
    "    start.record()\n"
    "    with torch.cuda.stream(side):\n"
    "        kernel()\n"
    "    end.record()\n"
    "    torch.cuda.synchronize()\n"
    "    start.elapsed_time(end)",
    Choice(
        right="b",
        why="Both markers went into the default stream, which was idle, so they ran as soon as "
        "they arrived. Where they stand in the text does not matter; the stream does.",
        wrong={
            "a": Diagnosis(
                "brackets-the-text",
                "The events stand round the kernel in the text, but not in its stream. A marker "
                "is reached when everything before it in its own stream is done.",
            ),
            "c": Diagnosis(
                "raises",
                "Nothing checks this: after the wait both events are completed, so a number "
                "comes out. It is only not the kernel's.",
            ),
            "d": Diagnosis(
                "legacy-default",
                "The old rule that the default stream waits for all others holds for blocking "
                "streams. PyTorch's side streams are not: the default stream goes on beside them.",
            ),
        },
    ),
    hints=(
        "Into which stream does start.record() put its marker?",
        "What else is in that stream between the two markers?",
    ),
    choices={
        "a": "About 5 ms.",
        "b": "Some microseconds: the time between two markers on an idle stream.",
        "c": "Nothing: elapsed_time raises, since the events are on another stream.",
        "d": "About 5 ms, because the default stream waits for the side stream.",
    },
)

FLOOR = Exercise(
    "03.floor",
    "Each row is one kernel: its own time by the driver's records (kernel_s), and what a pair of "
    "events round it read (pair_s), recorded on an NVIDIA H200. Which constant does the pair add "
    "to a kernel?",
    EventFloor(),
    hints=(
        "Is it the ratio or the difference of the two columns that stays the same?",
        "One row holds no kernel at all: leave it out.",
    ),
    readings=floor_readings,
)

ONE_SYNC_AT_END = Exercise(
    "03.one-sync-at-end",
    "The same kernel of 1.2 µs, timed by events in two loops on an H200. A synchronize in every "
    "iteration: the pairs read 14.9 µs. All events kept in lists and one synchronize at the end: "
    "4.3 µs. Why does the first loop read more?",
    Choice(
        right="b",
        why="After a wait the queue is empty: the GPU reaches the first marker at once and then "
        "waits for the host to launch the kernel. With a full queue the kernel is already there.",
        wrong={
            "a": Diagnosis(
                "sync-on-gpu",
                "The wait comes after the second event and keeps the host, not the GPU: it is in "
                "no pair. What does it leave behind for the next iteration?",
            ),
            "c": Diagnosis(
                "clocks",
                "Ten microseconds of rest do not change the clock, and the kernel itself takes "
                "1.2 µs in both loops.",
            ),
            "d": Diagnosis(
                "elapsed-waits",
                "elapsed_time only subtracts two times that the GPU has noted; it adds nothing "
                "to them, and it does not wait: it raises if it is asked too early.",
            ),
        },
    ),
    hints=(
        "How many launches are in the queue when the first event of an iteration is recorded?",
        "Draw both loops: host above, GPU below.",
    ),
    choices={
        "a": "The synchronize itself runs on the GPU, between the two events.",
        "b": "It empties the queue, so the host's launch falls between the two events.",
        "c": "The GPU rests between iterations, and its clock goes down.",
        "d": "elapsed_time waits inside the loop, and its wait is counted.",
    },
)

EXERCISES = (EVENT_TIME, WRONG_STREAM, FLOOR, ONE_SYNC_AT_END)
