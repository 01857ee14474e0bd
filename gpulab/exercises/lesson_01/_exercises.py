"""What a stopwatch without a wait reads, and what makes it right by accident."""

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Choice, Diagnosis, Letters
from gpulab.exercises.lesson_01._queue_length import QueueLength

_MISSED_COPY = Diagnosis(
    "missed-copy",
    "You left out an ordinary copy between host and GPU. Without pinned memory and "
    "non_blocking=True the call returns when the copy is done, and the copy waits for the "
    "multiplication in front of it.",
)

HIDDEN_SYNC = Exercise(
    "01.hidden-sync",
    "One line stands in the place of LINE. With which lines does the reading hold the whole "
    "multiplication, although nobody calls synchronize?\n\n"
    "    t0 = time.perf_counter()\n"
    "    y = x @ x              # on the GPU\n"
    "    LINE\n"
    "    t1 = time.perf_counter()",
    Letters(
        right=frozenset("acefg"),
        why="Each of them needs a value from the GPU, or an ordinary copy, and so waits for the "
        "multiplication: a hidden synchronization. The reading then also holds what the line "
        "itself does.",
        wrongly_in={
            "b": Diagnosis(
                "metadata",
                "b: the host knows the shape without asking the GPU; nothing is waited for.",
            ),
            "d": Diagnosis(
                "another-launch",
                "d: relu is one more launch. It goes into the queue behind the multiplication, "
                "and the host goes on.",
            ),
            "h": Diagnosis(
                "non-blocking-copy",
                "h: the memory is pinned and the copy non_blocking, so it is only put into the "
                "queue. The host returns before anything was copied.",
            ),
        },
        missing={
            "a": Diagnosis(
                "missed-item",
                "You left out .item(): it gives a Python number, and the host has no number "
                "before the GPU has computed it.",
            ),
            "f": Diagnosis(
                "missed-branch",
                "You left out a branch: the host cannot take it before it knows the value, so "
                "`if` waits for the GPU.",
            ),
            "c": Diagnosis(
                "missed-print",
                "You left out print: the digits have to come from the GPU first, so it waits.",
            ),
            "e": _MISSED_COPY,
            "g": _MISSED_COPY,
        },
        all_chosen=Diagnosis(
            "all",
            "Not all of them: some return at once. Which only put more work into the queue, or "
            "ask for what the host knows anyway?",
        ),
        none_chosen=Diagnosis(
            "none",
            "There are some. Look for lines that cannot go on without a value that the GPU has "
            "yet to compute.",
        ),
    ),
    hints=(
        "Ask of each line: could the host go on without knowing a result?",
        "Five lines wait. Of the two copies in which h takes part, one does not.",
    ),
    choices={
        "a": "`y.sum().item()`",
        "b": "`y.shape`",
        "c": "`print(y[0, 0])`",
        "d": "`z = torch.relu(y)`",
        "e": "`h = y.cpu()`",
        "f": "`if (y > 0).any(): pass`",
        "g": "`y.copy_(h)`, where h is an ordinary CPU tensor",
        "h": "`h.copy_(y, non_blocking=True)`, where h is a pinned CPU tensor",
    },
)

WHAT_WAS_TIMED = Exercise(
    "01.what-was-timed",
    "Look at the two lines of your plot: from n = 64 to n = 8192 the naive reading of x @ x "
    "hardly changes, while the true time grows as n³. What did the naive reading time?",
    Choice(
        right="b",
        why="The host puts a multiplication into the queue and goes on. That takes the same few "
        "microseconds whatever n is, because no element is touched.",
        wrong={
            "a": Diagnosis(
                "parallel-myth",
                "Being parallel makes the GPU fast, not free: the other line of the plot is the "
                "same multiplication on the same GPU, and it grows. You timed the launch, not "
                "the kernel.",
            ),
            "c": Diagnosis(
                "start-of-kernel",
                "The host does not know when the GPU begins, and does not ask. With a long queue "
                "the kernel begins long after the second reading of the clock.",
            ),
            "d": Diagnosis(
                "transfer",
                "Nothing was transferred: y stays on the GPU. A transfer would also grow, as n².",
            ),
        },
    ),
    hints=(
        "What does the host do that is the same for 64 and for 8192?",
        "When x @ x returns, has any element of y been computed?",
    ),
    choices={
        "a": "The multiplication: the GPU does all elements at the same time.",
        "b": "What the host does to put the multiplication into the queue.",
        "c": "The time until the GPU began with the multiplication.",
        "d": "The transfer of the result to the host.",
    },
)

QUEUE_LENGTH = Exercise(
    "01.queue-length",
    "You launched the same kernel again and again, behind work that keeps the GPU busy, and "
    "timed each call on the host. How many launches fit into the queue before one has to wait?",
    QueueLength(),
    hints=(
        "Plot the time of each call against its number: plots.call_times does.",
        "The first call that takes many times longer than those before it found the queue full.",
    ),
)

EXERCISES = (HIDDEN_SYNC, WHAT_WAS_TIMED, QUEUE_LENGTH)
