"""The guesses of lesson 02."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "02.after",
        "By what factor is the second reading longer?",
        unit="times",
        idea="Without a wait after the work, a stopwatch reads the launch alone.",
    ),
    GuessQuestion(
        "02.before",
        "By what factor is your reading too long?",
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
        "02.whole",
        "Which kernels have ended?",
        choices=("neither", "A", "A and B"),
        idea="torch.cuda.synchronize() waits for every stream of the device.",
    ),
    GuessQuestion(
        "02.one",
        "Which kernels have ended?",
        choices=("neither", "A", "A and B"),
        idea="stream.synchronize() waits for one stream and for no other.",
    ),
    GuessQuestion(
        "02.marker",
        "Which kernels have ended?",
        choices=("neither", "A", "A and B"),
        idea=(
            "event.synchronize() waits for what was launched before the event, and for nothing "
            "after it."
        ),
    ),
    GuessQuestion(
        "02.gpu-side",
        "Which kernels have ended?",
        choices=("neither", "A", "A and B"),
        idea="wait_event makes a stream wait, not the host.",
    ),
    GuessQuestion(
        "02.late",
        "Which of A and C has ended?",
        choices=("neither", "A", "A and C"),
        idea=(
            "wait_stream waits for the work that is in the other stream at that moment, and for "
            "nothing later."
        ),
    ),
    GuessQuestion(
        "02.slower",
        "By what factor do the waits slow the model down?",
        unit="times",
        counts="direction",
        idea="A wait after each layer leaves the GPU idle while the host launches the next one.",
    ),
    GuessQuestion(
        "02.size",
        "Overhead below 5 % from which n on?",
        choices=("64", "512", "4096", "none of these"),
        idea="The overhead of a wait is a fixed time, so it matters for short kernels only.",
    ),
    GuessQuestion(
        "02.larger",
        "How does the factor change?",
        choices=("larger", "the same", "smaller"),
        idea="Each wait costs about the same; the shorter the kernel, the larger the factor.",
    ),
)
DRAWN: dict[str, str] = {}
