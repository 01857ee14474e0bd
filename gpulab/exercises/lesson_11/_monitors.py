"""Read a GPU monitor: its columns, readings of six programs, and two exercises."""

from importlib import resources
from typing import TYPE_CHECKING, Any

from gpulab.core.serialization import parse_json
from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Diagnosis, Table
from gpulab.gpus.provenance import device_label

if TYPE_CHECKING:
    import pandas as pd


def monitors() -> "pd.DataFrame":
    """Return the six monitors of the quiz: one row for each second of each program.

    The columns have the names of ``nvidia-smi dmon``, with the unit after each. The column
    ``source`` says on which GPU the numbers were recorded.
    """
    import pandas as pd

    text = resources.files("gpulab").joinpath("data", "monitors.json").read_text("utf-8")
    recorded: Any = parse_json(text)
    label = device_label(recorded["device_name"], "recorded")
    rows = [
        {"program": letter, "second": second, **row, "source": label}
        for letter, seconds in recorded["rows"].items()
        for second, row in enumerate(seconds, start=1)
    ]
    return pd.DataFrame(rows)


_COLUMNS = ("fb", "mem", "sm", "pviol", "tviol", "rxpci", "txpci", "gtemp")

WHICH_COLUMN = Exercise(
    "11.which-column",
    "Five questions about a GPU that is working. Which column of dmon answers each most "
    "directly?\n\n"
    "    a   Is there enough memory left for a larger batch?\n"
    "    b   Does the power limit lower the clock?\n"
    "    c   Is the GPU ever without a kernel?\n"
    "    d   How many bytes come from the host?\n"
    "    e   Is the clock lower because the chip is hot?",
    Table(
        right={"a": "fb", "b": "pviol", "c": "sm", "d": "rxpci", "e": "tviol"},
        why="fb is memory in use; mem is the share of time in which memory was busy. The "
        "violations say why the clock is low: pviol for power, tviol for heat. sm says whether "
        "any kernel ran, and rx is what the GPU receives.",
        allowed=(_COLUMNS,),
        wrong={
            ("a", "mem"): Diagnosis(
                "mem-is-time",
                "a: mem is the share of time in which memory was read or written. A full memory "
                "that nobody touches shows 0.",
            ),
            ("b", "tviol"): Diagnosis(
                "heat-or-power", "b: tviol is about heat. The question is about the power limit."
            ),
            ("d", "txpci"): Diagnosis(
                "whose-view",
                "d: the names are from the GPU's view: it receives (rx) what the host sends.",
            ),
            ("e", "gtemp"): Diagnosis(
                "hot-is-not-slowed",
                "e: gtemp says how hot it is, and not whether that lowers the clock. Limits "
                "differ from GPU to GPU.",
            ),
            ("e", "pviol"): Diagnosis("power-or-heat", "e: pviol is about power."),
        },
        otherwise=(
            Diagnosis(
                "another-column", "Read the table above again: what does each column count?"
            ),
        ),
    ),
    hints=(
        "Two columns have memory in their meaning, and only one of them says how full it is.",
        "pviol and tviol name the reason for a low clock: power, or heat.",
    ),
)

_WRONGS = ("nothing", "starved", "one thread", "leak", "copies", "pauses")

SIX_MONITORS = Exercise(
    "11.monitors",
    "The monitors of six programs, lab.monitors(). What is wrong in each? 'nothing': it uses the "
    "GPU well. 'starved': the GPU waits for the host in every step. 'one thread': there is always "
    "a kernel, and it uses almost nothing of the chip. 'leak': it will run out of memory. "
    "'copies': it spends its time on transfers. 'pauses': from time to time it stops altogether.",
    Table(
        right={
            "a": "nothing",
            "b": "starved",
            "c": "one thread",
            "d": "leak",
            "e": "copies",
            "f": "pauses",
        },
        why="a is busy and at its power limit, as large matmuls are. b is busy for a part of "
        "every second. c shows full GPU-Util at the power of an idle GPU. d looks like a, but "
        "its memory grows. e has traffic on the bus and few kernels. f has whole seconds of rest.",
        allowed=(_WRONGS,),
        wrong={
            ("c", "nothing"): Diagnosis(
                "util-is-not-use",
                "c: GPU-Util is full, and the power is that of an idle GPU. How much can it do?",
            ),
            ("a", "one thread"): Diagnosis(
                "power-says-it",
                "a: look at the power. A single thread could not draw so much.",
            ),
            ("d", "nothing"): Diagnosis(
                "look-at-fb",
                "d: it works well now. What happens to fb, second by second?",
            ),
            ("b", "copies"): Diagnosis(
                "no-traffic",
                "b: the GPU waits, but the bus is idle. So it waits for something else.",
            ),
            ("b", "pauses"): Diagnosis(
                "every-second-alike",
                "b: every second looks the same, so the waits are shorter than a second.",
            ),
            ("e", "starved"): Diagnosis(
                "look-at-the-bus",
                "e: kernels hardly run, that is true. What does the bus do meanwhile?",
            ),
            ("f", "starved"): Diagnosis(
                "whole-seconds",
                "f: it is at full load in one second and at zero in the next. Which word says so?",
            ),
            ("f", "nothing"): Diagnosis(
                "only-the-busy-seconds",
                "f: look at all of its seconds, not at the busy ones alone.",
            ),
        },
        otherwise=(
            Diagnosis(
                "other-columns",
                "Compare each with a, column by column: power, sm, fb, rxpci, then how they "
                "change from second to second.",
            ),
        ),
    ),
    hints=(
        "sm is the same for a, c and d. Which other columns differ?",
        "Each of the six words is used once.",
    ),
)
