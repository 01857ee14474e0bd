"""The guesses of lesson 06."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "06.speed",
        "How many GB/s does the addition move?",
        unit="GB/s",
        idea="A repeated kernel reads from the cache, faster than the memory can be.",
    ),
    GuessQuestion(
        "06.twice",
        "Twice the numbers: how many times as long?",
        unit="times",
        counts="direction",
        base=2.0,
        idea="Tensors that are too large for the cache come from memory, so they take longer.",
    ),
    GuessQuestion(
        "06.fresh",
        "With a fresh row in each call, is the layer hot or cold?",
        choices=("hot", "cold"),
        idea="A fresh input leaves the weights in the cache: the layer is still mostly hot.",
    ),
    GuessQuestion(
        "06.enough",
        "By its time, from which size on does the buffer make the layer cold? In multiples of the "
        "L2.",
        choices=("1/16", "1/8", "1/4", "1/2", "1", "2"),
        idea=(
            "A layer looks cold once buffer and weights do not fit together; counters still "
            "find some data."
        ),
    ),
    GuessQuestion(
        "06.writing",
        "How many times as long as the cold layer does it take after the zeros?",
        unit="times",
        counts="direction",
        idea=(
            "A flush that writes leaves dirty lines, and the next kernel pays for writing them "
            "back."
        ),
    ),
    GuessQuestion(
        "06.after",
        "After the matmul, is the input of the activation hot or cold?",
        choices=("hot", "cold"),
        idea="What a kernel has just written is hot for the next one.",
    ),
    GuessQuestion(
        "06.pause",
        "How long does the layer take after the pause?",
        choices=("as long as after reading", "as long as after writing"),
        idea=(
            "Dirty lines stay until something needs their place: a pause does not clean the cache."
        ),
    ),
    GuessQuestion(
        "06.loser",
        "Which of the three loses most?",
        choices=("a fill", "a sum", "a matmul"),
        idea=(
            "A kernel that only reads pays in full for dirty lines; one that computes hides them."
        ),
    ),
    GuessQuestion(
        "06.who-pays",
        "After which flush does the softmax take as long as in rotation?",
        choices=("read", "write"),
        idea="In rotation each kernel finds the dirty results of the one before it.",
    ),
    GuessQuestion(
        "06.share",
        "How much of the data came from memory?",
        unit="%",
        idea=(
            "The cache of an H200 has two halves, so data that fit into the whole may still "
            "come from memory."
        ),
    ),
)
