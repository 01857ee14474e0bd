"""The guesses of lesson 12."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "12.itself",
        "By how many percent is the new one slower?",
        unit="%",
        idea="The clock falls under load, so what is timed second is slower, whatever it is.",
    ),
    GuessQuestion(
        "12.largest",
        "Which one changes the time by the largest factor?",
        choices=("order", "allocator", "contention", "placement", "data"),
        idea=(
            "A program's order, memory, neighbours and data change its time by different factors."
        ),
    ),
    GuessQuestion(
        "12.fused",
        "How many times as long as PyTorch's does the formula take?",
        unit="times",
        idea="A fused kernel reads and writes the tensor once, not once for each step.",
    ),
    GuessQuestion(
        "12.slowest",
        "Which copy is the slowest?",
        choices=("contiguous", "transposed", "gathered"),
        idea="A copy is slow where it must fetch many sectors for few elements.",
    ),
    GuessQuestion(
        "12.batched",
        "The loop takes how many times as long as the foreach?",
        unit="times",
        idea="One foreach for many small tensors saves most of the launches.",
    ),
    GuessQuestion(
        "12.layout",
        "Contiguous takes how many times as long as channels_last?",
        unit="times",
        counts="direction",
        idea="The order of the data in memory changes the time of a convolution.",
    ),
    GuessQuestion(
        "12.padded",
        "How many times as long as n = 2,049 does n = 2,056 take?",
        unit="times",
        counts="direction",
        idea="Rows that end on a piece of 16 bytes can use the fast kernels again.",
    ),
)
