"""Which time to compare, where two lines meet, why some transfers never pay, what n = 210 says."""

from typing import TYPE_CHECKING

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Choice, Diagnosis, Quantities, Table
from gpulab.exercises.lesson_09._break_even import BreakEven

if TYPE_CHECKING:
    import pandas as pd


_LAUNCH_IS_NO_WORK = Diagnosis(
    "launch-is-no-work",
    "The launch returns before the work has begun, and takes as long for n = 64 as for 8,192. "
    "Nobody gets a result in that time, so it says nothing of who is faster.",
)
_WAITS_FOR_ALL = Diagnosis(
    "the-user-waits-for-all",
    "a: the user waits for the launch and the wake-up as well. The kernel alone is what remains "
    "where something else hides them.",
)
_QUEUE_HIDES = Diagnosis(
    "the-queue-hides-the-launch",
    "b: nobody waits behind each single operation. While one runs, the next ones are launched, so "
    "a further operation costs its kernel.",
)
_COPIES_COUNT = Diagnosis(
    "copies-are-part-of-it",
    "c: the data are not on the GPU when the request comes, and its answer must leave it. On the "
    "CPU there is no such step, so it belongs to the comparison.",
)
_NO_COPIES = Diagnosis(
    "no-copies-here",
    "Where are the data before, and who needs the result? Only where they come from the host and "
    "go back to it do the copies belong to the time.",
)
_NOT_ALONE = Diagnosis(
    "which-part-is-waited-for",
    "Ask of each: who waits, and for what? Launch, kernel, wake-up and copies are all there; "
    "which of them does something else hide?",
)

WHICH_TIME = Exercise(
    "09.which-time",
    "A GPU can be timed in four ways, all of them right readings of something. Which of them is "
    "to be compared with the CPU's time in a, b and c, and which one did the colleague in d "
    "compare?\n\n"
    "    a   The data are on the GPU. A user turns a knob, one FFT is computed,\n"
    "        and the program needs its result at once.\n"
    "    b   A training step launches 1,000 operations and reads the loss\n"
    "        at the end. What does one more of them cost?\n"
    "    c   A request brings an array over the network, it is sorted,\n"
    "        and the sorted array goes back over the network.\n"
    '    d   "A product takes 12 µs on my GPU, for n = 128 as for n = 8,192:\n'
    '        I put perf_counter before and behind a @ b."',
    Table(
        right={"a": "until done", "b": "kernel alone", "c": "with copies", "d": "launch"},
        why="What counts is what somebody waits for. In a that is the launch, the kernel and the "
        "wake-up, in c the copies too; in b the queue hides all but the kernel. In d nobody "
        "waited for anything.",
        allowed=(("launch", "until done", "kernel alone", "with copies"),),
        wrong={
            ("a", "launch"): _LAUNCH_IS_NO_WORK,
            ("b", "launch"): _LAUNCH_IS_NO_WORK,
            ("c", "launch"): _LAUNCH_IS_NO_WORK,
            ("d", "until done"): Diagnosis(
                "nothing-waits",
                "d: which line of the colleague's waits for the GPU? Without a synchronize the "
                "second reading of the clock comes when the launch has returned.",
            ),
            ("d", "kernel alone"): Diagnosis(
                "host-clock",
                "d: perf_counter is the host's clock, and the kernel runs on the device. For "
                "n = 8,192 it takes some 20 ms on an H200: what takes 12 µs?",
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
        "Follow the data: where are they before, where are they needed afterwards?",
        "Each of the four words is used once.",
    ),
)

# The two lines of the exercise: seconds, bytes per second; an addition moves 12 bytes an element.
_CPU_FIXED_S, _CPU_RATE = 2e-6, 40e9
_GPU_FIXED_S, _GPU_RATE = 14e-6, 4e12
_ADD_BYTES = 12


def _meeting(
    gpu_fixed_s: float = _GPU_FIXED_S,
    gpu_rate: float = _GPU_RATE,
    cpu_fixed_s: float = _CPU_FIXED_S,
    item_bytes: int = _ADD_BYTES,
) -> float:
    """Return the elements at which the two lines meet."""
    return (gpu_fixed_s - cpu_fixed_s) / (1 / _CPU_RATE - 1 / gpu_rate) / item_bytes


_FORGOT_CPU = Diagnosis(
    "cpu-has-a-fixed-cost",
    "You take the GPU's fixed cost alone. The CPU has one too, and only the difference of the "
    "two is to be made up for.",
)
_ADDED = Diagnosis(
    "fixed-costs-added",
    "You add the fixed costs. Set the two times equal: 2 + slope * x = 14 + slope * x. Which sign "
    "do you get when both fixed costs are on one side?",
)
_IN_BYTES = Diagnosis(
    "bytes-are-not-elements",
    "That is the number of bytes. An addition of n elements moves 12 n of them: two tensors are "
    "read, a third is written, four bytes each.",
)
_ONE_TENSOR = Diagnosis(
    "three-tensors",
    "You count 4 bytes an element. Two tensors are read and a third is written: 12.",
)
_NO_RESULT = Diagnosis(
    "result-forgotten", "You count 8 bytes an element, what is read. The result is written: 12."
)
_HALVED = Diagnosis(
    "faster-gpu-halves",
    "n_fast_gpu: twice the rate does not halve n. At the crossing the GPU spends 0.1 of its 14 µs "
    "on bytes; a faster memory makes the 0.1 smaller. What is the rest?",
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
    "From which n on is the GPU faster (n)? And from which n, if its memory were twice as fast "
    "(n_fast_gpu), or if its fixed cost were twice as large (n_slow_launch)?",
    Quantities(
        right={
            "n": _meeting(),
            "n_fast_gpu": _meeting(gpu_rate=2 * _GPU_RATE),
            "n_slow_launch": _meeting(gpu_fixed_s=2 * _GPU_FIXED_S),
        },
        why="Fixed costs apart, divided by slopes apart. As the GPU's slope is a hundredth of the "
        "CPU's, it hardly matters here: small work is decided by the launch, not by the GPU.",
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
            "write both times as fixed + 12 n / rate, in seconds and bytes per second, set them "
            "equal, and solve for n. Mind that 1 µs is 1e-6 s and 1 GB/s is 1e9 bytes/s.",
        ),
    ),
    hints=(
        "fixed_cpu + 12 n / rate_cpu = fixed_gpu + 12 n / rate_gpu",
        "n = (14e-6 - 2e-6) / (1/40e9 - 1/4e12) / 12",
    ),
)

# One NVIDIA H200 and its 16 Xeon cores, 2026-11-20: torch.add of two float32 tensors, what one
# waits for, and the same with copies from and to ordinary (pageable) memory; seconds.
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
    "A single addition: what the CPU takes, what the GPU takes with its data in place, and with "
    "the copies there and back, from and to ordinary memory. The last column is never the "
    "smallest. Would it be for still larger tensors, and why?",
    Choice(
        right="c",
        why="Both grow with the bytes, so their ratio stays. The CPU reads and writes each byte "
        "once, at the rate of its memory; the copies move the same bytes over something slower. "
        "What happens between the copies, and how fast, does not matter any more.",
        wrong={
            "a": Diagnosis(
                "fixed-cost-fades",
                "A fixed cost fades as the size grows: at 2^26 the launch is a ten-thousandth of "
                "the last column. What grows with the size, and how fast?",
            ),
            "b": Diagnosis(
                "kernel-is-quick",
                "Compare gpu_s with cpu_s at 2^26: the addition itself is more than 100 times "
                "faster on the GPU. Where are the other 160 ms?",
            ),
            "d": Diagnosis(
                "ratio-stays",
                "From 2^24 to 2^26 all three columns grow about fourfold. A ratio that stays "
                "does not reach 1, however long you wait.",
            ),
        },
    ),
    hints=(
        "Divide 12 bytes for each element by each of the three times, at 2^26.",
        "Does gpu_with_copies_s / cpu_s change from 2^24 to 2^26?",
    ),
    choices={
        "a": "No: launching and waiting cost too much for a single operation.",
        "b": "No: an addition is too simple for a GPU to be faster.",
        "c": "No: the copies are slower for each byte than the CPU's whole addition.",
        "d": "Yes: the larger the tensors, the more the GPU's speed counts.",
    },
    readings=_add_readings,
)

