"""Where a number comes from, and how to read one line of output."""

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Choice, Diagnosis, Table

_VIRTUAL_AS_MEASURED = Diagnosis(
    "virtual-as-measured",
    "There was no GPU, so nothing was measured on one. The code ran unchanged, but the time was "
    "computed by the virtual GPU: it is virtual.",
)
_VIRTUAL_AS_RECORDED = Diagnosis(
    "virtual-as-recorded",
    "Nothing was replayed here: the virtual GPU computed this time while the code ran. Recorded "
    "are numbers that a real GPU gave earlier and that were kept.",
)
_RECORDED_AS_MEASURED = Diagnosis(
    "recorded-as-measured",
    "It was measured once, but not here and not now: on a named GPU, earlier, and kept. The kit "
    "calls this recorded, so that nobody takes it for this machine.",
)

SOURCES = Exercise(
    "00.sources",
    "Four numbers in front of you. Which are measured, which recorded, which virtual?",
    Table(
        right={"a": "virtual", "b": "measured", "c": "recorded", "d": "virtual"},
        why="Measured: here, on hardware. Recorded: earlier, on a named GPU. Virtual: computed. "
        "What the code looks like does not matter; where it ran does.",
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
                "Ask of each number: did hardware run, and was it the hardware in front of you?",
            ),
        ),
    ),
    hints=(
        "The last words of the line, and of a plot's title, name the source.",
        "On a machine without a GPU, a number is either computed now or was kept from elsewhere.",
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
        "the same way, about 95 of 100 such intervals would hold the true median. Single samples "
        "may lie outside, and an error that all samples share does not show.",
        wrong={
            "a": Diagnosis(
                "range-of-samples",
                "Smallest and largest sample are the range. It grows with every sample taken; "
                "this interval shrinks, because it is about the median.",
            ),
            "b": Diagnosis(
                "spread-of-samples",
                "95 % is not a share of the samples. It is how often an interval made in this "
                "way holds the true median.",
            ),
            "d": Diagnosis(
                "accuracy",
                "The interval knows only the noise. If the method itself reads too much, for "
                "example the launch with the kernel, every sample does, and the interval stays "
                "narrow.",
            ),
        },
    ),
    hints=(
        "Would taking 4,000 samples in place of 41 make it wider or narrower?",
        "It belongs to the number in front of it: the median.",
    ),
    choices={
        "a": "All 41 samples lie between 24.8 and 25.0 µs.",
        "b": "95 % of the samples lie between 24.8 and 25.0 µs.",
        "c": "If the timing were repeated many times, about 95 % of such intervals would hold the "
        "true median.",
        "d": "The work takes 24.9 µs, and this is wrong by at most 0.1 µs.",
    },
)

EXERCISES = (SOURCES, READ_THE_LINE)
