"""How the GPU times itself, and the constant that a pair of events adds."""

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from gpulab.errors import InvalidOptionError
from gpulab.exercises._exercise import Exercise, Verdict, is_open
from gpulab.exercises.answers import (
    Choice,
    Diagnosis,
    Timer,
    malformed,
    near,
    read_number,
    times,
    unanswered,
)

if TYPE_CHECKING:
    import pandas as pd

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
    return Diagnosis(
        "unexplained",
        f"On an idle GPU your reading is {times(idle)}; behind a backlog it is {times(busy)}. "
        "Both should be close to 1.",
    )


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
    Timer(
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

# One NVIDIA H200, 2026-11-20: a kernel's own record (median, s) and a pair of events round it.
_FLOOR_ROWS = (
    ("no kernel: an empty pair", 0.0, 1.280e-6),
    ("add, 2^10 elements", 1.184e-6, 4.256e-6),
    ("matmul, n = 128, float16", 2.448e-6, 5.440e-6),
    ("add, 2^20 elements", 4.929e-6, 7.936e-6),
    ("layer_norm, 8192 x 4096, float16", 50.272e-6, 53.408e-6),
    ("exp, 2^26 elements", 127.551e-6, 130.640e-6),
    ("add, 2^26 elements", 185.889e-6, 188.960e-6),
)


def _floor_readings() -> "pd.DataFrame":
    import pandas as pd

    frame = pd.DataFrame(_FLOOR_ROWS, columns=["work", "kernel_s", "pair_s"])
    return frame.assign(source="recorded", device_name="NVIDIA H200")


@dataclass(frozen=True, slots=True)
class FloorJudge:
    """Judges the constant by which a pair of events reads more than the kernel in it."""

    how: str = (
        'Answer in seconds, or as text with a unit, for example "12.5 µs". Pass your own frame '
        "with kernel_s and pair_s as readings=, if you took one."
    )
    tolerance: float = 0.2

    def __call__(self, answer: object, readings: object = None) -> Verdict:
        """Judge a duration."""
        if is_open(answer):
            return unanswered(self.how)
        number_s = read_number(answer)
        if number_s is None:
            return malformed(answer, self.how)
        empty_s, pairs_s, floor_s = _floor_of(readings)
        if self._near(number_s, floor_s):
            return Verdict(ok=True, message=_SUBTRACT)
        found = self._recognise(number_s, floor_s, empty_s, pairs_s)
        return (found or (_SMALL if number_s < floor_s else _LARGE)).verdict()

    def _near(self, number_s: float, expected_s: float) -> bool:
        return abs(number_s - expected_s) <= self.tolerance * abs(expected_s)

    def _recognise(
        self, number_s: float, floor_s: float, empty_s: list[float], pairs_s: list[float]
    ) -> Diagnosis | None:
        if any(self._near(number_s * scale, floor_s) for scale in (1e-6, 1e-3)):
            return _UNITS
        if any(self._near(number_s, value_s) for value_s in empty_s):
            return _EMPTY
        if any(abs(number_s - value_s) <= 0.01 * value_s for value_s in pairs_s):
            return _READING
        return _RATIO if number_s > 1 else None


def _floor_of(readings: Any) -> tuple[list[float], list[float], float]:  # noqa: ANN401  # a frame, if it is one
    """Split readings into empty pairs and pairs round a kernel, and find the constant."""
    rows: list[tuple[str, float, float]] = list(_FLOOR_ROWS)
    if readings is not None:
        columns = {"kernel_s", "pair_s"} - set(getattr(readings, "columns", ()))
        if columns or not (readings["kernel_s"] > 0).any():
            raise InvalidOptionError(
                "readings must be a frame with kernel_s and pair_s, and a kernel in some row"
            )
        rows = [("", *pair) for pair in readings[["kernel_s", "pair_s"]].to_numpy().tolist()]
    empty_s = [pair_s for _, kernel_s, pair_s in rows if kernel_s == 0]
    kernels = [(kernel_s, pair_s) for _, kernel_s, pair_s in rows if kernel_s > 0]
    floor_s = median(pair_s - kernel_s for kernel_s, pair_s in kernels)
    return empty_s, [pair_s for _, pair_s in kernels], floor_s


_SUBTRACT = (
    "The difference is the same for every kernel, from 1 µs to 200 µs: a constant of the method, "
    "not of the kernel. Taken off, it leaves the kernel's own time: calibrated events."
)
_EMPTY = Diagnosis(
    "empty-pair",
    "You took the empty pair. With a kernel between them the events have more to wait for: its "
    "start and its end. Compare pairs that hold a kernel with that kernel's own time.",
)
_UNITS = Diagnosis(
    "forgot-units",
    "The digits are right, the unit is not: a plain number is read as seconds. Write 3.1e-6 for "
    '3.1 µs, or the text "3.1 µs".',
)
_READING = Diagnosis(
    "reading-not-floor",
    "That is one pair's whole reading: kernel and constant together. Take the kernel's own time "
    "off.",
)
_RATIO = Diagnosis(
    "ratio",
    "That looks like a ratio, or a very long time. Divided, the readings give another number for "
    "every kernel; subtracted, they give one.",
)
_SMALL = Diagnosis("too-small", "Too small: subtract kernel_s from pair_s, row by row.")
_LARGE = Diagnosis("too-large", "Too large: subtract kernel_s from pair_s, row by row.")

FLOOR = Exercise(
    "03.floor",
    "Each row is one kernel: its own time by the driver's records (kernel_s), and what a pair of "
    "events round it read (pair_s), recorded on an NVIDIA H200. Which constant does the pair add "
    "to a kernel?",
    FloorJudge(),
    hints=(
        "Is it the ratio or the difference of the two columns that stays the same?",
        "One row holds no kernel at all: leave it out.",
    ),
    readings=_floor_readings,
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
