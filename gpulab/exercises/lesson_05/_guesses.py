"""The guesses of lesson 05."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "05.in-sequence",
        "First A, then B: how many times as long as A does B take?",
        unit="times",
        counts="direction",
        idea="What runs second runs at a lower clock: a comparison in sequence is not fair.",
    ),
    GuessQuestion(
        "05.swapped",
        "First B, then A: how many times as long as A does B take now?",
        unit="times",
        counts="direction",
        idea="In the other order A runs second, at the lower clock: the order decides.",
    ),
    GuessQuestion(
        "05.cause",
        "What lowers the clock of this matmul?",
        choices=("heat", "power", "a setting", "nothing does"),
        idea="A large matmul lowers the clock because of the power limit, not because of heat.",
    ),
    GuessQuestion(
        "05.late",
        "How much power is reported, as a share of the limit?",
        unit="%",
        idea=(
            "The driver reports the mean power of the last second, so the number rises after "
            "the clock has fallen."
        ),
    ),
    GuessQuestion(
        "05.follows",
        "By how many percent do the later calls take longer than the fastest one?",
        unit="%",
        idea="Not everything follows the clock of the multiprocessors: the memory has its own.",
    ),
    GuessQuestion(
        "05.back",
        "How long must the GPU rest?",
        choices=("below 0.3 s", "some seconds", "a minute"),
        idea="The limit is power, so the clock is back within a fraction of a second.",
    ),
    GuessQuestion(
        "05.allowed",
        "What does clocks.lock(1410) do for an ordinary user?",
        choices=("locked", "refused"),
        idea="To lock the clock needs an administrator's rights.",
    ),
    GuessQuestion(
        "05.which",
        "Which of the three clocks does the GPU keep?",
        choices=("all three", "1695 and 1200", "only 1200", "none"),
        idea="A lock is an upper bound: the power limit may still push the clock below it.",
    ),
    GuessQuestion(
        "05.share",
        "What share of 60 samples after a rest is flagged?",
        unit="%",
        idea=(
            "After a rest the first samples run at a higher clock and are flagged as another "
            "regime."
        ),
    ),
    GuessQuestion(
        "05.zeros",
        "At which clock do zeros settle, compared with random numbers?",
        choices=("a lower clock", "the same clock", "a higher clock"),
        idea="Zeros draw less power than random numbers, so the clock settles higher.",
    ),
    GuessQuestion(
        "05.util",
        "What is GPU-Util for one thread?",
        unit="%",
        idea=(
            "GPU-Util is the share of time in which any kernel ran, not how much of the chip "
            "was used."
        ),
    ),
)
