"""Read a profile: exercises on columns, four programs, an overlap, and a schedule."""

import pandas as pd

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Choice, Diagnosis, Letters, Quantities, Table
from gpulab.exercises.lesson_11._monitors import SIX_MONITORS, WHICH_COLUMN

COLUMNS = Exercise(
    "11.columns",
    "One row of a table reads: aten::linear, Self CPU 3 µs, CPU total 58 µs, Self CUDA 0 µs, CUDA "
    "total 11 µs, 1 call. What do these numbers say?",
    Choice(
        right="c",
        why="Self counts what the operator does on its own, total adds what it calls. linear "
        "calls addmm, which launches the kernel. So linear has almost no time of its own, and you "
        "would gain nothing by making it faster.",
        wrong={
            "a": Diagnosis(
                "host-is-not-device",
                "CPU and CUDA times belong to different processors, which work at the same time. "
                "Do not add them: compare self with total, both of the CPU or both of CUDA.",
            ),
            "b": Diagnosis(
                "self-zero-is-not-idle",
                "Something inside linear did run on the GPU: CUDA total is not zero. Who "
                "launched it?",
            ),
            "d": Diagnosis(
                "one-call",
                "The row has one call, so averages and sums are the same. What else separates "
                "self from total?",
            ),
        },
    ),
    hints=(
        "Which operators does aten::linear call?",
        "Self: without the operators inside. Total: with them.",
    ),
    choices={
        "a": "The operator spends 58 of 69 µs on the CPU, so it is bound by the CPU.",
        "b": "The operator does not use the GPU.",
        "c": "The operator calls others: they launch a kernel of 11 µs and take 55 µs of the CPU.",
        "d": "Self is the fastest call, total the sum of all calls.",
    },
)

BOUND = Exercise(
    "11.bound",
    "Profile the four programs lab.program('a') to lab.program('d'). What limits each? "
    "'compute': the kernels. 'copy': copies between host and GPU. 'launch': Python and its "
    "launches. 'allocation': memory that PyTorch gets from the driver.",
    Table(
        right={"a": "launch", "b": "allocation", "c": "compute", "d": "copy"},
        why="Start from the device: only c keeps the GPU busy with kernels, and only d with "
        "copies. In a and b the GPU is idle. In a, many short launches fill the host's time; in "
        "b, cudaMalloc and cudaFree do.",
        allowed=(("compute", "copy", "launch", "allocation"),),
        wrong={
            ("a", "compute"): Diagnosis(
                "many-calls-are-not-much-work",
                "a has many kernels, but how long are they together, and how long does the "
                "program take?",
            ),
            ("b", "launch"): Diagnosis(
                "look-at-the-calls",
                "b has few launches. Sort its table by self_cpu_time_total: which calls of CUDA "
                "are on top?",
            ),
            ("b", "compute"): Diagnosis(
                "no-kernels",
                "Look for a kernel in the table of b. Is there one?",
            ),
            ("d", "compute"): Diagnosis(
                "copies-are-not-kernels",
                "Sort the table of d by self_device_time_total. Is the first row a kernel?",
            ),
            ("d", "launch"): Diagnosis(
                "a-call-that-copies",
                "d makes few calls, and one kind of call takes nearly all of the time. What does "
                "it move?",
            ),
            ("c", "launch"): Diagnosis(
                "the-host-is-done",
                "In c the host has launched everything long before the GPU is done. Which call "
                "of the host waits?",
            ),
        },
        otherwise=(
            Diagnosis(
                "wrong-limit",
                "Compare the longest row of the device with the time of the whole program.",
            ),
        ),
    ),
    hints=(
        "Sort by 'self_device_time_total' for the device, by 'self_cpu_time_total' for the host.",
        "If the device is mostly idle, the top row of the host says what it does instead.",
    ),
)

_WORK = (
    ("copy", 7, 0.0, 40.0),
    ("kernel", 13, 10.0, 25.0),
    ("copy", 7, 45.0, 85.0),
    ("kernel", 13, 50.0, 65.0),
    ("kernel", 13, 80.0, 95.0),
)


