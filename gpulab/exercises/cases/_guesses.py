"""The guesses of the cases."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "case-01.growth",
        "From n = 4,096 to 8,192, his clock reads",
        unit="times",
        idea="A clock without a wait reads the launch, which does not grow with n.",
    ),
    GuessQuestion(
        "case-02.itself",
        "The speed-up of a work over itself is",
        unit="times",
        counts="direction",
        idea="Compare a work with itself first: if the answer is not 1, the benchmark is wrong.",
    ),
    GuessQuestion(
        "case-03.longer",
        "500 calls give how many times the mean of 50?",
        unit="times",
        counts="direction",
        idea="A mean over a burst and a settled clock changes with the number of calls.",
    ),
    GuessQuestion(
        "case-04.wrong",
        "Wrong steps of 10?",
        unit="steps",
        counts="count",
        idea="Between two streams there is only the order that you ask for.",
    ),
    GuessQuestion(
        "case-05.growth",
        "long reads how many times short?",
        unit="times",
        idea="Events in a stream without the work do not measure the work.",
    ),
    GuessQuestion(
        "case-06.near",
        "Steps near the mean, of 120?",
        unit="calls",
        idea="With two heaps of samples hardly any step is near the mean.",
    ),
    GuessQuestion(
        "case-07.swapped",
        "In the other order, A over B is",
        unit="times",
        counts="direction",
        idea="The second candidate loses, whichever it is, because the clock has fallen.",
    ),
    GuessQuestion(
        "case-08.share",
        "Share of the copies",
        unit="%",
        idea="Data that are copied in each step cost more than the computation.",
    ),
    GuessQuestion(
        "case-09.wrong",
        "Wrong answers of 6?",
        unit="answers",
        counts="count",
        idea="A graph reads the address of the first request again and again.",
    ),
    GuessQuestion(
        "case-10.later",
        "The calls from the 1,400th on take",
        idea="In a full queue each launch waits until the GPU has finished one kernel.",
    ),
)
DRAWN: dict[str, str] = {}
