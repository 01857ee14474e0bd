"""Exercises of lesson 03: time with events, and what a pair of events adds to a kernel."""

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import (
    BenchmarkJudge,
    Choice,
    Diagnosis,
    TimerFunction,
    TimerReading,
)
from gpulab.exercises.lesson_03._event_floor import EVENT_FLOOR, floor_readings

_HALF = 0.5  # a reading below half of the work cannot contain the work


_HOST_CLOCK = Diagnosis(
    "host-clock",
    "Your function never called elapsed_time. So its reading is the host's, and contains the "
    "launch and the wake-up. Record one event before the work and one after it, and ask "
    "elapsed_time.",
)


def _too_short(readings: tuple[TimerReading, TimerReading]) -> Diagnosis:
    return Diagnosis(
        "nothing-between",
        f"Your reading is {readings[0].ratio:.1g} times what the work takes. Is the work between "
        "your two events, in the stream in which it runs? And elapsed_time returns milliseconds: "
        "divide by 1,000, and only once.",
    )


_NO_SYNCHRONIZE = Diagnosis(
    "no-synchronize",
    "elapsed_time raised RuntimeError: both events must be completed. The host asked before the "
    "GPU had reached the second event. Call end.synchronize() first.",
)
_NO_TIMING = Diagnosis(
    "no-timing",
    "elapsed_time raised ValueError: an event has a time only if you made it with "
    "torch.cuda.Event(enable_timing=True). Otherwise it only orders streams.",
)

EVENT_TIME = Exercise(
    "03.event-time",
    "Write event_seconds(work). It returns the seconds that the work takes on the GPU, read from "
    "a pair of events.",
    TimerFunction(
        name="event_seconds",
        why="The GPU wrote down the time when it reached each event. Earlier work in the queue "
        "does not count, and neither does the wake-up of the host.",
        mistakes=(
            (lambda readings: not readings[0].trial.asked["Event.elapsed_time"], _HOST_CLOCK),
            (lambda readings: readings[0].ratio < _HALF, _too_short),
        ),
        errors=(
            ("must be completed", _NO_SYNCHRONIZE),
            ("enable_timing", _NO_TIMING),
        ),
    ),
    hints=(
        "start.record(), the work, end.record(): three entries in the same queue.",
        "Wait for end before you call elapsed_time. In which unit is its result?",
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
        why="Both events are in the default stream. It was idle, so the GPU reached them as soon "
        "as they arrived. Only the stream matters, not the place in the text.",
        wrong={
            "a": Diagnosis(
                "brackets-the-text",
                "The events are around the kernel in the text, but not in its stream. The GPU "
                "reaches an event when everything before it in the event's own stream is done.",
            ),
            "c": Diagnosis(
                "raises",
                "Nothing checks this. After the wait the GPU has reached both events, so you get "
                "a number. It is not the time of the kernel.",
            ),
            "d": Diagnosis(
                "legacy-default",
                "The default stream waits for other streams only if they are blocking streams. "
                "PyTorch's side streams are not blocking, so the default stream goes on.",
            ),
        },
    ),
    hints=(
        "Into which stream does start.record() put its event?",
        "What else is in that stream between the two events?",
    ),
    choices={
        "a": "About 5 ms.",
        "b": "Some microseconds: the time between two events in an idle stream.",
        "c": "Nothing: elapsed_time raises an error, because the events are in another stream.",
        "d": "About 5 ms, because the default stream waits for the side stream.",
    },
)

FLOOR = Exercise(
    "03.floor",
    "Each row is one kernel: its own time by the driver's records (kernel_s), and the reading of "
    "a pair of events around it (pair_s). Recorded on an NVIDIA H200. By how much does a pair "
    "typically read more than the kernel?",
    EVENT_FLOOR,
    hints=(
        "What hardly changes from row to row: the ratio of the columns, or their difference?",
        "One row has no kernel at all. Leave it out, and take the median of the others.",
    ),
    readings=floor_readings,
)

ONE_SYNC_AT_END = Exercise(
    "03.one-sync-at-end",
    "Recorded on an H200: the same kernel of 1.2 µs between two events, in two loops. The loop "
    '"idle GPU" waits in each round, as your first cell did: its pairs read 14.8 µs. In the loop '
    '"busy GPU" the queue never is empty, because it waits only once, at the end: its pairs read '
    "4.3 µs. Why does the idle GPU read more?",
    Choice(
        right="b",
        why="After a wait the queue is empty. The GPU reaches the first event at once, and then "
        "it waits until the host has launched the kernel. A busy GPU finds the kernel in its "
        "queue.",
        wrong={
            "a": Diagnosis(
                "sync-on-gpu",
                "The wait comes after the second event, and it blocks the host, not the GPU. So "
                "it is in no pair. In which state is the queue when the next iteration starts?",
            ),
            "c": Diagnosis(
                "clocks",
                "A pause of microseconds does not change the clock. The kernel itself takes the "
                "same time in both loops.",
            ),
            "d": Diagnosis(
                "elapsed-waits",
                "elapsed_time only subtracts two times that the GPU has written down. It does not "
                "wait: it raises an error if you call it too early.",
            ),
        },
    ),
    hints=(
        "How many launches are in the queue when the first event of an iteration is recorded?",
        "Draw both loops: host above, GPU below.",
    ),
    choices={
        "a": "The synchronize itself runs on the GPU, between the two events.",
        "b": "The wait empties the queue, so the host's launch falls between the two events.",
        "c": "The GPU rests between rounds, and its clock goes down.",
        "d": "elapsed_time waits inside the loop, and its wait is counted.",
    },
)

BENCHMARK = Exercise(
    "03.benchmark",
    "Your benchmark(fn) from lesson 02 reads the host's clock, so launch and wake-up are in its "
    "number. Let the GPU time the calls: a pair of events around each call, and one wait at the "
    "end. Return the median in seconds.",
    BenchmarkJudge("events"),
    hints=(
        "Make two lists of events before the loop: one for the starts and one for the ends.",
        "The loop only records and calls. After it, wait once and then ask each pair.",
    ),
)

EXERCISES = (EVENT_TIME, WRONG_STREAM, FLOOR, ONE_SYNC_AT_END, BENCHMARK)
