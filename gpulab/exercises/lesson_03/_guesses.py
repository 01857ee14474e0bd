"""The guesses of lesson 03."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "03.pair",
        "What do the two events read?",
        idea=(
            "Between two events of an idle GPU there is also the time in which Python launches "
            "the kernel."
        ),
    ),
    GuessQuestion(
        "03.busy",
        "How many times as long as before is the reading?",
        unit="times",
        counts="direction",
        idea=(
            "A busy GPU finds the events and the kernel in its queue, so it does not wait for "
            "Python between them."
        ),
    ),
    GuessQuestion(
        "03.last",
        "How many times as long as the first reading is the last one?",
        unit="times",
        counts="direction",
        idea=(
            "A kernel shorter than its launch does not fill the queue, so the GPU catches up with "
            "Python."
        ),
    ),
    GuessQuestion(
        "03.empty",
        "What does an empty pair read?",
        idea="A pair of events with nothing between them does not read zero.",
    ),
    GuessQuestion(
        "03.more",
        "How much more than the kernel does a pair around it read?",
        idea=(
            "With a kernel in between, a pair also waits for the kernel's start and end: its "
            "floor is larger."
        ),
    ),
    GuessQuestion(
        "03.who",
        "Where is the host blocked?",
        choices=("record", "query", "wait", "synchronize"),
        idea="Only synchronize blocks the host; record, query and wait return at once.",
    ),
    GuessQuestion(
        "03.plain",
        "What does elapsed_time return?",
        choices=("a number", "zero", "an exception"),
        idea="An event has a time only if it was made with enable_timing=True.",
    ),
    GuessQuestion(
        "03.smooth",
        "How does the reading grow?",
        choices=("smoothly", "in steps"),
        idea="The clock of the events ticks, so readings grow in steps.",
    ),
    GuessQuestion(
        "03.blocks",
        "Where is the host blocked?",
        choices=("wait", "synchronize", "both"),
        idea="wait never blocks the host; blocking=True only changes how synchronize waits.",
    ),
)
