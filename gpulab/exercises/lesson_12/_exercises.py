"""Exercises of lesson 12: sources of variation, memory sectors, speed-ups, and seven claims."""

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Diagnosis, Table
from gpulab.exercises.lesson_12._sectors import SECTORS_JUDGE

_SOURCES = ("clock", "data", "order", "allocator", "contention", "placement")
_SOURCE_OF = {
    "a": "clock",
    "b": "order",
    "c": "allocator",
    "d": "contention",
    "e": "placement",
    "f": "data",
}
_SELF = Diagnosis(
    "compared-with-itself",
    "b: the two functions are the same, so nothing in them can differ. What differs between the "
    "first and the second turn?",
)
_STEADY = Diagnosis(
    "steady-in-time",
    "a: the change comes slowly and stays, and the power is at its limit. What does a GPU do "
    "then?",
)
_SINGLE = Diagnosis(
    "at-random",
    "d: the long samples come at random and only while somebody else works. Your program does "
    "the same as before.",
)
_FLUSHED = Diagnosis(
    "after-the-flush",
    "e: the flush moves no data of the program anywhere except out of the cache.",
)


def _any_other(letter: str, diagnosis: Diagnosis) -> dict[tuple[str, str], Diagnosis]:
    """Return the same diagnosis for each wrong source of a reading."""
    right = _SOURCE_OF[letter]
    return {(letter, source): diagnosis for source in _SOURCES if source != right}


SOURCE = Exercise(
    "12.source",
    "Six readings that vary. What is the source of each?\n\n"
    "    a   samples of the third minute are 12 percent above the first;\n"
    "        the power is at its limit\n"
    "    b   f timed against f: the second is slower, whenever\n"
    "        the cell is run after a pause\n"
    "    c   the first call after each empty_cache() takes 0.9 ms\n"
    "        more on the host\n"
    "    d   single samples take two to ten times the median, only\n"
    "        while a colleague's job runs on the same GPU\n"
    "    e   the second call in a row is faster than the first;\n"
    "        after a flush the first is slow again\n"
    "    f   the benchmark with torch.zeros is 8 percent faster than\n"
    "        the program with images; the power is lower",
    Table(
        right=_SOURCE_OF,
        why="You can recognise each source. The clock falls slowly and stays low. Order shows if "
        "you compare a function with itself. The allocator costs time on the host. Contention "
        "comes at random, placement follows the flush, and data change the power.",
        allowed=(_SOURCES,),
        wrong={
            **_any_other("b", _SELF),
            ("b", "clock"): Diagnosis(
                "the-clock-is-the-means",
                "b: the clock falls, but why does it always hit the same side? Turn the two "
                "around and look again.",
            ),
            **_any_other("a", _STEADY),
            **_any_other("d", _SINGLE),
            **_any_other("e", _FLUSHED),
            ("c", "placement"): Diagnosis(
                "who-pays",
                "c: the host takes longer, not the kernel. Where does the memory of the result "
                "come from?",
            ),
            ("f", "clock"): Diagnosis(
                "what-moved-the-clock",
                "f: the clock is higher, but the two programs ran on the same GPU. What is "
                "different in what they were given?",
            ),
        },
        otherwise=(
            Diagnosis(
                "another-source",
                "For each, ask: when does it come, does it go away, and is it on the host or on "
                "the GPU?",
            ),
        ),
    ),
    hints=(
        "Look for what was changed between the short readings and the long ones.",
        "Each of the six words is used once.",
    ),
)

SECTORS = Exercise(
    "12.sectors",
    "Write sectors(n, stride, size_bytes): n elements are read, each stride elements after the "
    "one before. The first begins at the start of a sector of 32 bytes, and an element never "
    "crosses the end of a sector. How many sectors must the GPU fetch?",
    SECTORS_JUDGE,
    hints=(
        "Element k begins at byte k * stride * size_bytes.",
        "Divide that by 32 without the rest, and count how many different numbers you get.",
    ),
)

_CURES = ("batch", "fuse", "precision", "layout", "none")

