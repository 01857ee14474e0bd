"""Exercises of lesson 00: where a number comes from, and how to read a line of output."""

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Choice, Diagnosis, Table

_VIRTUAL_AS_MEASURED = Diagnosis(
    "virtual-as-measured",
    "There was no GPU, so nothing was measured on one. The code ran unchanged, but the time was "
    "computed by the virtual GPU: it is virtual.",
)
_VIRTUAL_AS_RECORDED = Diagnosis(
    "virtual-as-recorded",
    "The virtual GPU computed this time while the code ran. A recorded number comes from a real "
    "GPU that ran the work earlier.",
)
_RECORDED_AS_MEASURED = Diagnosis(
    "recorded-as-measured",
    "It was measured, but earlier and on another GPU, which is named. gpulab calls this "
    "recorded, so that you do not take it for your machine.",
)

SOURCES = Exercise(
    "00.sources",
    "Here are four numbers. Which are measured, which recorded, which virtual?",
    Table(
        right={"a": "virtual", "b": "measured", "c": "recorded", "d": "virtual"},
        why="Measured: here, on hardware. Recorded: earlier, on a named GPU. Virtual: computed. "
        "What matters is where the code ran, not what it looks like.",
        allowed=(("measured", "recorded", "virtual"),),
        wrong={
            ("a", "measured"): _VIRTUAL_AS_MEASURED,
            ("d", "measured"): _VIRTUAL_AS_MEASURED,
            ("c", "measured"): _RECORDED_AS_MEASURED,
            ("a", "recorded"): _VIRTUAL_AS_RECORDED,
            ("d", "recorded"): _VIRTUAL_AS_RECORDED,
        },
        otherwise=(
            Diagnosis(
                "wrong-source",
                "Ask about each number: did a real GPU run the work, and was it the GPU here?",
            ),
        ),
    ),
    hints=(
        "The last words of the line, and of a plot's title, name the source.",
        "On a machine without a GPU, a number is computed now or was saved on another machine.",
    ),
    choices={
        "a": "`%cudatime` on your laptop; its line ends with `virtual NVIDIA H200 at 1980 MHz)`",
        "b": "`%cudatime` on another machine; its line ends with "
        "`Tesla T4, measured at 1590 MHz)`",
        "c": "a plot seen on your laptop, which has no GPU; its title ends with "
        "`(recorded on NVIDIA H200)`",
        "d": "`start.elapsed_time(end)` in unmodified PyTorch code, on a laptop without a GPU",
    },
)

READ_THE_LINE = Exercise(
    "00.read-the-line",
    "A cell printed this line. What does [24.8, 25.0] say?\n\n"
    "    24.9 µs [24.8, 25.0] per call (median, 95 % interval of 41;\n"
    "    events, hot cache; NVIDIA H200, measured)",
    Choice(
        right="c",
        why="The interval is about the median: if the 41 samples were taken again and again in "
        "the same way, about 95 of 100 such intervals would contain the true median. Single "
        "samples may lie outside. An error that all samples share does not show.",
        wrong={
            "a": Diagnosis(
                "range-of-samples",
                "The smallest and the largest sample are the range. The range grows with more "
                "samples; this interval shrinks, because it is about the median.",
            ),
            "b": Diagnosis(
                "spread-of-samples",
                "95 % is not a share of the samples. It says how often such an interval contains "
                "the true median.",
            ),
            "d": Diagnosis(
                "accuracy",
                "The interval shows only the noise. If the method reads too much, for example the "
                "launch as well as the kernel, every sample does, and the interval stays narrow.",
            ),
        },
    ),
    hints=(
        "Would 4,000 samples instead of 41 make it wider or narrower?",
        "It belongs to the number before it: the median.",
    ),
    choices={
        "a": "All 41 samples lie between 24.8 and 25.0 µs.",
        "b": "95 % of the samples lie between 24.8 and 25.0 µs.",
        "c": "If you repeat the timing many times, about 95 % of such intervals contain the true "
        "median.",
        "d": "The work takes 24.9 µs, and this is wrong by at most 0.1 µs.",
    },
)

EXERCISES = (SOURCES, READ_THE_LINE)
