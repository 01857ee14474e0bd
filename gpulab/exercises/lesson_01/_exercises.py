"""Exercises of lesson 01: what a stopwatch without a wait reads, and why it is sometimes right."""

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import BenchmarkJudge, Choice, Diagnosis, Letters
from gpulab.exercises.lesson_01._queue_length import QueueLength

_MISSED_COPY = Diagnosis(
    "missed-copy",
    "You left out an ordinary copy between host and GPU. Without pinned memory and "
    "non_blocking=True the call returns when the copy is done, and the copy waits for the "
    "matmul before it.",
)

HIDDEN_SYNC = Exercise(
    "01.hidden-sync",
    "Put one of the lines below in place of LINE. With which of them does the reading contain the "
    "whole matmul, although nobody calls synchronize?\n\n"
    "    t0 = time.perf_counter()\n"
    "    y = x @ x              # on the GPU\n"
    "    LINE\n"
    "    t1 = time.perf_counter()",
    Letters(
        right=frozenset("acefg"),
        why="Each of them needs a value from the GPU, or makes an ordinary copy. So it waits for "
        "the matmul: a hidden synchronization. The reading also contains the line itself.",
        wrongly_in={
            "b": Diagnosis(
                "metadata",
                "b: the host knows the shape without asking the GPU, so it does not wait.",
            ),
            "d": Diagnosis(
                "another-launch",
                "d: relu is one more launch. It goes into the queue after the matmul, and the "
                "host goes on.",
            ),
            "h": Diagnosis(
                "non-blocking-copy",
                "h: the memory is pinned and the copy non_blocking, so it is only put into the "
                "queue. The call returns before anything was copied.",
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
                "You left out print: it needs the digits from the GPU first, so it waits.",
            ),
            "e": _MISSED_COPY,
            "g": _MISSED_COPY,
        },
        all_chosen=Diagnosis(
            "all",
            "Not all of them: some return at once. Which ones only put more work into the queue, "
            "or ask for something that the host already knows?",
        ),
        none_chosen=Diagnosis(
            "none",
            "Some of them wait. Look for lines that need a value which the GPU has not computed "
            "yet.",
        ),
    ),
    hints=(
        "For each line, ask: could the host go on without knowing a result?",
        "Five lines wait. One of the copies does not.",
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
    "The speed is impossible, and the reading does not follow the work. What did the stopwatch "
    "time?",
    Choice(
        right="b",
        why="The host puts a matmul into the queue and goes on. It touches no element, so the "
        "reading does not follow n.",
        wrong={
            "a": Diagnosis(
                "parallel-myth",
                "Parallel work still takes time: the other line of the plot is the same matmul on "
                "the same GPU, and it grows. You timed the launch, not the kernel.",
            ),
            "c": Diagnosis(
                "start-of-kernel",
                "The host does not know when the GPU begins. If the queue is long, the kernel "
                "begins long after you have read the clock for the second time.",
            ),
            "d": Diagnosis(
                "transfer",
                "Nothing was transferred: y stays on the GPU. A transfer would also grow, as n².",
            ),
        },
    ),
    hints=(
        "What does the host do for a matmul, whether n is 64 or 8192?",
        "When a @ a returns, has the GPU computed any element?",
    ),
    choices={
        "a": "The matmul: the GPU computes all elements at the same time.",
        "b": "What the host does before the GPU computes anything: it puts the matmul into a "
        "queue.",
        "c": "The time until the GPU began the matmul.",
        "d": "The transfer of the result to the host.",
    },
)

QUEUE_LENGTH = Exercise(
    "01.queue-length",
    "You launched the same kernel again and again while the GPU was busy, and timed each call on "
    "the host. How many launches fit into the queue before one has to wait?",
    QueueLength(),
    hints=(
        "Plot the time of each call against its number: plots.call_times does.",
        "The first call that takes many times longer than those before it found the queue full.",
    ),
)

BENCHMARK = Exercise(
    "01.benchmark",
    "Write benchmark(fn): it calls fn several times with a stopwatch around the loop, and returns "
    "the seconds for one call. The check runs it on works whose true time is known, and says what "
    "your benchmark still misses.",
    BenchmarkJudge("stopwatch"),
    hints=(
        "time.perf_counter() before the loop and after it; the difference is all calls together.",
        "Divide by the number of calls. A wait for the GPU comes in lesson 02.",
    ),
)

EXERCISES = (HIDDEN_SYNC, WHAT_WAS_TIMED, QUEUE_LENGTH, BENCHMARK)
