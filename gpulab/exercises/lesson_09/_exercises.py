"""Exercises of lesson 09: which times to compare, where curves cross, and when copies pay off."""

from typing import TYPE_CHECKING

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Choice, Diagnosis, Quantities, Table
from gpulab.exercises.lesson_09._break_even import BREAK_EVEN

if TYPE_CHECKING:
    import pandas as pd


_WITH_COPIES = Diagnosis(
    "without-transfers",
    "That is the crossing without copies. Press “both” at “Copies”: the question is about inputs "
    "that come from the host and a result that goes back.",
)
_NOT_THE_LINES = Diagnosis(
    "from-the-lines",
    "That is where the two fitted lines cross. The title of the explorer names the crossing of "
    "the measured curves.",
)
_OTHER_LINK = Diagnosis(
    "another-link", "That is the crossing over another link. Look at “Link” once more."
)
# What the shipped recording of an H200 shows: the crossing over each link, the one of the two
# fitted lines, and the one without copies.
_CROSSINGS = {"n_pcie3": 678.1, "n_pcie5": 255.5, "n_nvlink": 242.8}
_FROM_LINES = {"n_pcie3": 547.0, "n_pcie5": 323.0, "n_nvlink": 267.3}
_WITHOUT_COPIES = 178.1

READ_OFF = Exercise(
    "09.read-off",
    "A matmul of two n by n matrices, float32. The inputs come from the host, and the result goes "
    "back to it: copies “both”. Find with the explorer: what is the smallest n for which the H200 "
    "is faster than the 16 cores beside it, over PCIe 3 (n_pcie3), over PCIe 5 (n_pcie5) and over "
    "NVLink (n_nvlink)?",
    Quantities(
        right=_CROSSINGS,
        why="Between the slowest and the fastest of these links the rate differs by a factor of "
        "almost 30, and n by less than 3. Small copies cost mostly their fixed cost, which no "
        "cable changes.",
        wrong=tuple(
            (link, size, diagnosis)
            for link in _CROSSINGS
            for size, diagnosis in (
                (_WITHOUT_COPIES, _WITH_COPIES),
                (_FROM_LINES[link], _NOT_THE_LINES),
                *((size, _OTHER_LINK) for other, size in _CROSSINGS.items() if other != link),
            )
        ),
        otherwise=Diagnosis(
            "unexplained",
            "the explorer shows another n. Choose matmul, float32, both recorded machines, copies "
            "“both” and this link; the title names the crossing.",
        ),
    ),
    hints=(
        "Press “both” at “Copies” first. The buttons of “Link” work then.",
        "By code: explorer.choose(transfers='both', link='PCIe 5'), then print(explorer).",
    ),
)

_LAUNCH_IS_NO_WORK = Diagnosis(
    "launch-is-no-work",
    "The launch returns before the work has begun, and takes as long for n = 64 as for n = 8,192. "
    "Nobody has a result at that moment, so it can't decide who is faster.",
)
_WAITS_FOR_ALL = Diagnosis(
    "the-user-waits-for-all",
    "a: the user also waits for the launch and the wake-up. The kernel alone counts only if "
    "something else hides the rest.",
)
_QUEUE_HIDES = Diagnosis(
    "the-queue-hides-the-launch",
    "b: the program doesn't wait after each operation. While one runs, it launches the next ones, "
    "so one more operation costs one more kernel.",
)
_COPIES_COUNT = Diagnosis(
    "copies-are-part-of-it",
    "c: the data aren't on the GPU when the request arrives, and the answer must leave it. The "
    "CPU doesn't need these copies, so they belong to the comparison.",
)
_NO_COPIES = Diagnosis(
    "no-copies-here",
    "Where are the data before the call, and who needs the result? The copies count only if the "
    "data come from the host or go back to it.",
)
_NOT_ALONE = Diagnosis(
    "which-part-is-waited-for",
    "Ask for each: who waits, and for what? Launch, kernel, wake-up and copies all happen. Which "
    "of them does something else hide?",
)