HOW_MANY = Exercise(
    "09.how-many",
    "The data are on the host, and the result is needed there. In between, an operation is "
    "applied again and again. Write n_needed(cpu_s, gpu_s, transfers_s): with how many operations "
    "in a row is it faster to copy the data to the GPU, run them all there, and copy the result "
    "back?",
    BreakEven(
        why="Each operation on the GPU earns cpu_s - gpu_s, and the transfers are paid once. So "
        "the first whole number above transfers_s / (cpu_s - gpu_s); and where nothing is earned, "
        "no number is enough.",
    ),
    hints=(
        "k operations: k * cpu_s on the one side, transfers_s + k * gpu_s on the other.",
        "math.floor(transfers_s / (cpu_s - gpu_s)) + 1, if the difference is above zero.",
    ),
)

WHAT_IT_SAYS = Exercise(
    "09.what-it-says",
    "Somebody has measured both curves of the product and writes: n = 210 [195, 230]. What "
    "follows from that?",
    Choice(
        right="b",
        why="The interval is where the two curves may cross, as far as these samples tell, on "
        "this machine, with these threads, this type and this way of timing. Inside it nothing "
        "is decided.",
        wrong={
            "a": Diagnosis(
                "machine-belongs-to-it",
                "Half of a crossover is the CPU. With other cores, or one thread in place of "
                "sixteen, the same GPU crosses elsewhere: section 8 shows it.",
            ),
            "c": Diagnosis(
                "interval-of-the-place",
                "The interval is about the place of the crossing, on the axis of sizes. It says "
                "nothing of how single calls scatter.",
            ),
            "d": Diagnosis(
                "gain-is-another-question",
                "At the end of the interval the GPU is just surely not slower. How much faster it "
                "is at some size, the distance of the curves there tells.",
            ),
        },
    ),
    hints=(
        "Which quantity does the interval belong to: a size, or a time?",
        "What would change if you had measured with one thread?",
    ),
    choices={
        "a": "On any machine with such a GPU, products of n = 230 and more belong on the GPU.",
        "b": "On this machine these data do not tell which side is faster at n = 200.",
        "c": "Of 100 products with n = 210, about 95 take the same time on both sides.",
        "d": "At n = 230 the GPU is about 10 % faster, as 230 is 10 % more than 210.",
    },
)

EXERCISES = (WHICH_TIME, MEETING_POINT, NEVER_PAYS, HOW_MANY, WHAT_IT_SAYS)
