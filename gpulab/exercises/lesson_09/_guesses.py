"""The guesses of lesson 09."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "09.three",
        "Which of the three reads about the same for n = 64 and n = 2,048?",
        choices=("naive", "synchronized", "calibrated"),
        idea="Only the naive reading ignores the size: it is the launch.",
    ),
    GuessQuestion(
        "09.agree",
        "The lines meet at how many times the measured crossing?",
        unit="times",
        counts="direction",
        idea="Fixed costs and the CPU's slope explain a crossing well.",
    ),
    GuessQuestion(
        "09.first",
        "Which one crosses at the fewest bytes?",
        choices=("matmul", "add", "exp", "sum", "sort", "fft", "conv3x3", "softmax"),
        idea=(
            "An operation crosses where the CPU needs as long as the GPU's fixed cost, not by "
            "its arithmetic."
        ),
    ),
    GuessQuestion(
        "09.twenty",
        "20 operations take how many times as long as 1?",
        unit="times",
        idea="Data that stay on the GPU pay for their transfers once, not for each operation.",
    ),
    GuessQuestion(
        "09.moves",
        "With transfers matmul crosses at how many times the n?",
        unit="times",
        idea="Transfers move the crossing of matmul little: it has n³ operations for n² bytes.",
    ),
    GuessQuestion(
        "09.pays",
        "A single addition, with transfers?",
        choices=("crosses later", "never crosses"),
        idea="A single addition may never pay for its transfers.",
    ),
    GuessQuestion(
        "09.threads",
        "With one thread, matmul crosses at",
        choices=("a smaller n", "the same n", "a larger n"),
        idea="With fewer threads the CPU is slower, so the GPU gets ahead earlier.",
    ),
    GuessQuestion(
        "09.older",
        "With a T4, matmul crosses at how many times the n?",
        unit="times",
        idea=(
            "Near the crossing the launch decides, so a slower GPU crosses at nearly the same "
            "size."
        ),
    ),
)
DRAWN = {
    "09.near": (
        "The GPU's curve is flat until the work exceeds launch and wake-up; there the "
        "CPU is ahead."
    )
}
