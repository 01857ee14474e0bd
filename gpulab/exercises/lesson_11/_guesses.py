"""The guesses of lesson 11."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "11.column",
        "Each row of the profiler's table has a time of its own on the GPU (Self CUDA). What "
        "percentage of the time that the GPU worked do all rows add up to?",
        unit="%",
        idea=(
            "Operators repeat the time of their kernels, and annotations repeat it again: do not "
            "add them up."
        ),
    ),
    GuessQuestion(
        "11.total",
        "How many times the step's time do the CPU totals add up to?",
        unit="times",
        counts="direction",
        idea="Totals count the same time several times; self times count it once.",
    ),
    GuessQuestion(
        "11.slower",
        "A profiled step takes how many times as long?",
        unit="times",
        counts="direction",
        idea="A profiler makes launches slower and leaves the kernels as they are.",
    ),
    GuessQuestion(
        "11.idle",
        "For what share of the step is the GPU idle?",
        unit="%",
        idea="The GPU is idle wherever the host is slower than it.",
    ),
    GuessQuestion(
        "11.share",
        "For what share of its time does the copy run beside a kernel?",
        unit="%",
        idea="A copy from pinned memory on a stream of its own can run beside a kernel.",
    ),
    GuessQuestion(
        "11b.util",
        "What is GPU-Util while this one thread runs?",
        unit="%",
        idea="GPU-Util counts the time with a kernel; a kernel of one thread is a kernel.",
    ),
    GuessQuestion(
        "11b.power",
        "How many times the power of the one thread do the matmuls draw?",
        unit="times",
        idea="Two programs with the same GPU-Util can draw very different power.",
    ),
    GuessQuestion(
        "11b.half",
        "What is GPU-Util now?",
        unit="%",
        idea="GPU-Util is a share of time, so a kernel for half of the time reads about one half.",
    ),
    GuessQuestion(
        "11b.freed",
        "What share of the 256 MiB is free again after the tensor is deleted?",
        unit="%",
        idea="PyTorch keeps the memory of a deleted tensor, and the driver counts it as used.",
    ),
)
