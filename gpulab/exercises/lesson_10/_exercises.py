"""The roofline: what is farthest from it, least times, which roof, which bound, and three gaps."""

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Diagnosis, Quantities, Table
from gpulab.exercises.lesson_10._least_time import LEAST_TIME_JUDGE
from gpulab.exercises.lesson_10._which_bound import WHICH_BOUND_JUDGE

_OPERATIONS = ("argmax", "conv3x3", "linear", "matmul", "softmax", "sort", "topk")
_WHYS = ("the floor", "uncounted work", "a low clock")
_CLOCK = Diagnosis(
    "not-the-clock",
    "A low clock makes all operations slower by some tens of percent. Here one operation takes "
    "many times as long, and its neighbours don't.",
)

FARTHEST = Exercise(
    "10.farthest",
    "Use the explorer with the model “plain”, float32, cache “cold”, on the recorded H200. Which "
    "operation is farthest above its prediction among all sizes, and which one among the large "
    "ones, which move about 64 MiB? And why: is it the floor (no kernel is shorter than about a "
    "microsecond), uncounted work (it does more than the FLOPs and bytes that the roofline "
    "counts), or a low clock?",
    Table(
        right={
            "all sizes": ("argmax", "the floor"),
            "large": ("topk", "uncounted work"),
        },
        why="At small sizes the prediction goes to zero and the time doesn't: the smallest "
        "prediction wins, whatever the operation. At 64 MiB all kernels are long enough, and what "
        "is left are operations that compare, count or go over their data several times, which "
        "the roofline doesn't count.",
        allowed=(_OPERATIONS, _WHYS),
        wrong={
            ("all sizes", "uncounted work"): Diagnosis(
                "smallest-of-all",
                "all sizes: look at the size of the farthest point. Its bytes take less than a "
                "nanosecond at the full bandwidth. Can any kernel be that short?",
            ),
            ("large", "the floor"): Diagnosis(
                "long-enough",
                "large: the prediction itself is more than 10 µs there, and the floor about one.",
            ),
            ("large", "argmax"): Diagnosis(
                "slider-not-moved",
                "large: move the slider “Bytes moved” to 64.0 MiB. The picture names the farthest "
                "points, with their factors.",
            ),
            ("all sizes", "topk"): Diagnosis(
                "slider-not-back",
                "all sizes: move the slider “Bytes moved” back to “all sizes”.",
            ),
            ("all sizes", "linear"): Diagnosis(
                "refined-model",
                "all sizes: that is the farthest from the refined model. Set “Model” to “plain”.",
            ),
            ("all sizes", "a low clock"): _CLOCK,
            ("large", "a low clock"): _CLOCK,
        },
        otherwise=(
            Diagnosis(
                "read-the-line",
                "The picture names the farthest points, with their factors.",
            ),
            Diagnosis("wrong-why", "Compare the predicted time with a microsecond."),
        ),
        headings=("operation", "why"),
    ),
    hints=(
        "The picture names the farthest points, with their factors.",
        'By code: explorer.choose(model="plain", span=64 << 20), then print(explorer).',
    ),
)

LEAST_TIME = Exercise(
    "10.least-time",
    "Write least_time(m, k, n, peak, bandwidth): the least seconds of the half-precision matmul "
    "of an (m, k) matrix and a (k, n) one, if each matrix moves to or from memory once. peak is "
    "in FLOP/s, bandwidth in bytes/s.",
    LEAST_TIME_JUDGE,
    hints=(
        "How many multiplications and additions does one element of the result take?",
        "Two times: FLOPs / peak, and bytes / bandwidth. Which of them hides the other?",
    ),
)

_TWICE = Diagnosis(
    "bytes-twice",
    "memory_ms: that is the number of the notes, and it is the wrong one. Their 6 d² are bytes "
    "already: 2 bytes for each of 3 d² elements. The factor 2 in the last line counts them a "
    "second time.",
)

