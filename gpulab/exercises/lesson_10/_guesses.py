"""The guesses of lesson 10."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "10.odd",
        "The smaller matmul takes how many times as long as the larger one?",
        unit="times",
        counts="direction",
        idea=(
            "Less work can take longer: with odd sides the library has only slower kernels. The "
            "least time shows it."
        ),
    ),
    GuessQuestion(
        "10.twice",
        "Twice the side: how many times as high is the intensity?",
        unit="times",
        counts="percent",
        idea="The intensity of a square matmul is a third of its side in half precision.",
    ),
    GuessQuestion(
        "10.share",
        "What share of the data sheet's bandwidth does a copy reach?",
        unit="%",
        idea="A real copy does not reach the data sheet's bandwidth.",
    ),
    GuessQuestion(
        "10.tiny",
        "How long does the addition of 1,024 elements take?",
        idea=(
            "A tiny kernel takes the floor, about a microsecond, and not what its bytes would "
            "take."
        ),
    ),
    GuessQuestion(
        "10.turn",
        "What is the smallest side that is bound by compute?",
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
)
DRAWN = {
    "10.growing": "An addition is flat at the floor, and grows with its bytes only from there on.",
}
