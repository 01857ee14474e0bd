"""The roofline: least times, the exercise of the A100, limits by kind, and gaps of three times."""

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Diagnosis, Quantities, Table
from gpulab.exercises.lesson_10._least_time import LeastTime

LEAST_TIME = Exercise(
    "10.least-time",
    "Write least_time(m, k, n, peak, bandwidth): the least seconds for the half-precision product "
    "of an (m, k) matrix and a (k, n) one, if each matrix crosses to or from memory once. peak is "
    "in FLOP/s, bandwidth in bytes/s.",
    LeastTime(
        "Arithmetic and memory work side by side, so the larger of the two times is the least "
        "that the whole can take."
    ),
    hints=(
        "How many multiplications and additions has one element of the result?",
        "Two times: FLOPs / peak, and bytes / bandwidth. Which of them hides behind the other?",
    ),
)

_TWICE = Diagnosis(
    "bytes-twice",
    "memory_ms: that is the figure of the notes, and it is the wrong one. Their 6 d² are bytes "
    "already: 2 bytes for each of 3 d² elements. The factor 2 in the last line counts them a "
    "second time.",
)

A100 = Exercise(
    "10.a100",
    "Notes on an NVIDIA A100 say: 312 TFLOP/s in half precision, 2 TB/s. For the product of two "
    "square half-precision matrices of side d = 4096:\n\n"
    "    ridge    = 312e12 / 2e12          = 156 FLOP/byte\n"
    "    FLOPs    = 2 d³                   = 137.4e9\n"
    "    compute  = FLOPs / 312e12         = 0.44 ms\n"
    "    bytes    = 2 (d² + d² + d²)       = 6 d²\n"
    "    memory   = 2 bytes / 2e12         = 0.10 ms\n\n"
    "One of the lines is wrong, and with it one of the figures. Give all three as they should be.",
    Quantities(
        right={"ridge": 156, "compute_ms": 0.4405, "memory_ms": 0.0503},
        why="The bytes were counted twice: as 2 bytes an element, and again in the last line. The "
        "product stays bound by compute, now by 8.8 times; near the ridge such a slip would "
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
                    "memory_ms: you have taken out both factors of 2. One belongs there: an "
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
                    "ridge: that line is right. It is a quotient of two figures of the data "
                    "sheet and knows nothing of matrices.",
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
        "Three lines are pure division. Check the units of the one that is left.",
        "In 6 d² are three matrices and two bytes an element. What is the 2 in the last line for?",
    ),
)

WHICH_ROOF = Exercise(
    "10.which-roof",
    "Three roofs: the data sheet, the data sheet at the clocks of this moment, and what was "
    "measured. Which one answers which question?\n\n"
    "    a   You choose between two GPUs, and have neither.\n"
    "    b   Under load the clock stands at 1440 of 1980 MHz.\n"
    "        Which FLOP/s can no kernel exceed now?\n"
    "    c   Your own copy kernel reaches 3.9 TB/s.\n"
    "        Is there an easy gain left on this machine?\n"
    "    d   A reading gives 6 TB/s from memory. Is it possible at all?\n"
    "    e   The GPU is so new that no table knows its name.",
    Table(
        right={
            "a": "data sheet",
            "b": "live clocks",
            "c": "measured",
            "d": "data sheet",
            "e": "measured",
        },
        why="The data sheet bounds what can be, the clocks what can be now, and a measured roof "
        "says what good kernels reach. Name the roof with the share: 90 % of which one?",
        allowed=(("data sheet", "live clocks", "measured"),),
        wrong={
            ("d", "measured"): Diagnosis(
                "measured-is-no-limit",
                "d: a measured roof is what one good kernel reached. Another one may be better, "
                "so going above it proves nothing; going above the data sheet does.",
            ),
            ("c", "data sheet"): Diagnosis(
                "nobody-gets-there",
                "c: no copy reaches the data sheet's bandwidth, so the distance to it is not "
                "what you can win.",
            ),
            ("b", "data sheet"): Diagnosis(
                "boost-clock",
                "b: the data sheet's peaks are those of the boost clock. At 1440 MHz there are "
                "fewer cycles in a second.",
            ),
            ("a", "measured"): Diagnosis(
                "not-there-yet", "a: you have neither of them, so there is nothing to measure on."
            ),
            ("e", "data sheet"): Diagnosis(
                "no-sheet", "e: a name that matches nothing has no figures to look up."
            ),
            ("e", "live clocks"): Diagnosis(
                "no-sheet", "e: clocks scale the figures of a data sheet, and there is none."
            ),
        },
        otherwise=(
            Diagnosis(
                "wrong-roof",
                "Ask for each: is it about what is possible, possible now, or reached by others?",
            ),
        ),
    ),
    hints=(
        "A limit that may never be exceeded, or a mark that others have reached?",
        "Two are for the data sheet, two for what was measured, one for the clocks.",
    ),
)

