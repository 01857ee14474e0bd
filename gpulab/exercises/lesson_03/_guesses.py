"""The guesses of lesson 03."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "03.less",
        "What will a pair of events read?",
        choices=("more", "less", "the same"),
        idea=(
            "A pair of events leaves out the host's wake-up, so it reads less than a "
            "synchronized stopwatch."
        ),
    ),
    GuessQuestion(
        "03.early",
        "What does elapsed_time return?",
        choices=("a number", "zero", "an error"),
        idea=(
            "elapsed_time does not wait: before the GPU has reached the end event, there is no "
            "time."
        ),
    ),
    GuessQuestion(
        "03.plain",
        "What does elapsed_time return?",
        choices=("a number", "zero", "an error"),
        idea="An event has a time only if it was made with enable_timing=True.",
    ),
    GuessQuestion(
        "03.at-end",
        "What do the pairs of the second loop read?",
        idea=(
            "With a full queue a pair reads the kernel and a fixed offset, not the time of Python."
        ),
    ),
    GuessQuestion(
        "03.alone",
        "What do the pairs read?",
        choices=("as in the first loop", "as in the second loop"),
        idea=(
            "A kernel shorter than its launch does not fill the queue, so the host does not get "
            "ahead."
        ),
    ),
    GuessQuestion(
        "03.inside",
        "By what factor is the new reading longer?",
        unit="times",
        idea="record() goes into the current stream; events must be in the stream of the work.",
    ),
    GuessQuestion(
        "03.empty",
        "What does an empty pair read?",
        idea="A pair of events with nothing between them does not read zero.",
    ),
    GuessQuestion(
        "03.more",
        "Is a kernel's floor more than an empty pair?",
        choices=("less", "equal", "more"),
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
DRAWN: dict[str, str] = {}
