"""Clocks that move: tell it from noise, name the regime, discard by the clock, go by turns."""

from typing import TYPE_CHECKING

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Choice, Diagnosis, Table
from gpulab.exercises.lesson_05._regime_filter import RegimeFilter

if TYPE_CHECKING:
    import pandas as pd


# A virtual H200, one call of the same matmul every 22 ms. Trace a: other matmuls fill the time
# between. Trace b: the GPU rests between, and a stream of somebody else adds large tensors now
# and then. Seconds, microseconds, MHz, °C.
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
    "b scatters more than a does, but its clock is 1980 MHz at every reading, and the driver "
    "names no reason. Slow samples alone are no sign of a lower clock; here something else was "
    "in the way.",
)
_WARM_IS_THROTTLED = Diagnosis(
    "warm-is-throttled",
    "a gets warm because it spends power, but 56 °C is far below where a GPU protects itself. "
    "Read what the driver names in a from 0.09 s on.",
)
_MORE_SAMPLES = Diagnosis(
    "more-samples",
    "More samples of a give a narrower interval, of a median that moves with the number of "
    "samples: the more you take, the larger the share of the lower clock.",
)

TWO_TRACES = Exercise(
    "05.two-traces",
    "Two traces of one product, taken on a virtual H200: what each call took, and what the driver "
    "said right after it. In both, some calls take 15 % longer than others. What makes them "
    "longer in each, and what will you do about it?",
    Table(
        right={"a": ("power cap", "name the regime"), "b": ("noise", "more samples")},
        why="In a the times follow the clock, and the driver says why it is low. In b the clock "
        "stands still, so the times scatter for another reason: the stream of somebody else. Only "
        "against scatter do more samples help.",
        allowed=(("power cap", "heat", "noise"), ("more samples", "name the regime")),
        wrong={
            ("a", "noise"): Diagnosis(
                "step-is-noise",
                "a does not scatter: its times rise once and stay. Put sm_mhz beside duration_s, "
                "row by row: do they move together?",
            ),
            ("a", "heat"): _WARM_IS_THROTTLED,
            ("b", "name the regime"): Diagnosis(
                "regime-of-noise",
                "b has one regime only: 1980 MHz from the first row to the last. What scatters "
                "about one value is made more certain by something else.",
            ),
        },
        otherwise=(_SLOW_IS_THROTTLED, _MORE_SAMPLES),
    ),
    hints=(
        "The times alone do not tell. Which other column changes in a, and which in b?",
        "A lower clock has a reason that the driver names; it does so a little late.",
    ),
    readings=_traces,
)

_HEAVY_IS_SETTLED = Diagnosis(
    "heavy-is-settled",
    "The kernel is a heavy one, but the clock needs about 0.1 s of it to fall. How long does this "
    "work last, and what was the GPU doing before?",
)
_STARTS_RESTED = Diagnosis(
    "starts-rested",
    "It starts at the highest clock, yes, and loses it after about 0.1 s. Which share of the work "
    "runs in that time?",
)
_MEAN_OF_BOTH = Diagnosis(
    "mean-of-both",
    "No call takes the mean of the two: it is either at the one clock or at the other. How long "
    "does the work go on, and did it rest before?",
)

BURST_OR_SETTLED = Exercise(
    "05.burst-or-settled",
    "The product takes 1.43 ms in a burst and 1.67 ms settled (recorded on an H200, where the "
    "clock falls within 0.1 s and is back as quickly). Which number answers which question?\n\n"
    "    a   A user sends a request every few seconds. A request is one product.\n"
    "        How long does it take?\n"
    "    b   A training run does nothing but such products for an hour.\n"
    "        How many does it get through?\n"
    "    c   A job runs once a night, after hours of rest: 30 s of products.\n"
    "        How long is it on the GPU?\n"
    "    d   A program rests for a second, then computes 20 products (30 ms).\n"
    "        How long do they take?",
    Table(
        right={"a": "burst", "b": "settled", "c": "settled", "d": "burst"},
        why="What counts is how long the work goes on without a rest: less than about 0.1 s is a "
        "burst, more is settled. Both numbers are honest; say which one you report.",
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
        "For each: how many seconds does the GPU work without a pause?",
        "Compare that with 0.1 s, the time in which the clock falls.",
    ),
)


