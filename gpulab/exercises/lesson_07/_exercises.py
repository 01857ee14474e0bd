"""Exercises of lesson 07: gaps between kernels, a head start by a sleep, and CUDA graphs."""

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import BenchmarkJudge, Choice, Diagnosis, Table
from gpulab.exercises.lesson_07._graph_replay import GraphReplay
from gpulab.exercises.lesson_07._host_lead import HeadStart

PACE = Exercise(
    "07.pace",
    "64 times the numbers take as long. Twice the calls take nearly twice as long. The kernels "
    "are only a part of the reading. What takes the rest of the time?",
    Choice(
        right="b",
        why="Each call of relu takes Python as long, whatever its size. The GPU ends a kernel "
        "before the next one arrives, and the pair of events reads how long it waits.",
        wrong={
            "a": Diagnosis(
                "clock",
                "With a lower clock the kernels themselves would take longer. The driver's "
                "records say how long they take, and that is only a part.",
            ),
            "c": Diagnosis(
                "floor",
                "The pair's own time is about 3 µs (lesson 03), for ten calls and for twenty. "
                "This rest grows with the number of calls.",
            ),
            "d": Diagnosis(
                "memory",
                "Reading and writing is what these kernels do, so it is in their own times. And "
                "64 times the numbers would take longer.",
            ),
        },
    ),
    hints=(
        "The rest does not depend on the size, but on the number of calls.",
        "What happens once for each call?",
    ),
    choices={
        "a": "The clock of the GPU: it is low while the kernels are small.",
        "b": "Python: it needs longer to launch a kernel than the GPU needs to run it.",
        "c": "The two events: recording them takes time.",
        "d": "The memory: each relu waits for its numbers.",
    },
)

CONTAINS = Exercise(
    "07.contains",
    "You have given the graph a new batch, and a new factor. It used the old ones. What does a "
    "graph contain?",
    Choice(
        right="b",
        why="The kernel got the address of a tensor and a number, at the capture. The names "
        "`batch` and `factor` have other values now, and the graph has never known the names.",
        wrong={
            "a": Diagnosis(
                "python-runs-again",
                "If the lines of Python ran again, `batch * 2` would read the fives, and `factor` "
                "would be 10.",
            ),
            "c": Diagnosis(
                "results-kept",
                "A replay computes. You can test it: write new values into the tensor that was "
                "captured, and replay.",
            ),
            "d": Diagnosis(
                "names-looked-up",
                "If the names were looked up at the replay, it would find the fives and the 10.",
            ),
        },
    ),
    hints=(
        "What did a name mean at the capture, and what does it mean at the replay?",
        "A kernel on the GPU gets numbers and addresses. It knows nothing of Python.",
    ),
    choices={
        "a": "The lines of Python in the block, which run again at each replay.",
        "b": "Kernels, with the numbers and the addresses that they had at the capture.",
        "c": "The results of the capture, which a replay writes again.",
        "d": "Kernels, with the names of their tensors and numbers.",
    },
)

GAPS = Exercise(
    "07.gaps",
    "Look at the timelines of the three programs. What sets the pace of each? 'host': Python "
    "launches too slowly. 'gpu': the kernels themselves. 'wait': in every round the host waits "
    "for the GPU, and then the GPU waits for the host.",
    Table(
        right={"a": "wait", "b": "gpu", "c": "host"},
        why="Only c would gain from fewer launches, and only its kernels need a head start to be "
        "timed. In a, the host waits during every gap: remove those waits first. In b, the GPU "
        "goes from kernel to kernel, and Python's work costs nothing.",
        allowed=(("host", "gpu", "wait"),),
        wrong={
            ("b", "wait"): Diagnosis(
                "wait-at-the-end",
                "The long wait of b comes after the last launch, when the host has nothing left "
                "to do. Does it wait between two launches?",
            ),
            ("b", "host"): Diagnosis(
                "early-is-not-late",
                "The host of b launches everything long before the GPU needs it: it is early, not "
                "late. Look at the pauses between the kernels.",
            ),
            ("a", "host"): Diagnosis(
                "why-late",
                "The launches of a do come late. But what does the host do before each of them? "
                "Look for a call that blocks it.",
            ),
            ("c", "gpu"): Diagnosis(
                "many-bars",
                "The GPU's lane of c has many bars, but most of the lane is empty. What do the "
                "kernels wait for?",
            ),
            ("c", "wait"): Diagnosis(
                "wait-at-the-end",
                "c waits once, after the last launch. Does the host wait between two launches?",
            ),
            ("a", "gpu"): Diagnosis(
                "gaps-overlooked",
                "The GPU of a is idle most of the time. Which call of the host ends just before "
                "the GPU goes on?",
            ),
        },
        otherwise=(
            Diagnosis("wrong-pace", "Read the causes of the longest gaps under the timeline."),
        ),
    ),
    hints=(
        "Is the GPU's lane full or empty? Where it is empty, look up at the host.",
        "print(gpulab.timeline(lab.program('a'))) lists the longest gaps and the cause of each.",
    ),
)