WHICH_TIME = Exercise(
    "09.which-time",
    "There are four ways to time the GPU, and each one measures something. Which one do you "
    "compare with the CPU's time in a, b and c? And which one did the colleague in d compare?\n\n"
    "    a   The data are on the GPU. A user turns a knob, the GPU computes\n"
    "        one FFT, and the program needs the result at once.\n"
    "    b   A training step launches 1,000 operations and reads the loss\n"
    "        at the end. What does one more operation cost?\n"
    "    c   An array arrives over the network, you sort it, and the sorted\n"
    "        array goes back over the network.\n"
    '    d   "A matmul takes 12 µs on my GPU, for n = 128 and for n = 8,192:\n'
    '        I read perf_counter before and after a @ b."',
    Table(
        right={"a": "until done", "b": "kernel alone", "c": "with copies", "d": "launch"},
        why="Compare what somebody waits for. In a that is launch, kernel and wake-up; in c the "
        "copies too; in b the full queue hides everything except the kernel. In d nobody waited "
        "for anything.",
        allowed=(("launch", "until done", "kernel alone", "with copies"),),
        wrong={
            ("a", "launch"): _LAUNCH_IS_NO_WORK,
            ("b", "launch"): _LAUNCH_IS_NO_WORK,
            ("c", "launch"): _LAUNCH_IS_NO_WORK,
            ("d", "until done"): Diagnosis(
                "nothing-waits",
                "d: which line of the colleague's code waits for the GPU? Without a synchronize "
                "the second reading of the clock comes as soon as the launch has returned.",
            ),
            ("d", "kernel alone"): Diagnosis(
                "host-clock",
                "d: perf_counter is the host's clock, and the kernel runs on the GPU. For "
                "n = 8,192 the kernel takes about 20 ms on an H200. So what takes 12 µs?",
            ),
            ("a", "kernel alone"): _WAITS_FOR_ALL,
            ("b", "until done"): _QUEUE_HIDES,
            ("c", "until done"): _COPIES_COUNT,
            ("c", "kernel alone"): _COPIES_COUNT,
            ("a", "with copies"): _NO_COPIES,
            ("b", "with copies"): _NO_COPIES,
        },
        otherwise=(_NOT_ALONE,),
    ),
    hints=(
        "Follow the data: where are they before, and where do you need them afterwards?",
        "Each of the four words is used once.",
    ),
)

# The two lines of the exercise: a fixed cost in seconds, and bytes per second. An addition of
# float32 moves 12 bytes per element.
_CPU_FIXED_S, _CPU_RATE = 2e-6, 40e9
_GPU_FIXED_S, _GPU_RATE = 14e-6, 4e12
_ADD_BYTES = 12


def _meeting(
    gpu_fixed_s: float = _GPU_FIXED_S,
    gpu_rate: float = _GPU_RATE,
    cpu_fixed_s: float = _CPU_FIXED_S,
    item_bytes: int = _ADD_BYTES,
) -> float:
    """Return the number of elements at which the two lines cross."""
    return (gpu_fixed_s - cpu_fixed_s) / (1 / _CPU_RATE - 1 / gpu_rate) / item_bytes


_FORGOT_CPU = Diagnosis(
    "cpu-has-a-fixed-cost",
    "You use the GPU's fixed cost alone. The CPU has one too: only the difference of the two must "
    "be made up.",
)
_ADDED = Diagnosis(
    "fixed-costs-added",
    "You add the fixed costs. Set the two times equal: 2 + slope * x = 14 + slope * x. Which sign "
    "do you get when you bring both fixed costs to one side?",
)
_IN_BYTES = Diagnosis(
    "bytes-are-not-elements",
    "That is the number of bytes. An addition of n elements moves 12 n bytes: it reads two "
    "tensors and writes a third, four bytes an element.",
)
_ONE_TENSOR = Diagnosis(
    "three-tensors",
    "You count 4 bytes an element. The addition reads two tensors and writes a third: 12.",
)
_NO_RESULT = Diagnosis(
    "result-forgotten", "You count 8 bytes an element, those that are read. With the result: 12."
)
_HALVED = Diagnosis(
    "faster-gpu-halves",
    "n_fast_gpu: twice the rate doesn't halve n. At the crossing the GPU spends only 0.1 of its "
    "14 µs on bytes, and a faster memory shortens only that 0.1. What is the rest?",
)
_DOUBLED = Diagnosis(
    "slow-launch-doubles",
    "n_slow_launch: not twice as many. The difference of the fixed costs counts, and that grows "
    "from 12 to 26 µs.",
)

