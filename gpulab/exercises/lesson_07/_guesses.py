"""The guesses of lesson 07."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "07.size",
        "Sixty-four times as many numbers: how many times as long?",
        unit="times",
        idea="If kernels are shorter than their launches, Python sets the pace, whatever the "
        "size.",
    ),
    GuessQuestion(
        "07.slept",
        "What does a pair of events round ten relus read after the sleep?",
        idea="With a head start of Python, a pair reads the kernels and not the launches.",
    ),
    GuessQuestion(
        "07.million",
        "How long is a sleep of 1,000,000 cycles?",
        unit="ms",
        idea="A sleep counts cycles, so its time depends on the clock.",
    ),
    GuessQuestion(
        "07.ahead",
        "In how many of 40 is Python ahead?",
        unit="calls",
        idea="A sleep gives a head start only until the GPU has caught up.",
    ),
    GuessQuestion(
        "07.enough",
        "How long must the sleep last for 40 pairs?",
        unit="ms",
        idea="The sleep must last as long as the host needs for the whole batch.",
    ),
    GuessQuestion(
        "07b.replay",
        "What does a pair of events round replay() read?",
        idea="A graph is launched once, so Python's time between the kernels is gone.",
    ),
    GuessQuestion(
        "07b.by",
        "By which number does the replay multiply?",
        choices=("by 2", "by 10"),
        idea="A graph keeps the numbers that Python had at the capture.",
    ),
    GuessQuestion(
        "07b.reads",
        "What is in the result after the replay?",
        choices=("ones, doubled", "fives, doubled"),
        idea="A graph knows an address, not a name: copy new values into the same tensor.",
    ),
    GuessQuestion(
        "07.takes-over",
        "From which size on does the GPU set the pace?",
        choices=("2^10", "2^16", "2^20", "2^22", "2^24"),
        idea="A kernel longer than its launch fills the queue by itself.",
    ),
    GuessQuestion(
        "07.first",
        "After one matmul, in how many of 40 is the host ahead?",
        unit="calls",
        idea=(
            "One kernel gives a head start of its own length, which may not be enough for the "
            "batch."
        ),
    ),
    GuessQuestion(
        "07.all-ahead",
        "Is the host ahead in all?",
        choices=("yes", "no"),
        idea=(
            "When the queue is full a launch blocks until the sleep ends: more sleep does not "
            "help."
        ),
    ),
    GuessQuestion(
        "07b.each-of-100",
        "What is left for each of 100 copies?",
        idea="Many copies in one graph share the launch and the offset, so the kernel remains.",
    ),
    GuessQuestion(
        "07b.cold",
        "Does the graph read more or less?",
        choices=("more", "less"),
        idea="Copies in a graph find their data in the cache: a graph reads hot.",
    ),
    GuessQuestion(
        "07b.counted",
        "How many of the ten additions does the capture compute?",
        unit="calls",
        idea="A capture only records; nothing is computed until the replay.",
    ),
    GuessQuestion(
        "07b.captured",
        "How many of the six can be captured?",
        unit="calls",
        idea=(
            "Waits, shapes that depend on values and copies from pageable memory cannot be "
            "captured."
        ),
    ),
    GuessQuestion(
        "07b.kept",
        "What is in the kept result now?",
        choices=("fives, doubled", "sevens, doubled"),
        idea="Each replay overwrites the result of the one before; clone what you keep.",
    ),
    GuessQuestion(
        "07b.gone",
        "What does the replay read?",
        choices=("sevens", "nines", "an error"),
        idea="A graph reads an address even if the tensor there is gone.",
    ),
    GuessQuestion(
        "07b.worst",
        "Which rung is farthest off?",
        choices=("naive", "synchronized", "events", "+ sleep", "calibrated", "graph"),
        idea="A rung can repair only a fault that the work has.",
    ),
    GuessQuestion(
        "07b.sum",
        "For the sum, which rung changes the reading most?",
        choices=("warm-up", "flush", "sleep"),
        idea="A sum only reads, so it changes most when the cache no longer has its data.",
    ),
    GuessQuestion(
        "07b.off",
        "How far is `synchronized` off for the matmul?",
        unit="%",
        idea="The longer the kernel, the less the launch and the wake-up matter.",
    ),
)