WHICH_TO_DISCARD = Exercise(
    "05.which-to-discard",
    "Write keep(samples_s, readings): it gets samples and the Reading that was taken with each "
    "(None if there was none), and returns the samples that were taken in the regime of most. It "
    "will be tried on samples of which some were taken before the clock fell.",
    RegimeFilter(
        "You kept every sample of the usual clock, slow ones too, and none of another. The number "
        "of discarded samples belongs into your report."
    ),
    hints=(
        "clocks.flag(readings) gives one True or False a sample.",
        "zip(samples_s, flags) and keep where the flag is False.",
    ),
)

IN_TURNS = Exercise(
    "05.in-turns",
    "B has 3 % less to compute than A. Timed one after the other, B seems to take longer; "
    "gpulab.compare finds that it takes 3 % less, although the clock falls there too. Why?",
    Choice(
        right="c",
        why="A b b a a b b a: each sample of B has a neighbour of A at nearly the same clock, so "
        "the clock cancels in the ratio. Both medians still depend on it; their ratio does not.",
        wrong={
            "a": Diagnosis(
                "averages-out",
                "A falling clock is no scatter: it hits whoever comes second, however many "
                "samples you take. More samples only make you more certain of the wrong ratio.",
            ),
            "b": Diagnosis(
                "compare-locks",
                "compare locks nothing: that needs rights, and you would be told. Look at the "
                "interval of A alone: it is wide, because the clock moved while it was taken.",
            ),
            "d": Diagnosis(
                "waits-for-settled",
                "It warms up only until times are steady, which they are in a burst as well. The "
                "wide interval of A shows that the clock moved while the samples were taken.",
            ),
        },
    ),
    hints=(
        "In which order does compare take the samples?",
        "What have two samples in common that are taken right after each other?",
    ),
    choices={
        "a": "It takes more samples, so the falling clock averages out.",
        "b": "It keeps the clock at one value while it measures.",
        "c": "It takes the samples in turns, and divides each by its neighbour.",
        "d": "It warms up until the clock has settled, and only then measures.",
    },
)

GPU_UTIL = Exercise(
    "05.gpu-util",
    "nvidia-smi has shown a GPU-Util of 100 % for a minute. What do you know?",
    Choice(
        right="b",
        why="It is the share of time in which any kernel ran, be it one thread on a GPU of a "
        "hundred thousand. Power tells more: a GPU that draws little does little.",
        wrong={
            "a": Diagnosis(
                "all-multiprocessors",
                "The kernel that you watched kept a single thread busy, and GPU-Util was at "
                "100 %. It counts time, not parts of the chip.",
            ),
            "c": Diagnosis(
                "as-fast-as-it-can",
                "A kernel that waits for memory, or runs in one thread, counts as much as the "
                "best one. 100 % says nothing about speed.",
            ),
            "d": Diagnosis(
                "memory",
                "How full the memory is stands in another column. GPU-Util is about kernels.",
            ),
        },
    ),
    hints=(
        "What did GPU-Util read for the kernel with one thread?",
        "Does it count time, or parts of the chip?",
    ),
    choices={
        "a": "All multiprocessors were busy.",
        "b": "Nearly all the time, at least one kernel was running.",
        "c": "The program could not run faster on this GPU.",
        "d": "The memory of the GPU is in full use.",
    },
)

EXERCISES = (TWO_TRACES, BURST_OR_SETTLED, WHICH_TO_DISCARD, IN_TURNS, GPU_UTIL)
