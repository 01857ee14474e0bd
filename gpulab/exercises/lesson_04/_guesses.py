"""The guesses of lesson 04."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "04.memory",
        "Which of the three is made the fastest?",
        choices=("first", "second", "third"),
        idea=(
            "PyTorch keeps deleted memory in a cache: the next tensor of that size is fast to "
            "make."
        ),
    ),
    GuessQuestion(
        "04.sine",
        "log1p has run twice. Is the first sinh slow or fast?",
        choices=("slow", "fast"),
        idea="Each kernel is loaded when it is launched for the first time.",
    ),
    GuessQuestion(
        "04.half",
        "Is the first matmul in half precision slow or fast?",
        choices=("slow", "fast"),
        idea=(
            "Another type of number needs other kernels, and these have a first call of their own."
        ),
    ),
    GuessQuestion(
        "04.loaded",
        "After how many calls is everything loaded?",
        unit="calls",
        counts="factor",
        idea="First uses may hide in rare branches, long after ten calls.",
    ),
    GuessQuestion(
        "04.mean",
        "How many times as long as the median of the 60 samples is their mean?",
        unit="times",
        counts="direction",
        idea="A few outliers move the mean, and hardly the median.",
    ),
    GuessQuestion(
        "04.slow",
        "Images of 56, 56, 64, 64, 56, 64 pixels: which calls are slow?",
        choices=("the first", "the first of each size", "each after another size"),
        idea="A search for the fastest algorithm is paid once for each new shape.",
    ),
    GuessQuestion(
        "04.holds",
        "In what percentage of the groups does the interval contain the median?",
        unit="%",
        idea="About 95 of 100 intervals contain the median if the samples are independent.",
    ),
    GuessQuestion(
        "04.wander",
        "In what percentage of the groups does it contain the median now?",
        unit="%",
        idea="Samples that are close to their neighbours break the interval's promise.",
    ),
    GuessQuestion(
        "04.where",
        "Where is the median?",
        choices=("at the fast calls", "between", "at the slow calls"),
        idea=(
            "With two humps the median lies in the larger one, and the interval does not "
            "mention the other."
        ),
    ),
    GuessQuestion(
        "04.change",
        "How does the median change?",
        choices=("by less than a tenth", "by more than a tenth"),
        idea="If the larger hump changes, the median jumps: do not average two ways to run.",
    ),
)
DRAWN = {
    "04.first": (
        "The first call pays for what is done once in a process, so it can be thousands "
        "of times slower."
    )
}