MEETING_POINT = Exercise(
    "09.meeting-point",
    "An addition of n float32 elements. The lines through two measured curves are\n\n"
    "    CPU    2 µs fixed, then 40 GB/s\n"
    "    GPU   14 µs fixed, then  4 TB/s\n\n"
    "What is the smallest n for which the GPU is faster (n)? What would it be if the GPU's memory "
    "were twice as fast (n_fast_gpu), or if its fixed cost were twice as large (n_slow_launch)?",
    Quantities(
        right={
            "n": _meeting(),
            "n_fast_gpu": _meeting(gpu_rate=2 * _GPU_RATE),
            "n_slow_launch": _meeting(gpu_fixed_s=2 * _GPU_FIXED_S),
        },
        why="Divide the difference of the fixed costs by the difference of the slopes. The GPU's "
        "slope is a hundredth of the CPU's, so it hardly matters here: the launch decides small "
        "work, not the speed of the GPU.",
        # Each typical mistake is computed by the same formula with one wrong input.
        wrong=(
            ("n", _meeting() * _ADD_BYTES, _IN_BYTES),
            ("n", _meeting(item_bytes=4), _ONE_TENSOR),
            ("n", _meeting(item_bytes=8), _NO_RESULT),
            ("n", _meeting(cpu_fixed_s=0.0), _FORGOT_CPU),
            ("n", _meeting(cpu_fixed_s=-_CPU_FIXED_S), _ADDED),
            ("n_fast_gpu", _meeting() / 2, _HALVED),
            ("n_slow_launch", _meeting() * 2, _DOUBLED),
        ),
        otherwise=Diagnosis(
            "unexplained",
            "write both times as fixed + 12 n / rate, in seconds and bytes per second. Set them "
            "equal and solve for n. Note that 1 µs is 1e-6 s and 1 GB/s is 1e9 bytes/s.",
        ),
    ),
    hints=(
        "fixed_cpu + 12 n / rate_cpu = fixed_gpu + 12 n / rate_gpu",
        "n = (14e-6 - 2e-6) / (1/40e9 - 1/4e12) / 12",
    ),
)

# One NVIDIA H200 and its 16 Xeon cores, 2026-11-20, torch.add of two float32 tensors: elements,
# and seconds on the CPU, on the GPU until done, and on the GPU with copies from and to ordinary
# (pageable) memory.
_ADD_ROWS = (
    (2**12, 2.3e-6, 17.4e-6, 33.9e-6),
    (2**16, 9.6e-6, 18.7e-6, 56.3e-6),
    (2**20, 29.6e-6, 18.3e-6, 419.1e-6),
    (2**24, 4614.6e-6, 47.8e-6, 39052.1e-6),
    (2**26, 18648.3e-6, 148.1e-6, 160282.2e-6),
)


def _add_readings() -> "pd.DataFrame":
    import pandas as pd

    frame = pd.DataFrame(_ADD_ROWS, columns=["elements", "cpu_s", "gpu_s", "gpu_with_copies_s"])
    return frame.assign(source="recorded", device_name="NVIDIA H200 and 16 Xeon cores")


