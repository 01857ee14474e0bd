"""Exercises of lesson 05: clocks that change during a measurement, and what to do about it."""

from typing import TYPE_CHECKING

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import BenchmarkJudge, Choice, Diagnosis, Table
from gpulab.exercises.lesson_05._regime_filter import RegimeFilter

if TYPE_CHECKING:
    import pandas as pd


# A virtual H200, one call of the same matmul every 22 ms. Trace a: other matmuls run between the
# calls. Trace b: the GPU rests between them, and now and then another stream adds large tensors.
# The columns are seconds, microseconds, MHz, °C and the driver's reason for a low clock.
_CAPPED = "power cap"
_TRACE_ROWS = (
    *(("a", 0.000, 1408.7, 1980, 37, ""), ("a", 0.023, 1408.7, 1680, 54, "")),
    *(("a", 0.045, 1542.0, 1530, 56, ""), ("a", 0.067, 1603.6, 1470, 55, "")),
    *(("a", 0.090, 1619.8, 1455, 54, _CAPPED), ("a", 0.111, 1636.4, 1440, 53, _CAPPED)),
    *(("a", 0.132, 1636.4, 1440, 53, _CAPPED), ("a", 0.155, 1636.4, 1440, 53, _CAPPED)),
    *(("a", 0.176, 1636.4, 1440, 54, _CAPPED), ("a", 0.199, 1636.4, 1440, 54, _CAPPED)),
    *(("a", 0.221, 1636.4, 1440, 54, _CAPPED), ("a", 0.242, 1636.4, 1440, 54, _CAPPED)),
    *(("b", 0.000, 1551.7, 1980, 38, ""), ("b", 0.022, 1408.7, 1980, 39, "")),
    *(("b", 0.044, 1426.7, 1980, 40, ""), ("b", 0.066, 1408.7, 1980, 39, "")),
    *(("b", 0.088, 1772.9, 1980, 39, ""), ("b", 0.110, 1408.7, 1980, 39, "")),
    *(("b", 0.132, 1476.7, 1980, 39, ""), ("b", 0.154, 1532.1, 1980, 41, "")),
    *(("b", 0.176, 1680.7, 1980, 39, ""), ("b", 0.198, 1772.9, 1980, 40, "")),
    *(("b", 0.220, 1408.7, 1980, 39, ""), ("b", 0.242, 1447.5, 1980, 40, "")),
)


def _traces() -> "pd.DataFrame":
    import pandas as pd

    columns = ["series", "time_s", "duration_s", "sm_mhz", "temperature_c", "reasons"]
    frame = pd.DataFrame(_TRACE_ROWS, columns=columns)
    frame["duration_s"] /= 1e6
    return frame.assign(source="virtual", device_name="NVIDIA H200")


_SLOW_IS_THROTTLED = Diagnosis(
    "slow-is-throttled",
    "b scatters more than a, but its clock is 1980 MHz at every reading, and the driver names no "
    "reason. Slow samples alone do not show a lower clock. Something else delayed these calls.",
)
_WARM_IS_THROTTLED = Diagnosis(
    "warm-is-throttled",
    "a gets warm because it draws power, but at 56 °C no GPU protects itself. Read the reason "
    "that the driver names in a from 0.09 s on.",
)
_MORE_SAMPLES = Diagnosis(
    "more-samples",
    "More samples of a give a narrower interval around a median that moves: the more samples you "
    "take, the larger is the share at the lower clock.",
)

