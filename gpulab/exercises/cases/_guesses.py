"""The guesses of the cases."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "case-01.growth",
        "From n = 4,096 to 8,192, how many times as long does his clock read?",
        unit="times",
        idea="A clock without a wait reads the launch, which does not grow with n.",
    ),
    GuessQuestion(
        "case-02.itself",
        "Which speed-up of a work over itself does her program find?",
        unit="times",
        counts="direction",
        idea="Compare a work with itself first: if the answer is not 1, the benchmark is wrong.",
    ),
    GuessQuestion(
        "case-03.longer",
        "How many times the mean of 50 calls is the mean of 500?",
        unit="times",
        counts="direction",
        idea="A mean over a burst and a settled clock changes with the number of calls.",
    ),
    GuessQuestion(
        "case-04.wrong",
        "How many of the ten steps read the wrong batch?",
        unit="steps",
        counts="count",
        idea="Between two streams there is only the order that you ask for.",
    ),
    GuessQuestion(
        "case-05.growth",
        "How many times as long does it read for long as for short?",
        unit="times",
        idea="Events in a stream without the work do not measure the work.",
    ),
    GuessQuestion(
        "case-06.near",
        "How many of the 120 steps are within 10 % of their mean?",
        unit="steps",
        counts="count",
        idea="With two heaps of samples hardly any step is near the mean.",
    ),
    GuessQuestion(
        "case-07.swapped",
        "Which ratio does it find in the other order?",
        unit="times",
        counts="direction",
        idea="The second candidate loses, whichever it is, because the clock has fallen.",
    ),
    GuessQuestion(
        "case-08.share",
        "Which share of that time do the copies take?",
        unit="%",
        idea="Data that are copied in each step cost more than the computation.",
    ),
    GuessQuestion(
        "case-09.wrong",
        "How many of the six answers are wrong?",
        unit="answers",
        counts="count",
        idea="A graph reads the address of the first request again and again.",
    ),
    GuessQuestion(
        "case-10.later",
        "How long does a call take from the 1,400th on?",
        idea="In a full queue each launch waits until the GPU has finished one kernel.",
    ),
)