NEVER_PAYS = Exercise(
    "09.never-pays",
    "A single addition: the CPU's time, the GPU's time with its data in place, and the GPU's time "
    "with the copies in and out, from and to ordinary (pageable) memory. The last column is never "
    "the smallest. Would it be for still larger tensors, and why?",
    Choice(
        right="c",
        why="Both times grow with the bytes, so their ratio stays. The CPU reads and writes each "
        "byte once, at the rate of its memory. The copies move the same bytes over a slower link. "
        "What happens between the copies doesn't matter any more.",
        wrong={
            "a": Diagnosis(
                "fixed-cost-fades",
                "A fixed cost fades as the size grows: at 2^26 the launch is a ten-thousandth of "
                "the last column. What grows with the size, and how fast?",
            ),
            "b": Diagnosis(
                "kernel-is-quick",
                "Compare gpu_s with cpu_s at 2^26: the addition itself is more than 100 times "
                "faster on the GPU. Where do the other 160 ms come from?",
            ),
            "d": Diagnosis(
                "ratio-stays",
                "From 2^24 to 2^26 all three columns grow about fourfold. A ratio that stays "
                "the same never reaches 1.",
            ),
        },
    ),
    hints=(
        "At 2^26, divide 12 bytes an element by each of the three times.",
        "Does gpu_with_copies_s / cpu_s change from 2^24 to 2^26?",
    ),
    choices={
        "a": "No: launching and waiting cost too much for a single operation.",
        "b": "No: an addition is too simple for a GPU to be faster.",
        "c": "No: per byte, the copies are slower than the CPU's whole addition.",
        "d": "Yes: the larger the tensors, the more the GPU's speed counts.",
    },
    readings=_add_readings,
)

HOW_MANY = Exercise(
    "09.how-many",
    "The data are on the host, and the result is needed there. In between, the program applies an "
    "operation again and again. Write n_needed(cpu_s, gpu_s, transfers_s): for how many "
    "operations in a row is the GPU faster, if you copy the data in once, run all operations "
    "there, and copy the result back once?",
    BREAK_EVEN,
    hints=(
        "k operations: k * cpu_s on one side, transfers_s + k * gpu_s on the other.",
        "math.floor(transfers_s / (cpu_s - gpu_s)) + 1, if the difference is above zero.",
    ),
)

WHAT_IT_SAYS = Exercise(
    "09.what-it-says",
    "A colleague has measured both curves of a matmul at n = 128, 256 and 512, and writes: "
    "n = 178 [175, 180]. What follows?",
    Choice(
        right="b",
        why="The interval contains the noise of the points on both sides of the crossing, and "
        "nothing else: not how the curves bend between two measured sizes, not another day, not "
        "another number of threads, not another machine.",
        wrong={
            "a": Diagnosis(
                "machine-belongs-to-it",
                "Half of a crossover is the CPU. With other cores, or with one thread in place of "
                "16, the same GPU crosses elsewhere. Try it with “CPU threads”.",
            ),
            "c": Diagnosis(
                "interval-of-the-place",
                "The interval is about the place of the crossing, on the axis of sizes. It says "
                "nothing about how single calls scatter.",
            ),
            "d": Diagnosis(
                "gain-is-another-question",
                "At the end of the interval the GPU is just not slower any more. How much faster "
                "it is at some size is the distance of the curves there.",
            ),
        },
    ),
    hints=(
        "Between 128 and 256 nothing was measured. What did the figure assume there?",
        "Which quantity does the interval belong to: a size or a time?",
    ),
    choices={
        "a": "On any machine with such a GPU, a matmul of n = 180 or more belongs on the GPU.",
        "b": "If the curves are straight between 128 and 256, they cross at about 178 on that "
        "day; to be sure, measure sizes between them.",
        "c": "Of 100 calls with n = 178, about 95 take equally long on both sides.",
        "d": "At n = 180 the GPU is about 1 % faster, as 180 is 1 % more than 178.",
    },
)

EXERCISES = (READ_OFF, WHICH_TIME, MEETING_POINT, NEVER_PAYS, HOW_MANY, WHAT_IT_SAYS)
