"""Exercises of lesson 06: hot and cold caches, cache flushes, and what to report."""

from typing import TYPE_CHECKING

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import BenchmarkJudge, Choice, Diagnosis, Table
from gpulab.exercises.lesson_06._flush_choice import FlushChoice

if TYPE_CHECKING:
    import pandas as pd


# Hardware counters of one NVIDIA H200 (L2 of 60 MiB), 2026-11-21: working set in MiB, MB read from
# memory when the work is repeated and after a flush, and the share of requests that crossed to the
# other half of the L2.
_STAIRCASE_ROWS = (
    ("sum", 15, 0.0, 15.7, 0.05),
    ("sum", 28, 0.0, 29.4, 0.03),
    ("sum", 30, 0.0, 31.5, 0.03),
    ("sum", 36, 0.5, 37.7, 0.04),
    ("sum", 40, 3.5, 41.9, 0.08),
    ("sum", 45, 20.5, 47.2, 0.29),
    ("sum", 52, 52.5, 54.5, 0.50),
    ("sum", 60, 62.9, 62.9, 0.51),
    ("linear layer", 15, 0.0, 15.2, 0.02),
    ("linear layer", 28, 0.0, 28.5, 0.01),
    ("linear layer", 30, 0.1, 30.5, 0.01),
    ("linear layer", 36, 1.1, 36.8, 0.03),
    ("linear layer", 40, 7.7, 41.3, 0.15),
    ("linear layer", 45, 28.8, 46.1, 0.34),
    ("linear layer", 52, 51.3, 53.8, 0.48),
    ("linear layer", 60, 62.0, 62.0, 0.49),
)
# The same H200 and day: a linear layer on one row with weights of 30 MiB. The kernel times are the
# driver's records (median of 31); the megabytes were counted while the kernel ran.
_FLUSH_ROWS = (
    ("the same layer (hot)", 9.279e-6, 0.06, 0.73),
    ("read 2 times the L2", 11.680e-6, 30.49, 0.00),
    ("write 256 MiB", 14.431e-6, 30.49, 10.42),
    ("write 1 times the L2", 14.368e-6, 30.50, 10.33),
    ("write 256 MiB, wait 1 ms", 14.337e-6, 30.49, 10.36),
    ("write 256 MiB, read 2 times", 11.904e-6, 30.49, 0.00),
    ("other layers, 2 times the L2", 11.648e-6, 30.49, 0.02),
)


def _staircase_readings() -> "pd.DataFrame":
    return _recorded(
        _STAIRCASE_ROWS, ["work", "working_set_mib", "hot_mb", "cold_mb", "hot_crossing"]
    )


def _flush_readings() -> "pd.DataFrame":
    return _recorded(_FLUSH_ROWS, ["run_ahead", "kernel_s", "from_memory_mb", "to_memory_mb"])


def _recorded(rows: tuple[tuple[object, ...], ...], columns: list[str]) -> "pd.DataFrame":
    import pandas as pd

    frame = pd.DataFrame(rows, columns=columns)
    return frame.assign(source="recorded", device_name="NVIDIA H200")


_NOT_ENOUGH_ROTATED = Diagnosis(
    "too-few-in-turns",
    "b: two matrices of 8 MiB are 16 MiB in all, and both stay. Between two uses of one matrix "
    "at least as many bytes as the L2 has room for must pass through it.",
)
_SAME_MEMORY = Diagnosis(
    "names-not-memory",
    "d: the list has sixteen entries, but all of them are one tensor. The cache knows addresses, "
    "not names.",
)

WHICH_IS_COLD = Exercise(
    "06.which-is-cold",
    "The L2 has 60 MiB, each matrix 8 MiB. Which loop finds its weights in the cache (hot), and "
    "which one in memory (cold)? Each loop runs many times before one call is timed.\n\n"
    "    a   for x in sixteen_rows:          # fresh inputs\n"
    "            linear(x, weight)\n\n"
    "    b   for w in two_matrices:          # rotated weights\n"
    "            linear(x, w)\n\n"
    "    c   for w in sixteen_matrices:\n"
    "            linear(x, w)\n\n"
    "    d   for w in [weight] * 16:\n"
    "            linear(x, w)\n\n"
    "    e   for w in sixteen_matrices:      # fresh contents\n"
    "            weight.copy_(w)\n"
    "            linear(x, weight)",
    Table(
        right={"a": "hot", "b": "hot", "c": "cold", "d": "hot", "e": "hot"},
        why="Only in c do 120 MiB of other data pass between two uses of one matrix. In the other "
        "loops the weights are the same memory, too few, or just written.",
        allowed=(("hot", "cold"),),
        wrong={
            ("a", "cold"): Diagnosis(
                "fresh-inputs",
                "a: a fresh row is 8 kB. The layer's 8 MiB of weights are the same in every call, "
                "and they are what it reads.",
            ),
            ("d", "cold"): _SAME_MEMORY,
            ("b", "cold"): _NOT_ENOUGH_ROTATED,
            ("e", "cold"): Diagnosis(
                "written-is-hot",
                "e: the copy writes the weights, and written data are in the cache as well as "
                "read data. The contents are fresh; the addresses are hot.",
            ),
            ("c", "hot"): Diagnosis(
                "rotation-evicts",
                "c: between two uses of one matrix, fifteen others pass: 120 MiB, twice the L2. "
                "Nothing of the first one is left.",
            ),
        },
        otherwise=(
            Diagnosis(
                "wrong-state",
                "For each loop, count the other bytes that pass between two uses of one matrix.",
            ),
        ),
    ),
    hints=(
        "Count the bytes that pass between two uses of the same memory.",
        "One of the five is cold.",
    ),
)

