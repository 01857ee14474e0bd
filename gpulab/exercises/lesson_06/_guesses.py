"""The guesses of lesson 06."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "06.steps",
        "From a quarter of the L2 to four times the L2, the time per megabyte",
        choices=("stays the same", "falls", "rises"),
        idea="Per byte, a kernel becomes slower where its data no longer fit into the L2.",
    ),
    GuessQuestion(
        "06.colder",
        "How many times as long does it take when cold?",
        unit="times",
        counts="direction",
        idea=(
            "A cold kernel fetches its data from memory, a hot one from the cache; report which "
            "one you time."
        ),
    ),
    GuessQuestion(
        "06.meet",
        "The two curves meet",
        choices=("below half of the L2", "between half and all of the L2", "above its size"),
        idea=(
            "Hot and cold meet below the size of the L2: a run pushes out what the next one needs."
        ),
    ),
    GuessQuestion(
        "06.fresh",
        "With a fresh row in each call the layer is",
        choices=("hot", "cold"),
        idea="A fresh input leaves the weights in the cache: the layer is still mostly hot.",
    ),
    GuessQuestion(
        "06.enough",
        "By its time, from which buffer on does the layer look cold? In multiples of the L2.",
        choices=("1/16", "1/8", "1/4", "1/2", "1", "2"),
        idea=(
            "A layer looks cold once buffer and weights do not fit together; counters still "
            "find some data."
        ),
    ),
    GuessQuestion(
        "06.writing",
        "After a flush that writes, compared with one that reads, the layer takes",
        choices=("less", "as long", "longer"),
        idea=(
            "A flush that writes leaves dirty lines, and the next kernel pays for writing them "
            "back."
        ),
    ),
    GuessQuestion(
        "06.after",
        "After the matmul, the activation is",
        choices=("hot", "cold"),
        idea="What a kernel has just written is hot for the next one.",
    ),
    GuessQuestion(
        "06.pause",
        "After the pause the layer takes",
        choices=("as long as after reading", "as long as after writing"),
        idea=(
            "Dirty lines stay until something needs their place: a pause does not clean the cache."
        ),
    ),
    GuessQuestion(
        "06.loser",
        "Which loses most?",
        choices=("a fill", "a sum", "a matmul"),
        idea=(
            "A kernel that only reads pays in full for dirty lines; one that computes hides them."
        ),
    ),
    GuessQuestion(
        "06.who-pays",
        "In rotation the softmax takes",
        choices=("as long as after reading", "as long as after writing"),
        idea="In rotation each kernel finds the dirty results of the one before it.",
    ),
    GuessQuestion(
        "06.share",
        "How much came from memory?",
        unit="%",
        idea=(
            "The cache of an H200 has two halves, so data that fit into the whole may still "
            "come from memory."
        ),
    ),
)
DRAWN: dict[str, str] = {}
