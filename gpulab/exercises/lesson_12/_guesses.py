"""The guesses of lesson 12."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "12.largest",
        "Which one changes the time by the largest factor?",
        choices=("clock", "data", "order", "allocator", "contention", "placement", "algorithm"),
        idea=(
            "A program's clock, data, order, memory and neighbours change its time by different "
            "factors."
        ),
    ),
    GuessQuestion(
        "12.slowest",
        "Which copy is the slowest?",
        choices=("contiguous", "every 2nd", "every 8th", "transposed", "gathered"),
        idea="A copy is slow where it must fetch many sectors for few elements.",
    ),
    GuessQuestion(
        "12.batched",
        "The loop takes how many times the foreach?",
        unit="times",
        idea="One foreach for many small tensors saves most of the launches.",
    ),
    GuessQuestion(
        "12.fused",
        "By hand takes how many times the fused one?",
        unit="times",
        idea="A fused kernel reads and writes the tensor once, not once for each step.",
    ),
    GuessQuestion(
        "12.layout",
        "Contiguous takes how many times channels_last?",
        unit="times",
        counts="direction",
        idea="The order of the data in memory changes the time of a convolution.",
    ),
)
DRAWN: dict[str, str] = {}