_STEP = Diagnosis(
    "step-is-not-size",
    "l2 size: the step shows how much of a repeated working set stays, and that is less than the "
    "whole cache. On this GPU a line can lie in both halves and take two places. Ask the driver.",
)
_DATA_SHEET = Diagnosis(
    "data-sheet",
    "You took the size of the L2 for the step. Look at the readings: at 60 MiB everything comes "
    "from memory, and at a smaller size, too.",
)
_SIZES = ("15", "28", "30", "36", "40", "45", "52", "60")

STAIRCASE = Exercise(
    "06.staircase",
    "Counters on an NVIDIA H200 recorded a sum and a linear layer on working sets of several "
    "sizes: how much they read from memory when repeated (hot_mb) and after a flush (cold_mb). "
    "Up to which working set do both find at least 95 % in the cache? From which one on do they "
    "find less than 5 %? And how large is the L2? Answer in MiB.",
    Table(
        right={"hot up to": "36", "cold from": "52", "l2 size": "60"},
        why="Between 36 and 52 MiB the share found in the cache falls from all to nothing, and "
        "the cache has 60 MiB. The staircase shows what a repeated kernel finds, not how large "
        "the cache is.",
        allowed=(_SIZES,),
        wrong={
            **{("l2 size", size): _STEP for size in ("36", "40", "45", "52")},
            ("hot up to", "60"): _DATA_SHEET,
            ("cold from", "60"): _DATA_SHEET,
            ("hot up to", "40"): Diagnosis(
                "already-missing",
                "hot up to: at 40 MiB the sum already reads 8 % from memory, and the layer 19 %.",
            ),
            ("cold from", "45"): Diagnosis(
                "half-way",
                "cold from: 45 MiB is in the middle of the step. 20.5 of 47.2 MB, or 43 %, come "
                "from memory; the rest is still in the cache.",
            ),
        },
        otherwise=(
            Diagnosis("wrong-size", "Divide hot_mb by cold_mb row by row, and look for the step."),
        ),
    ),
    hints=(
        "hot_mb / cold_mb is the share that comes from memory: at most 0.05, or at least 0.95.",
        "The third number is not in the readings. A cell of the notebook asked the driver.",
    ),
    readings=_staircase_readings,
)

_COLD_AS_HOT = "is the state of a loop that does nothing else, but this program does other things"

HOT_OR_COLD = Exercise(
    "06.hot-or-cold",
    "In which state do you measure?\n\n"
    "a: One layer of a language model. Each word takes 80 such layers, with 140 GB of weights in "
    "all; then the next word starts.\n\n"
    "b: One step of a solver that updates the same 4 MiB ten thousand times.\n\n"
    "c: An activation on 8 MiB that runs right after the matmul that writes its input.\n\n"
    "d: Which of two sums over 30 MiB is the better kernel by itself, whatever ran before.\n\n"
    "e: What one softmax adds to a program of many softmaxes on different data, including the "
    "results that it leaves for the next one to write back.",
    Table(
        right={"a": "cold", "b": "hot", "c": "hot", "d": "cold", "e": "rotated"},
        why="Measure in the state in which your program finds the cache, and report that state "
        "with the number.",
        allowed=(("hot", "cold", "rotated"),),
        wrong={
            ("a", "hot"): Diagnosis(
                "always-hot",
                f"a: hot {_COLD_AS_HOT}: all the other layers pass through the cache first.",
            ),
            ("b", "cold"): Diagnosis(
                "always-cold",
                "b: nothing else runs between two steps, so each step finds the data of the last "
                "one. Cold would add the cost of a flush that the program never makes.",
            ),
            ("c", "cold"): Diagnosis(
                "written-is-hot",
                "c: its input was written a moment ago, and written data are in the cache.",
            ),
            ("e", "cold"): Diagnosis(
                "clean-is-nobodys",
                "e: after a read flush no earlier results wait to be written back, and its own "
                "go to memory after the sample has ended. In such a program each softmax pays "
                "for the one before it.",
            ),
            ("d", "rotated"): Diagnosis(
                "neighbours",
                "d: by itself means without the results of other kernels. A flush that reads "
                "gives you that.",
            ),
            ("d", "hot"): Diagnosis(
                "flattered",
                "d: when it is hot, the sum finds its 30 MiB in the cache. Then you compare the "
                "two kernels without the memory traffic that they were written for.",
            ),
        },
        otherwise=(
            Diagnosis(
                "wrong-state",
                "For each case ask: what ran just before, how many bytes did it touch, and which "
                "results still wait to be written back?",
            ),
        ),
    ),
    hints=(
        "Rotation is cold, too. There a kernel also pays for the results of the one before.",
        "Two are hot, two are cold, one is rotated.",
    ),
)