LONG_ENOUGH = Exercise(
    "07.long-enough",
    "40 samples of work() follow one sleep. Each sample is an event, the work, an event. Write "
    "head_start(work), which returns the clock cycles to sleep, so that the host is ahead of the "
    "GPU in every sample, and at most 20 times as many as it needs. The check lets the GPU sleep "
    "that long, before a work of one launch and before a work of sixteen.",
    HeadStart(
        "In all 40 samples of both works, the GPU reached the first event after the host had "
        "enqueued the second one. It is the host that needs this time, not the GPU. "
        'method="saturated" does the same, and discards samples in which it was not ahead.',
    ),
    hints=(
        "Run the 40 samples once without a sleep and measure the host's time with perf_counter.",
        "Multiply the host's seconds by the cycles per second, and add a margin.",
    ),
)

SYNC_INSIDE = Exercise(
    "07.sync-inside",
    "40 pairs of events round loss.sum().item() follow a sleep of 10 ms. The host needs 1 ms for "
    "all of them. In how many pairs is the host ahead, that is, has it enqueued the second event "
    "when the GPU reaches the first one?",
    Choice(
        right="c",
        why="item() in the first sample waits until the sleep is over. Then the queue is empty "
        "and stays empty: every pair reads wake-up and launch. No sleep is long enough. Take the "
        "wait out of the function, or time it with the stopwatch.",
        wrong={
            "a": Diagnosis(
                "sleep-absorbs",
                "The host would have enough time if it went on. Which call blocks it while the "
                "GPU sleeps?",
            ),
            "b": Diagnosis(
                "first-half-ahead",
                "The first sum is in the queue in time, but the event after it is not: item() "
                "returns only when the sleep and the sum are over.",
            ),
            "d": Diagnosis(
                "deadlock",
                "The sleep ends by itself after its cycles, and then the host goes on. How much "
                "of its head start is left?",
            ),
        },
    ),
    hints=(
        "What does item() of the first sample wait for?",
        "What is in the queue when it returns?",
    ),
    choices={
        "a": "In all 40: the sleep is ten times as long as needed.",
        "b": "In the first one only.",
        "c": "In none.",
        "d": "The program hangs: host and GPU wait for each other for ever.",
    },
)

GRAPH_IT = Exercise(
    "07.graph-it",
    "Write graphed(function, x). It captures function(x) into a CUDA graph and returns a function "
    "replay(new). For any new tensor of the same shape, replay(new) returns what function(new) "
    "would return, without launching the kernels one by one.",
    GraphReplay(
        "One launch replaces all, and each result belongs to its input. The captured result "
        "has a fixed address: the next replay overwrites it, so clone() what you keep.",
    ),
    hints=(
        "replay has three steps: copy new values into x, replay, return the captured result.",
        "Capture once: graph = torch.cuda.CUDAGraph(), then with torch.cuda.graph(graph): ...",
    ),
)

_WHAT_HAPPENS = ("runs", "raises", "frozen", "raises", "runs", "frozen", "raises", "runs")
_PYTHON_ONCE = Diagnosis(
    "python-is-not-replayed",
    "Python runs once, at the capture. A replay repeats kernels with the arguments that they had "
    "then; it does not look at Python's numbers, counters, lists or names again, and nothing "
    "warns you. A value that must change belongs in a tensor on the GPU.",
)
_NEEDS_A_VALUE = Diagnosis(
    "needs-a-value",
    "During a capture no kernel has run, so no value exists on the GPU. A line fails if the host "
    "needs such a value: to print it, to branch on it, to copy it into pageable memory, or to "
    "know how many elements a result has.",
)
_GPU_WORK = Diagnosis(
    "gpu-work",
    "Kernels and new tensors are work of the GPU. New tensors get memory that belongs to the "
    "graph. The state of the random generator is passed to each replay.",
)