TWO_TRACES = Exercise(
    "05.two-traces",
    "Two traces of one matmul from a virtual H200: the time of each call, and what the driver "
    "reported right after it. In both, some calls take 15 % longer than others. What slows them "
    "down in each trace, and what do you do about it?",
    Table(
        right={"a": ("power cap", "name the regime"), "b": ("noise", "more samples")},
        why="In a the calls become slower while the clock falls, and the driver says why it is "
        "low. In b the clock is constant, so the times scatter for another reason: work in "
        "another stream. More samples help against scatter only.",
        allowed=(("power cap", "heat", "noise"), ("more samples", "name the regime")),
        wrong={
            ("a", "noise"): Diagnosis(
                "step-is-noise",
                "a does not scatter: its times rise once and stay. Compare sm_mhz and duration_s "
                "in the first row and in the last: both have changed.",
            ),
            ("a", "heat"): _WARM_IS_THROTTLED,
            ("b", "name the regime"): Diagnosis(
                "regime-of-noise",
                "b has one regime only: 1980 MHz from the first row to the last. The times "
                "scatter around one value. What makes that value more certain?",
            ),
        },
        otherwise=(_SLOW_IS_THROTTLED, _MORE_SAMPLES),
        headings=("cause", "what to do"),
    ),
    hints=(
        "The times alone do not show the cause. Which other column changes in a, and which in b?",
        "The driver names the reason for a lower clock, a little late.",
    ),
    readings=_traces,
)

SECOND_IS_SLOWER = Exercise(
    "05.second-is-slower",
    "A and B were warmed up, and the GPU rested for a second before each experiment. If A runs "
    "first, A seems to be faster. If B runs first, B does. What explains both results?",
    Choice(
        right="b",
        why="B computes 3 % less in both experiments. What changes is who runs second. The work "
        "itself makes the GPU slower, in less than a tenth of a second.",
        wrong={
            "a": Diagnosis(
                "first-calls",
                "First calls would make the program slow that runs first. Here the second one is "
                "slow, whichever it is.",
            ),
            "c": Diagnosis(
                "cache-of-the-other",
                "Both programs use the same matrix and the same result, so the second one finds "
                "what it needs. And then both would differ in their first calls only.",
            ),
            "d": Diagnosis(
                "noise",
                "Run both cells again: the numbers hardly change, and the order decides again. "
                "Noise does not know who runs first.",
            ),
        },
    ),
    hints=(
        "What do the slow program of the first experiment and that of the second have in common?",
        "What happens to the GPU in the second of rest, and what in the calls after it?",
    ),
    choices={
        "a": "The warm-up is too short: slow first calls are in the number.",
        "b": "The GPU becomes slower while it works, so whichever runs second takes longer.",
        "c": "The first program leaves its data in the cache, in the way of the second.",
        "d": "The difference of 3 % is smaller than the noise: both results are chance.",
    },
)

_HEAVY_IS_SETTLED = Diagnosis(
    "heavy-is-settled",
    "The kernel is heavy, but the clock falls only after about 0.1 s of such work. How long does "
    "this work last, and what did the GPU do before?",
)
_STARTS_RESTED = Diagnosis(
    "starts-rested",
    "Yes, it starts at the highest clock, but the clock falls after about 0.1 s. What share of "
    "the work runs before that?",
)
_MEAN_OF_BOTH = Diagnosis(
    "mean-of-both",
    "No call takes the mean of the two. A call runs at the one clock or at the other. How long "
    "does the work run, and did the GPU rest before?",
)

BURST_OR_SETTLED = Exercise(
    "05.burst-or-settled",
    "The matmul takes 1.43 ms in a burst and 1.67 ms settled (recorded on an H200, where the "
    "clock falls within 0.1 s). Which number answers which question?\n\n"
    "    a   A user sends a request every few seconds. A request is one matmul.\n"
    "        How long does it take?\n"
    "    b   A training run computes nothing but such matmuls for an hour.\n"
    "        How many does it compute?\n"
    "    c   A job runs once a night, after hours of rest: 30 s of matmuls.\n"
    "        How long does it run on the GPU?\n"
    "    d   A program rests for a second, then computes 20 matmuls (30 ms).\n"
    "        How long do they take?",
    Table(
        right={"a": "burst", "b": "settled", "c": "settled", "d": "burst"},
        why="What counts is how long the work runs without a rest. Below about 0.1 s it is a "
        "burst; above, it is settled. Both numbers are honest. Say which one you report.",
        allowed=(("burst", "settled", "mean"),),
        wrong={
            ("c", "burst"): _STARTS_RESTED,
            ("b", "burst"): _STARTS_RESTED,
            ("d", "settled"): _HEAVY_IS_SETTLED,
            ("a", "settled"): _HEAVY_IS_SETTLED,
        },
        otherwise=(_MEAN_OF_BOTH,),
    ),
    hints=(
        "For each question: how many seconds does the GPU work without a pause?",
        "Compare that time with 0.1 s, in which the clock falls.",
    ),
)


