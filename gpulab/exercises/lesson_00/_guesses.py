"""The guesses of lesson 00."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "00.source",
        "Will the times in this notebook be measured on hardware, or computed by the virtual GPU?",
        choices=("measured", "virtual"),
        idea=(
            "Ask of every time where it comes from: measured, recorded, or computed by the "
            "virtual GPU."
        ),
    ),
    GuessQuestion(
        "00.matmul",
        "How long does one matmul take?",
        idea="A large matmul takes well under a millisecond; a GPU's times are microseconds.",
    ),
    GuessQuestion(
        "00.growth",
        "How many times as long does it take?",
        unit="times",
        counts="percent",
        idea=(
            "Twice the side is eight times the work: a time should be close to what you can "
            "work out."
        ),
    ),
    GuessQuestion(
        "00.agree",
        "Three methods time the same matmul. Do they agree within a factor of 2?",
        choices=("yes", "no"),
        idea=(
            "A narrow interval says how well a number repeats, not that the method timed what "
            "you meant."
        ),
    ),
)
DRAWN: dict[str, str] = {}
