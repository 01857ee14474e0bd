"""The guesses of lesson 01."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "01.naive",
        "A stopwatch around x @ x, with n = 8192. What does it read?",
        unit="ms",
        idea="A stopwatch around a call reads the launch, and not the work of the GPU.",
    ),
    GuessQuestion(
        "01.grows",
        "From n = 64 to n = 8192: how many times as long is the reading?",
        unit="times",
        idea="The time of a launch depends on the host, and not on the work of the call.",
    ),
    GuessQuestion(
        "01.item",
        "What does the stopwatch read for (w @ w).sum().item()?",
        idea=(
            "A Python number needs the result, so .item() waits for the whole queue: a hidden "
            "synchronization."
        ),
    ),
    GuessQuestion(
        "01.many-calls",
        "You launch 1,300 tiny additions while the GPU is busy, and time each call on the host. "
        "What do the times do?",
        choices=("stay the same", "grow slowly", "jump once"),
        idea=(
            "The queue has room for a limited number of launches; when it is full, a launch "
            "blocks."
        ),
    ),
    GuessQuestion(
        "01.loop",
        "A stopwatch around a loop, divided by the number of calls. What does the reading do when "
        "the loop becomes longer?",
        choices=("stays the same", "falls", "grows"),
        idea=(
            "A naive reading per call depends on how full the queue is, and so on the number of "
            "calls."
        ),
    ),
    GuessQuestion(
        "01.cost",
        "Which of the four takes the host longest to launch?",
        choices=("addition", "matmul", "linear layer", "convolution"),
        idea=(
            "The host's cost of a launch comes from what PyTorch has to prepare, not from the "
            "kernel."
        ),
    ),
)