A100 = Exercise(
    "10.a100",
    "Notes on an NVIDIA A100 say: 312 TFLOP/s in half precision, 2 TB/s. For the matmul of two "
    "square half-precision matrices of side d = 4096:\n\n"
    "    ridge    = 312e12 / 2e12          = 156 FLOP/byte\n"
    "    FLOPs    = 2 d³                   = 137.4e9\n"
    "    compute  = FLOPs / 312e12         = 0.44 ms\n"
    "    bytes    = 2 (d² + d² + d²)       = 6 d²\n"
    "    memory   = 2 bytes / 2e12         = 0.10 ms\n\n"
    "One line is wrong, and with it one of the results. Give all three results as they should be.",
    Quantities(
        right={"ridge": 156, "compute_ms": 0.4405, "memory_ms": 0.0503},
        why="The notes count the bytes twice: as 2 bytes an element, and again in the last line. "
        "Compute is still the limit, now 8.8 times as long. Near the ridge such a slip would "
        "change the answer.",
        wrong=(
            ("memory_ms", 0.1007, _TWICE),
            (
                "compute_ms",
                0.2203,
                Diagnosis(
                    "multiply-add-is-two",
                    "compute_ms: a multiplication and an addition are two operations, so 2 d³ is "
                    "right as the notes have it.",
                ),
            ),
            (
                "memory_ms",
                0.0252,
                Diagnosis(
                    "elements-are-not-bytes",
                    "memory_ms: you have removed both factors of 2. One belongs there: an "
                    "element of half precision has 2 bytes.",
                ),
            ),
            (
                "memory_ms",
                0.0336,
                Diagnosis(
                    "result-forgotten",
                    "memory_ms: two matrices are read and one is written, so all three count.",
                ),
            ),
            (
                "ridge",
                78,
                Diagnosis(
                    "ridge-is-not-it",
                    "ridge: that line is right. It divides two figures of the data sheet and "
                    "doesn't depend on the matrices.",
                ),
            ),
            (
                "memory_ms",
                50.3,
                Diagnosis(
                    "microseconds", "memory_ms: that is in microseconds; give milliseconds."
                ),
            ),
        ),
        otherwise=Diagnosis("unexplained", "work it out again from the line that you trust."),
    ),
    hints=(
        "Three lines are plain division. Check the units of the last one.",
        "6 d² contains three matrices and two bytes an element. Why the 2 in the last line?",
    ),
)

WHICH_ROOF = Exercise(
    "10.which-roof",
    "Three roofs: the data sheet, the data sheet's figures at the clocks of this moment, and what "
    "was measured. Which one answers which question?\n\n"
    "    a   You choose between two GPUs, and you have neither.\n"
    "    b   Under load the clock is at 1440 of 1980 MHz.\n"
    "        Which FLOP/s can no kernel exceed now?\n"
    "    c   Your own copy kernel reaches 3.9 TB/s.\n"
    "        Is there an easy gain left on this machine?\n"
    "    d   A reading gives 6 TB/s from memory. Is that possible?\n"
    "    e   The GPU is so new that no table knows its name.\n"
    "    f   An H200 reads 1,010 TFLOP/s in half precision, at 1980 MHz;\n"
    "        the data sheet says 989, at 1830 MHz. Is that possible?",
    Table(
        right={
            "a": "data sheet",
            "b": "live clocks",
            "c": "measured",
            "d": "data sheet",
            "e": "measured",
            "f": "live clocks",
        },
        why="The data sheet bounds what is possible at the clocks that it states, the live clocks "
        "bound what is possible now, and a measured roof says what good kernels reach. Always "
        "name the roof: 90 % of which one?",
        allowed=(("data sheet", "live clocks", "measured"),),
        wrong={
            ("d", "measured"): Diagnosis(
                "measured-is-no-limit",
                "d: a measured roof is what one good kernel reached. Another one may be better, "
                "so a higher reading proves nothing. Memory faster than the data sheet does.",
            ),
            ("c", "data sheet"): Diagnosis(
                "nobody-gets-there",
                "c: no copy reaches the data sheet's bandwidth, so you can't win the whole "
                "distance to it.",
            ),
            ("b", "data sheet"): Diagnosis(
                "boost-clock",
                "b: the data sheet's peaks hold at higher clocks. At 1440 MHz there are fewer "
                "cycles in a second.",
            ),
            ("f", "data sheet"): Diagnosis(
                "stated-at-a-clock",
                "f: each peak of a data sheet holds at a stated clock. At a higher one there are "
                "more cycles in a second: 989 * 1980 / 1830 is 1,070.",
            ),
            ("a", "measured"): Diagnosis(
                "not-there-yet", "a: you have neither GPU, so you can't measure anything."
            ),
            ("e", "data sheet"): Diagnosis(
                "no-sheet", "e: for an unknown name there are no figures to look up."
            ),
            ("e", "live clocks"): Diagnosis(
                "no-sheet", "e: clocks scale the figures of a data sheet, and there is none."
            ),
        },
        otherwise=(
            Diagnosis(
                "wrong-roof",
                "Ask for each: what is possible, what is possible now, or what do others reach?",
            ),
        ),
    ),
    hints=(
        "Is it a limit that nothing exceeds, or a mark that others have reached?",
        "Each of the three roofs answers two of the questions.",
    ),
)

