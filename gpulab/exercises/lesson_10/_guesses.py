"""The guesses of lesson 10."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "10.middle",
        "The median measured time is how many times its plain prediction?",
        unit="times",
        idea="The plain roofline is a bound and not a forecast: most operations take longer.",
    ),
    GuessQuestion(
        "10.twice",
        "Twice the side: the intensity grows by",
        unit="times",
        counts="percent",
        idea="The intensity of a square matmul is a third of its side in half precision.",
    ),
    GuessQuestion(
        "10.share",
        "A copy reaches how much of the data sheet's bandwidth?",
        unit="%",
        idea="A real copy does not reach the data sheet's bandwidth.",
    ),
    GuessQuestion(
        "10.tiny",
        "An addition of 1,024 elements takes",
        idea=(
            "A tiny kernel takes the floor, about a microsecond, and not what its bytes would "
            "take."
        ),
    ),
    GuessQuestion(
        "10.turn",
        "Bound by compute from which side on?",
        choices=("64", "128", "256", "512", "1024", "2048", "4096", "8192"),
        idea="A matmul is bound by compute where its intensity exceeds the ridge point.",
    ),
    GuessQuestion(
        "10.wave",
        "One row more takes how many times as long?",
        unit="times",
        counts="direction",
        idea="One more tile starts another wave, if the library does not choose other tiles.",
    ),
    GuessQuestion(
        "10.soft",
        "Softmax takes how many times as long as a copy?",
        unit="times",
        counts="direction",
        idea="Equal bytes do not mean equal times: a softmax is no copy.",
    ),
)
DRAWN = {
    "10.growing": "An addition is flat at the floor, and grows with its bytes only from there on.",
}
