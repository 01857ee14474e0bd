"""The guesses of lesson 09."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "09.copies",
        "Through the GPU, the sum takes how many times as long as on the CPU?",
        unit="times",
        counts="direction",
        idea="For a single operation, the copies to the GPU and back take most of the time.",
    ),
    GuessQuestion(
        "09.there",
        "With the data on the GPU, the addition takes how many times as long as on the CPU?",
        unit="times",
        counts="direction",
        idea="Without the copies, the GPU is ahead if the work is large enough.",
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
        "Copies included, 20 operations take how many times as long as 1?",
        unit="times",
        idea="Data that stay on the GPU pay for their transfers once, not for each operation.",
    ),
    GuessQuestion(
        "09.pays",
        "Does a single addition ever pay, with its transfers?",
        choices=("crosses later", "never crosses"),
        idea="A single addition may never pay for its transfers.",
    ),
    GuessQuestion(
        "09.threads",
        "With one thread, matmul crosses at how many times the n?",
        unit="times",
        counts="direction",
        idea="With fewer threads the CPU is slower, so the GPU gets ahead earlier.",
    ),
)
DRAWN = {
    "09.near": (
        "The GPU's curve is flat until the work exceeds launch and wake-up; there the "
        "CPU is ahead."
    )
}
