"""The guesses of lesson 01."""

from gpulab.exercises._guess_question import GuessQuestion

GUESSES = (
    GuessQuestion(
        "01.naive",
        "What does the stopwatch below read?",
        idea="A naive stopwatch reads the launch, not the kernel.",
    ),
    GuessQuestion(
        "01.done",
        "x @ x has just returned. Is the matmul done?",
        choices=("yes", "no"),
        idea="A call returns when its kernel is in the queue; the kernel runs later.",
    ),
    GuessQuestion(
        "01.behind",
        "The host has launched all three. How many of them has the GPU finished by then?",
        unit="calls",
        idea="The host runs ahead of the GPU: launches return long before their kernels end.",
    ),
    GuessQuestion(
        "01.flat",
        "How many times as long is the naive reading for n = 8192 as for n = 64?",
        unit="times",
        idea="The time of a launch depends on the host, not on the work of the call.",
    ),
    GuessQuestion(
        "01.jump",
        "You launch 1,300 tiny additions while the GPU is busy, and time each call on the "
        "host. What do the times do?",
        choices=("stay the same", "grow slowly", "jump once"),
        idea=(
            "The queue has room for a limited number of launches; when it is full, a launch "
            "blocks."
        ),
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
        "01.loop",
        "A naive stopwatch around a loop, divided by the number of calls. What does the "
        "reading do when the loop becomes longer?",
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
    GuessQuestion(
        "01.cold-host",
        "What does a launch do if the host has waited longer before it?",
        choices=("stays the same", "becomes slower"),
        idea=(
            "A real host needs longer for a launch after a long wait; the virtual host is "
            "always warm."
        ),
    ),
)
DRAWN: dict[str, str] = {}