WHICH_BOUND = Exercise(
    "10.which-bound",
    "An H200: 989 TFLOP/s in half precision, 4.8 TB/s, and the shortest kernel takes about a "
    "microsecond. The data come from memory. What limits each of these kernels?\n\n"
    "    a   product of two half-precision matrices of side 8192\n"
    "    b   sum of two vectors of 2**28 elements\n"
    "    c   sum of two vectors of 1,000 elements\n"
    "    d   linear layer, 4096 wide, half precision, on one row\n"
    "    e   softmax of 8192 rows of 4096\n"
    "    f   product of two half-precision matrices of side 256",
    Table(
        right={
            "a": "compute",
            "b": "memory",
            "c": "launch",
            "d": "memory",
            "e": "memory",
            "f": "launch",
        },
        why="Three limits, three questions: is it above the ridge of 206 FLOP/byte? If not, do "
        "its bytes take longer than a kernel takes to come and go?",
        allowed=(("compute", "memory", "launch"),),
        wrong={
            ("d", "compute"): Diagnosis(
                "products-compute",
                "d: it is a product, but each weight is read for one multiplication and one "
                "addition: 1 FLOP/byte, far below the ridge.",
            ),
            ("f", "compute"): Diagnosis(
                "small-product",
                "f: 33.6 MFLOP take 34 ns at the peak, and its bytes 82 ns. Something else takes "
                "more than both.",
            ),
            ("f", "memory"): Diagnosis(
                "small-product",
                "f: its 393 kB take 82 ns at 4.8 TB/s. That is less than a kernel takes to come "
                "and go.",
            ),
            ("e", "compute"): Diagnosis(
                "exponentials",
                "e: exponentials are dear for a CPU. Here 4 FLOP stand against 8 bytes: 0.5 "
                "FLOP/byte, and the units have time to spare.",
            ),
            ("c", "memory"): Diagnosis(
                "few-bytes",
                "c: 12 kB take 2.5 ns at 4.8 TB/s. No kernel is over so soon.",
            ),
            ("d", "launch"): Diagnosis(
                "weights-count",
                "d: one row is little, but its weights have 33.6 MB, which take 7 µs.",
            ),
            ("a", "memory"): Diagnosis(
                "above-the-ridge",
                "a: I = d/3 is 2,731 FLOP/byte there, 13 times the ridge.",
            ),
        },
        otherwise=(
            Diagnosis(
                "wrong-bound",
                "Work out two times, FLOPs over the peak and bytes over the bandwidth, and hold "
                "the larger one against a microsecond.",
            ),
        ),
    ),
    hints=(
        "The ridge is 989 / 4.8 = 206 FLOP/byte. Which of them lies above it?",
        "Of those below: how long do the bytes take? If less than a microsecond: the third.",
    ),
)

THREE_GAPS = Exercise(
    "10.three-gaps",
    "Three programs, a, b and c. Each takes three times as long as the plain roofline says, or "
    "more, and each for another reason. Find the reasons by experiment: slow_program(letter) is "
    "the program, slow_program(letter, grown=True) has 16 times as many elements, and "
    "slow_program(letter, rounded=True) has sides that are multiples of 64.",
    Table(
        right={"a": "too small", "b": "moves more", "c": "slow kernel"},
        why="A gap that closes when the work grows is the third bound. One that stays, with "
        "several kernels in the record, is bytes that were not counted. One that closes when the "
        "sides are rounded is a slower kernel than you counted on. Three causes, three cures: "
        "batch it, fuse it, pad it.",
        allowed=(("too small", "moves more", "slow kernel"),),
        wrong={
            ("a", "moves more"): Diagnosis(
                "one-kernel",
                "a: it is one kernel, which reads two vectors and writes one, just as counted. "
                "What becomes of its ratio when it grows?",
            ),
            ("a", "slow kernel"): Diagnosis(
                "same-kernel",
                "a: rounding changes nothing, its size is a power of two. The same kernel comes "
                "close to the roofline when there is more for it to do.",
            ),
            ("b", "too small"): Diagnosis(
                "stays-when-grown",
                "b: with 16 times as many elements its ratio is still above three, so size is "
                "not what it lacks. How many kernels are there?",
            ),
            ("b", "slow kernel"): Diagnosis(
                "each-is-good",
                "b: each of its kernels runs near the bandwidth. Count what all of them read and "
                "write together, and compare that with size_bytes.",
            ),
            ("c", "too small"): Diagnosis(
                "stays-when-grown",
                "c: grown to a side of 8191 it is as far off as before. A side of 2048 is not.",
            ),
            ("c", "moves more"): Diagnosis(
                "one-more-column",
                "c: a product of side 2047 moves hardly fewer bytes than one of side 2048, which "
                "is much quicker. What differs is where its rows begin.",
            ),
        },
        otherwise=(
            Diagnosis("wrong-reason", "Which experiment makes the ratio of this program smaller?"),
        ),
    ),
    hints=(
        "Make a table: the ratio as given, grown, rounded; and the number of kernels.",
        "One gap closes when grown, one when rounded, one with neither.",
    ),
)

EXERCISES = (LEAST_TIME, A100, WHICH_ROOF, WHICH_BOUND, THREE_GAPS)