def overlap_readings() -> pd.DataFrame:
    """Return the trace of the exercise: start and end of each copy and each kernel."""
    return pd.DataFrame(_WORK, columns=["kind", "stream", "start_us", "end_us"])


OVERLAP = Exercise(
    "11.overlap",
    "A trace of the device shows two streams. 'overlap_us': for how many microseconds do a copy "
    "and a kernel run at the same time? 'saved_us': how much longer would the device be busy if "
    "nothing overlapped?",
    Quantities(
        right={"overlap_us": 35.0, "saved_us": 35.0},
        why="The first kernel lies inside a copy (15 µs), so does the second (15 µs), and the "
        "third meets the last 5 µs of a copy. Busy time with overlap is 90 µs; the five alone add "
        "up to 125 µs. Overlap is proven by times that intersect, not by two streams.",
        wrong=(
            (
                "overlap_us",
                30.0,
                Diagnosis("partly", "One kernel begins while a copy still runs. Count that too."),
            ),
            (
                "overlap_us",
                45.0,
                Diagnosis(
                    "whole-kernels",
                    "You counted each kernel whole. The last one goes on after the copy ends.",
                ),
            ),
            (
                "overlap_us",
                80.0,
                Diagnosis(
                    "whole-copies",
                    "You counted each copy whole. A copy overlaps only while a kernel runs.",
                ),
            ),
            (
                "saved_us",
                30.0,
                Diagnosis(
                    "to-the-end",
                    "From first start to last end is 95 µs, but the device is idle for 5 of them.",
                ),
            ),
        ),
        otherwise=Diagnosis(
            "intersect",
            "intersect each kernel with each copy: the later start to the earlier end.",
        ),
    ),
    hints=(
        "Draw the five bars on paper, one line for each stream.",
        "Two bars overlap for min(ends) - max(starts), if that is positive.",
    ),
    readings=overlap_readings,
)

SCHEDULE = Exercise(
    "11.schedule",
    "A loop calls profiler.step() after each of its ten steps, 0 to 9, with "
    "schedule(wait=1, warmup=1, active=2, repeat=2). Which steps are recorded?",
    Letters(
        right=frozenset("2367"),
        why="One cycle is wait, warm-up and two active steps: 0 | 1 | 2 3, then 4 | 5 | 6 7. "
        "After two cycles the profiler records nothing more.",
        wrongly_in={
            "1": Diagnosis(
                "warm-up-is-dropped",
                "In the warm-up the profiler runs but throws its records away: its own first use "
                "is expensive.",
            ),
            "5": Diagnosis(
                "each-cycle-warms-up",
                "The second cycle has a step to wait and a warm-up of its own.",
            ),
            "8": Diagnosis("repeat", "repeat=2 ends after two cycles. How long is a cycle?"),
            "9": Diagnosis("repeat", "repeat=2 ends after two cycles. How long is a cycle?"),
            "0": Diagnosis("wait-first", "wait=1 skips a step at the start of each cycle."),
            "4": Diagnosis("wait-first", "wait=1 skips a step at the start of each cycle."),
        },
        missing={
            "2": Diagnosis("first-active", "Which step comes after wait and warm-up?"),
            "6": Diagnosis("second-cycle", "repeat=2 records a second cycle like the first."),
            "3": Diagnosis("two-active", "active=2 records two steps in each cycle."),
            "7": Diagnosis("two-active", "active=2 records two steps in each cycle."),
        },
        all_chosen=Diagnosis("no-schedule", "That is what happens without a schedule."),
        none_chosen=Diagnosis("nothing", "At least the active steps are recorded."),
    ),
    hints=(
        "Write the ten steps in a row and mark wait, warm-up, active, active, wait, ...",
        "A cycle has 1 + 1 + 2 steps, and there are two cycles.",
    ),
    choices={str(number): f"Step {number}" for number in range(10)},
)

EXERCISES = (COLUMNS, BOUND, OVERLAP, SCHEDULE, WHICH_COLUMN, SIX_MONITORS)
