"""The guesses of lesson 00."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "00.matmul",
        "A first measurement of a @ a, with n = 2048. What does it read?",
        idea="A precise number can be wrong: the first method does not time the matmul.",
    ),
    GuessQuestion(
        "00.growth",
        "From n = 2048 to n = 4096: how many times as long does the matmul take?",
        unit="times",
        counts="percent",
        idea=(
            "Twice the side is eight times the work: a time should be close to what you can "
            "work out."
        ),
    ),
    GuessQuestion(
        "00.agree",
        "Two other methods time the same matmul. Do all three agree within a factor of 2?",
        choices=("yes", "no"),
        idea=(
            "A narrow interval says how well a number repeats, not that the method timed what "
            "you meant."
        ),
    ),
)
