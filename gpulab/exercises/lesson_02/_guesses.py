"""The guesses of lesson 02."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "02.before",
        "a @ a just after ten others: how many times as long is the reading?",
        unit="times",
        idea=(
            "A wait includes everything in the queue, so wait before the stopwatch starts as well."
        ),
    ),
    GuessQuestion(
        "02.inside",
        "What does it read for the small addition, with both waits?",
        idea=(
            "Around a small kernel a synchronized stopwatch reads mostly the launch and the "
            "wake-up."
        ),
    ),
    GuessQuestion(
        "02.empty",
        "What does the stopwatch read with no work inside?",
        idea="A call of synchronize takes time even if there is nothing to wait for.",
    ),
    GuessQuestion(
        "02.layers",
        "Twenty layers with a wait after each: how many times as long as with one wait?",
        unit="times",
        counts="direction",
        idea="A wait after each layer leaves the GPU idle while the host launches the next one.",
    ),
    GuessQuestion(
        "02.gpu-side",
        "Which kernels have ended?",
        choices=("neither", "A", "A and B"),
        idea="wait_event makes a stream wait, not the host.",
    ),
    GuessQuestion(
        "02.late",
        "Which of A and C have ended?",
        choices=("neither", "A", "A and C"),
        idea=(
            "wait_stream waits for the work that is in the other stream at that moment, and for "
            "nothing later."
        ),
    ),
    GuessQuestion(
        "02.size",
        "From which of these n on are launch and wake-up less than 5 % of the reading?",
        choices=("64", "512", "4096", "none of these"),
        idea="The overhead of a wait is a fixed time, so it matters for short kernels only.",
    ),
    GuessQuestion(
        "02.longer",
        "How does the factor change when the kernels become longer?",
        choices=("larger", "the same", "smaller"),
        idea="Each wait costs about the same; the shorter the kernel, the larger the factor.",
    ),
)