CAPTURABLE = Exercise(
    "07.capturable",
    "Each line stands in a function that is captured with x on the GPU, and then replayed many "
    "times. 'runs': every replay does what the line says. 'raises': the capture fails. 'frozen': "
    "no error, but each replay repeats what the line did at the capture. Write down your reason "
    "for each line; the check says how many are right, not which ones.",
    Table(
        right=dict(zip("abcdefgh", _WHAT_HAPPENS, strict=True)),
        why="A line that needs a value from the GPU raises: item(), a mask that decides on a "
        "shape, a copy to pageable memory. What only Python does is frozen: numbers, "
        "counters, names. New tensors work, because the graph has memory of its own, and "
        "each replay draws new random numbers.",
        allowed=(("runs", "raises", "frozen"),),
        wrong={
            **{(key, word): _NEEDS_A_VALUE for key in "bdg" for word in ("runs", "frozen")},
            **{(key, word): _PYTHON_ONCE for key in "cf" for word in ("runs", "raises")},
            **{(key, word): _GPU_WORK for key in "aeh" for word in ("raises", "frozen")},
        },
        otherwise=(
            Diagnosis(
                "wrong-word",
                "For each line ask in this order: does the host need a value from the GPU "
                "(raises)? Does only Python do something (frozen)? Or is it work of the GPU "
                "(runs)?",
            ),
        ),
        counts_only=True,
    ),
    hints=(
        "Which lines could not go on without a value that the GPU has not computed yet?",
        "Of the others: which put a kernel into the queue, and which are Python alone?",
    ),
    choices={
        "a": "y = torch.relu(x)",
        "b": "if x.sum().item() > 0: y = y + 1",
        "c": "n_steps += 1  (a Python number)",
        "d": "y = y[y > 0]",
        "e": "z = torch.zeros_like(y)",
        "f": "y = y * scale  (a Python number that changes from step to step)",
        "g": "losses.append(y.cpu())",
        "h": "y = y + torch.rand_like(y)",
    },
)

_RUNGS = ("naive", "synchronized", "events", "calibrated", "graph")

WHICH_RUNG = Exercise(
    "07.which-rung",
    "Which is the lowest rung of the ladder that answers each question: 'naive', 'synchronized', "
    "'events', 'calibrated' or 'graph'?",
    Table(
        right=dict(zip("abcde", _RUNGS, strict=True)),
        why="A higher rung is not always better. The error of a rung matters if it is large "
        "compared with the difference that you want to see, and if it is not part of your "
        "question.",
        allowed=(_RUNGS,),
        wrong={
            ("a", "synchronized"): Diagnosis(
                "asked-for-the-launch",
                "Here you ask for the launch itself, so a reading of the launch alone is right.",
            ),
            ("b", "calibrated"): Diagnosis(
                "higher-is-not-better",
                "The user waits for launches and for Python, too. A calibrated reading leaves "
                "them out. And the wake-up is tiny compared with 30 ms.",
            ),
            ("b", "events"): Diagnosis(
                "what-the-user-waits-for",
                "The user waits for the whole step, on the host. Use the host's clock.",
            ),
            ("c", "calibrated"): Diagnosis(
                "small-beside-the-work",
                "The fixed offset of events is about 3 µs of 300, or 1 %. You may subtract it, "
                "but here it does not matter.",
            ),
            ("c", "synchronized"): Diagnosis(
                "wake-up-not-small",
                "Launch and wake-up take 10 to 20 µs. That is more than 2 % of 300 µs.",
            ),
            ("d", "events"): Diagnosis(
                "floor-as-large-as-the-kernel",
                "For such a short kernel plain events read the launch. Even after a sleep they "
                "add a fixed offset of about 3 µs to a kernel of 2 µs.",
            ),
            ("e", "calibrated"): Diagnosis(
                "pauses-between-launches",
                "Calibrated events read the pauses between launched kernels, about 1 µs each. "
                "A graph has shorter pauses, and the graph is what will run.",
            ),
        },
        otherwise=(
            Diagnosis(
                "wrong-rung",
                "What does the reading contain in addition to the kernel: the launch, the "
                "wake-up, the fixed offset? Is that large compared with the work? Is it part of "
                "the question?",
            ),
        ),
    ),
    hints=(
        "How long is the work, and how large is the error of the rung in microseconds?",
        "Two of the five questions ask for something on the host.",
    ),
    choices={
        "a": "How long does Python need to launch this operator?",
        "b": "How long does a user wait for a training step of about 30 ms?",
        "c": "How long does this kernel of about 0.3 ms take on hot data, within 2 %?",
        "d": "How long is a kernel of about 2 µs by itself, if its program finds the data cold?",
        "e": "How long will forty small kernels take when they are replayed together?",
    },
)

BENCHMARK = Exercise(
    "07.benchmark",
    "Write benchmark(fn): as in lesson 06 it returns seconds and the clock, with a cold cache. "
    "Now it also reads the GPU and not Python, even if fn launches thirty small kernels.",
    BenchmarkJudge("sleep"),
    hints=(
        (
            "Take all samples twice: the first time to measure the host, the second time after a "
            "sleep."
        ),
        "One sleep comes before the whole loop, at least as long as the host needs for the loop.",
    ),
)

EXERCISES = (
    *(PACE, SYNC_INSIDE, BENCHMARK, GAPS, LONG_ENOUGH),
    *(CONTAINS, GRAPH_IT, CAPTURABLE, WHICH_RUNG),
)