WHICH_BOUND = Exercise(
    "10.which-bound",
    "An H200: 989.4 TFLOP/s in half precision, 4.8 TB/s, and the shortest kernel takes about a "
    "microsecond. Write bound(flops, size_bytes), which returns what limits a kernel whose data "
    'come from memory: "compute", "memory" or "launch".',
    WHICH_BOUND_JUDGE,
    hints=(
        "Three times: flops / 989.4e12, size_bytes / 4.8e12, and 1e-6. Which one is the bound?",
        "max() of a dict of three times, with key=times.get, returns the name of the longest.",
    ),
)

_REASONS = ("too small", "moves more", "slow kernel", "low occupancy", "bank conflicts")

THREE_GAPS = Exercise(
    "10.three-gaps",
    "Three programs. a adds two vectors of 131,072 numbers. b computes "
    "x.sub(0.5).mul(2.0).add(1.0) of 8 million numbers in half precision. c multiplies two "
    "half-precision matrices of side 2047. Each takes at least three times its least time, and "
    "each for another reason.\n\n"
    "    too small        it does not fill the GPU: you time the floor\n"
    "    moves more       more bytes move than its inputs and its result have\n"
    "    slow kernel      the library takes another kernel than for its neighbours\n"
    "    low occupancy    the kernel needs so many registers or so much shared\n"
    "                     memory that few of its threads fit on a multiprocessor\n"
    "    bank conflicts   threads read from one bank of shared memory, and take turns",
    Table(
        right={"a": "too small", "b": "moves more", "c": "slow kernel"},
        why="If the gap closes when the work grows, it was the third bound. If it stays, with "
        "several kernels in the timeline, you didn't count all bytes. If it closes when you round "
        "the sides, the library used a slower kernel. Three causes, three cures: batch it, fuse "
        "it, pad it.",
        allowed=(_REASONS,),
        wrong={
            ("a", "moves more"): Diagnosis(
                "one-kernel",
                "a: it is one kernel, which reads two vectors and writes one, just as counted. "
                "What happens to its ratio when it grows?",
            ),
            ("a", "slow kernel"): Diagnosis(
                "same-kernel",
                "a: rounding changes nothing, its size is a power of two. The same kernel comes "
                "close to the roofline when it has more to do.",
            ),
            ("a", "low occupancy"): Diagnosis(
                "few-threads-at-all",
                "a: the same kernel comes near its least time when n grows, so its threads do "
                "fit. Here it has too few of them to begin with.",
            ),
            **{
                (letter, "bank conflicts"): Diagnosis(
                    "no-shared-memory",
                    f"{letter}: an operation on each element alone needs no shared memory, so "
                    "there are no banks to share.",
                )
                for letter in "ab"
            },
            ("b", "low occupancy"): Diagnosis(
                "each-is-good",
                "b: each of its kernels runs near the bandwidth, so enough threads wait for "
                "memory. Count what all of them read and write together.",
            ),
            **{
                ("c", inside): Diagnosis(
                    "not-seen-from-outside",
                    f"c: {inside} may play a part inside the kernel, but no time can show it. "
                    "What you can see: a side of 2048 has more work, and is several times faster.",
                )
                for inside in _REASONS[3:]
            },
            ("b", "too small"): Diagnosis(
                "stays-when-grown",
                "b: with 16 times as many elements its ratio is still above three, so it is not "
                "too small. How many kernels are there?",
            ),
            ("b", "slow kernel"): Diagnosis(
                "each-is-good",
                "b: each of its kernels runs near the bandwidth. Count what all of them read and "
                "write together, and compare that with x and the result.",
            ),
            ("c", "too small"): Diagnosis(
                "stays-when-grown",
                "c: grown to a side of 8191 it is as far off as before. A side of 2048 is not.",
            ),
            ("c", "moves more"): Diagnosis(
                "one-more-column",
                "c: a matmul of side 2047 moves hardly fewer bytes than one of side 2048, which "
                "is much faster. The difference is where its rows begin.",
            ),
        },
        otherwise=(
            Diagnosis("wrong-reason", "Which experiment makes the ratio of this program smaller?"),
        ),
    ),
    hints=(
        "Make a table: the ratio as given, grown and rounded, and the number of kernels.",
        "One gap closes when you grow the program, one when you round it, one with neither.",
    ),
)

EXERCISES = (FARTHEST, LEAST_TIME, A100, WHICH_ROOF, WHICH_BOUND, THREE_GAPS)