CURE = Exercise(
    "12.cure",
    "Five programs and what their profiles say. Which change helps most? 'batch': fewer launches "
    "(foreach, a graph). 'fuse': several operations in one kernel. 'precision': half precision "
    "and tensor cores. 'layout': channels_last. 'none': none of these.\n\n"
    "    a   2,000 kernels of 2 µs; the GPU is busy for a quarter of the time\n"
    "    b   6 elementwise kernels on 400 MB each; the GPU is always busy\n"
    "    c   4 matmuls of 8,192 in float32; the GPU is always busy\n"
    "    d   half-precision convolutions, and before each of them\n"
    "        a kernel named nchwToNhwc\n"
    "    e   one copy of 2 GB from pageable memory, and nothing else",
    Table(
        right={"a": "batch", "b": "fuse", "c": "precision", "d": "layout", "e": "none"},
        why="Each change saves one thing: batching saves the host's launches, fusion trips to "
        "memory, lower precision arithmetic and bytes, a layout conversions. A copy from "
        "pageable memory needs pinned memory (lesson 08), and none of these.",
        allowed=(_CURES,),
        wrong={
            ("a", "precision"): Diagnosis(
                "idle-gpu",
                "a: the GPU is idle for three quarters of the time. A faster kernel would only "
                "wait longer for the next launch.",
            ),
            ("a", "fuse"): Diagnosis(
                "fusing-saves-launches-too",
                "a: fusion would help a little, as it saves launches too. But what limits the "
                "program is the number of launches, whatever the kernels do.",
            ),
            ("b", "batch"): Diagnosis(
                "few-launches",
                "b: six launches cost some microseconds, and the kernels take far longer. What "
                "does each of them read and write?",
            ),
            ("b", "precision"): Diagnosis(
                "half-the-bytes",
                "b: half precision halves the bytes. Another change avoids most of the trips to "
                "memory.",
            ),
            ("c", "fuse"): Diagnosis(
                "matmul-is-compute",
                "c: a large matmul is limited by arithmetic (lesson 10), not by its trips to "
                "memory.",
            ),
            ("c", "batch"): Diagnosis("four-launches", "c: four launches. The GPU is busy."),
            ("d", "precision"): Diagnosis(
                "already-half",
                "d: it is in half precision already. What does the extra kernel do?",
            ),
            ("d", "fuse"): Diagnosis(
                "do-not-need-it",
                "d: you do not need to fuse the conversion: you can avoid it.",
            ),
            ("e", "batch"): Diagnosis(
                "one-copy", "e: there is one copy, so there is nothing to batch."
            ),
        },
        otherwise=(
            Diagnosis(
                "another-limit",
                "Ask first whether the GPU is busy, and then with what: launches, bytes, or "
                "arithmetic.",
            ),
        ),
    ),
    hints=(
        "What exactly did the fusion save, and what did the layout save?",
        "Each word is used once.",
    ),
)

_VERDICTS = ("holds", "does not hold", "cannot run")
_NO_SUCH_NAME = Diagnosis(
    "no-such-function",
    "a: look at the outcome of its listing. Can a claim hold about a function that does not "
    "exist?",
)

VERDICTS = Exercise(
    "12.verdicts",
    "Seven claims. What is the verdict on each, for the machine in use?\n\n"
    "    a   torch.cuda.memcpy_async copies a tensor to shared memory\n"
    "    b   reshape images to (batch, features) before conv2d,\n"
    "        to coalesce its reads\n"
    "    c   a weight matrix is faster in channels_last\n"
    "    d   any operation on the default stream serialises all streams\n"
    "        of PyTorch\n"
    "    e   on an idle GPU, a stopwatch is wrong without a synchronize\n"
    "        before the work\n"
    "    f   with non_blocking=True a copy from ordinary memory\n"
    "        does not block the host\n"
    "    g   creating the context takes 100 to 500 ms",
    Table(
        right={
            "a": "cannot run",
            "b": "cannot run",
            "c": "cannot run",
            "d": "does not hold",
            "e": "does not hold",
            "f": "does not hold",
            "g": "holds",
        },
        why="Three listings raise. d is true of the blocking streams of CUDA, and PyTorch's are "
        "not blocking. e is true while other work is queued, as in lesson 13. f needs "
        "pinned memory. g holds on the machines that were tried; yours may be faster.",
        allowed=(_VERDICTS,),
        wrong={
            ("a", "holds"): _NO_SUCH_NAME,
            ("a", "does not hold"): _NO_SUCH_NAME,
            ("b", "holds"): Diagnosis(
                "conv2d-needs-four",
                "b: conv2d wants images with three or four dimensions. What did its listing do?",
            ),
            ("c", "holds"): Diagnosis(
                "four-dimensions",
                "c: channels_last orders batch, channels, height and width. How many of these "
                "has a matrix?",
            ),
            ("d", "holds"): Diagnosis(
                "legacy-stream",
                "d: that is what CUDA's documentation says about blocking streams. What did the "
                "three sleeps take, divided by one?",
            ),
            ("e", "holds"): Diagnosis(
                "idle-queue",
                "e: the wait before is for work that is still queued. What did the stopwatch "
                "read when there was none?",
            ),
            ("f", "holds"): Diagnosis(
                "pageable",
                "f: the driver copies pageable memory in pieces, through memory of its own. "
                "How long did the call take, beside one from pinned memory?",
            ),
            ("g", "does not hold"): Diagnosis(
                "look-at-the-claim",
                "g: compare with the recorded value. If your first call was shorter, the driver "
                "was loaded already.",
            ),
        },
        otherwise=(
            Diagnosis(
                "run-it",
                "Run the cells of this section again, and read what each claim says.",
            ),
        ),
    ),
    hints=(
        "A listing that raises has no time, so its claim can't be tested.",
        "Three cannot run, three do not hold, and one holds.",
    ),
)

EXERCISES = (SOURCE, SECTORS, CURE, VERDICTS)