BOTH = Exercise(
    "06.both",
    "The small addition moves its bytes faster than the memory can. Twice the numbers take more "
    "than twice as long. What explains both?",
    Choice(
        right="c",
        why="From a cache on the chip the bytes come faster than from the memory. Tensors that "
        "are too large for it come from the memory in every call.",
        wrong={
            "a": Diagnosis(
                "clock",
                "A lower clock could make the large addition slower. But at no clock does the "
                "memory give more than its data sheet promises.",
            ),
            "b": Diagnosis(
                "fixed-cost",
                "A fixed cost makes the small addition slower for each number. Then twice the "
                "numbers would take less than twice as long.",
            ),
            "d": Diagnosis(
                "skipped-work",
                "PyTorch runs the kernel in every call: the driver has a record of each. And the "
                "inputs of the large addition have not changed either.",
            ),
        },
    ),
    hints=(
        "The same inputs are read in every call. Where could they be after the first one?",
        "What is different for tensors that are twice as large?",
    ),
    choices={
        "a": "The clock of the GPU is lower during the large addition.",
        "b": "Each launch has a fixed cost, which weighs more for few numbers.",
        "c": "The small tensors are still on the chip, from the call before. The large ones are "
        "not.",
        "d": "PyTorch sees that the inputs have not changed, and skips most of the work.",
    },
)

CHOOSE_A_FLUSH = Exercise(
    "06.choose-a-flush",
    "The weights of a linear layer fill a quarter of the L2. How long does the layer take on one "
    "row, by itself, when none of its weights are in the cache? Write the flush that runs before "
    "each sample. Then choose the reason that the table supports, recorded on an NVIDIA "
    "H200 (there the weights, 30 MiB, fill half of the L2), against a colleague who says: "
    "everybody fills a buffer with zeros.",
    FlushChoice(
        Choice(
            right="c",
            why="It is cold and clean: as many bytes come from memory as after writing, and no "
            "other kernel's bytes go there.",
            wrong={
                "a": Diagnosis(
                    "smaller-is-no-proof",
                    "a: the hot layer takes even less, and that is not the answer. A number is "
                    "not right because it is small. Look at the bytes that moved while the "
                    "kernel ran.",
                ),
                "b": Diagnosis(
                    "cheap-is-no-proof",
                    "b: that is true, but writing only one L2 is even cheaper, and as dirty. The "
                    "time of the flush is not in the sample.",
                ),
                "d": Diagnosis(
                    "not-colder",
                    "d: both are equally cold: 30.49 MB come from memory after either. Look at "
                    "the last column.",
                ),
            },
        )
    ),
    hints=(
        (
            "torch.sum(rows, dim=1, out=sums) reads all rows, allocates nothing and writes very "
            "little."
        ),
        "Compare the last two columns of the second and the third row.",
    ),
    choices={
        "a": "After a flush that reads, the layer takes less time, so that number is better.",
        "b": "Reading 120 MiB takes less time than writing 256 MiB.",
        "c": "All weights come from memory after both; after writing, 10 MB also go to memory.",
        "d": "Writing leaves part of the weights in the cache; reading does not.",
    },
    readings=_flush_readings,
)

BENCHMARK = Exercise(
    "06.benchmark",
    "Write benchmark(fn): as in lesson 05 it returns seconds and the clock. Now each sample "
    "finds a cold and clean cache, and the flush is not part of the sample.",
    BenchmarkJudge("flush"),
    hints=(
        "Create the buffer once, before the loop: twice the L2.",
        "The order of a sample is: flush, start.record(), fn(), end.record().",
    ),
)

EXERCISES = (BOTH, CHOOSE_A_FLUSH, HOT_OR_COLD, BENCHMARK, WHICH_IS_COLD, STAIRCASE)