WHICH_TO_DISCARD = Exercise(
    "05.which-to-discard",
    "Write keep(samples_s, readings). It gets samples, and for each sample the Reading that was "
    "taken with it (None if there was none). It returns the samples from the most common regime. "
    "The check runs it on samples of which some were taken before the clock fell.",
    RegimeFilter(
        "You kept every sample at the usual clock, slow ones too, and none at another clock. "
        "Report how many samples you discarded."
    ),
    hints=(
        "clocks.flag(readings) returns one True or False for each sample.",
        "Go through zip(samples_s, flags) and keep the samples whose flag is False.",
    ),
)

IN_TURNS = Exercise(
    "05.in-turns",
    "B computes 3 % less than A. gpulab.compare finds 3 % less time, although the clock falls "
    "while it measures. Why does the falling clock not spoil its ratio?",
    Choice(
        right="c",
        why="The order is A B B A A B B A. Each sample of B has a neighbour of A at nearly the "
        "same clock, so the clock cancels in the ratio. Both medians depend on the clock; their "
        "ratio does not.",
        wrong={
            "a": Diagnosis(
                "averages-out",
                "A falling clock is not scatter. It slows down the second candidate, however many "
                "samples you take. More samples make you more certain of the wrong ratio.",
            ),
            "b": Diagnosis(
                "compare-locks",
                "compare locks nothing. A lock needs special rights. Look at the samples of A "
                "alone: they rise, because the clock moved while they were taken.",
            ),
            "d": Diagnosis(
                "waits-for-settled",
                "It warms up until times are steady, and in a burst they are steady, too. The "
                "rising samples of A show that the clock moved while they were taken.",
            ),
        },
    ),
    hints=(
        "In which order does compare take the samples?",
        "What do two samples have in common that are taken right after each other?",
    ),
    choices={
        "a": "It takes more samples, so the falling clock averages out.",
        "b": "It locks the clock while it measures.",
        "c": "It takes the samples in turns, and divides neighbours by each other.",
        "d": "It warms up until the clock has settled, and only then measures.",
    },
)

GPU_UTIL = Exercise(
    "05.gpu-util",
    "nvidia-smi has shown a GPU-Util of 100 % for a minute. What do you know?",
    Choice(
        right="b",
        why="GPU-Util is the share of time in which any kernel ran, even one with a single "
        "thread. Power says more: a GPU that draws little power does little work.",
        wrong={
            "a": Diagnosis(
                "all-multiprocessors",
                "The kernel that you watched used a single thread, and GPU-Util was 100 %. It "
                "counts time, not parts of the chip.",
            ),
            "c": Diagnosis(
                "as-fast-as-it-can",
                "A kernel that waits for memory, or has one thread, counts as much as the best "
                "kernel. 100 % says nothing about speed.",
            ),
            "d": Diagnosis(
                "memory",
                "Another column shows how full the memory is. GPU-Util is about kernels.",
            ),
        },
    ),
    hints=(
        "What did GPU-Util read for the kernel with one thread?",
        "Does GPU-Util count time, or parts of the chip?",
    ),
    choices={
        "a": "All multiprocessors were busy.",
        "b": "Nearly all the time, at least one kernel was running.",
        "c": "The program could not run faster on this GPU.",
        "d": "The memory of the GPU is in full use.",
    },
)

BENCHMARK = Exercise(
    "05.benchmark",
    "Your benchmark(fn) from lesson 04 warms up and takes the median of events. Let it return the "
    "clock at which the samples were taken, too: return seconds, clock_mhz.",
    BenchmarkJudge("clock"),
    hints=(
        "torch.cuda.clock_rate() returns the clock of the multiprocessors in MHz.",
        "Read the clock right after the last synchronize, and return median_s, clock_mhz.",
    ),
)

EXERCISES = (
    SECOND_IS_SLOWER,
    BURST_OR_SETTLED,
    IN_TURNS,
    BENCHMARK,
    TWO_TRACES,
    WHICH_TO_DISCARD,
    GPU_UTIL,
)
