"""What to do when the GPU is done before Python: a sleep in front, or a graph."""

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Choice, Diagnosis, Table
from gpulab.exercises.lesson_07._graph_replay import GraphReplay
from gpulab.exercises.lesson_07._host_lead import HeadStart

GAPS = Exercise(
    "07.gaps",
    "Look at the timelines of three programs: gpulab.timeline(program(letter)). What sets the "
    "pace of each? 'host': Python launches too slowly. 'gpu': the kernels themselves. 'wait': "
    "the host waits for the GPU in every round, and each waits for the other.",
    Table(
        right={"a": "wait", "b": "gpu", "c": "host"},
        why="Only c would gain from fewer launches, and only its kernels need a head start to be "
        "timed. In a every gap has a wait of the host in it: take that out first. In b the GPU "
        "goes from kernel to kernel; what Python does meanwhile costs nothing.",
        allowed=(("host", "gpu", "wait"),),
        wrong={
            ("b", "wait"): Diagnosis(
                "wait-at-the-end",
                "The long wait of b comes after the last launch: there the host has nothing left "
                "to do. Does it wait between two launches?",
            ),
            ("b", "host"): Diagnosis(
                "early-is-not-late",
                "The host of b has launched everything long before the GPU is there: it is "
                "early, not late. Look at the pauses between the kernels.",
            ),
            ("a", "host"): Diagnosis(
                "why-late",
                "The launches of a do come late. But what does the host do before each of them? "
                "Look for a call in which it stands still.",
            ),
            ("c", "gpu"): Diagnosis(
                "many-bars",
                "The GPU's lane of c has many bars, but most of it is empty. What do the bars "
                "wait for?",
            ),
            ("c", "wait"): Diagnosis(
                "wait-at-the-end",
                "c waits once, after the last launch. Does the host wait between two launches?",
            ),
            ("a", "gpu"): Diagnosis(
                "gaps-overlooked",
                "The GPU of a stands still for most of the time. Which call of the host ends "
                "just before it goes on?",
            ),
        },
        otherwise=(
            Diagnosis("wrong-pace", "Read the longest gaps under the timeline: each has a cause."),
        ),
    ),
    hints=(
        "Is the GPU's lane full or empty? Where it is empty, look up at the host.",
        "print(gpulab.timeline(program('a'))) lists the longest gaps and the cause of each.",
    ),
)

LONG_ENOUGH = Exercise(
    "07.long-enough",
    "40 samples of work() stand behind one sleep: each is an event, the work, an event. Write "
    "head_start(work): the clock cycles to sleep, so that in every sample the host is ahead of "
    "the GPU. The check lets the GPU sleep for as long as you say, for a work of one launch and "
    "for one of sixteen.",
    HeadStart(
        name="head_start",
        why="In all 40 samples, of both works, the GPU reached the first event after the host "
        "had enqueued the second. You measured the host, since it is the host that needs the "
        "time; saturated events do the same, and drop a sample in which they were not ahead.",
    ),
    hints=(
        "Run the 40 samples once without a sleep and take the host's time with perf_counter.",
        "Seconds of the host times cycles per second, and some more for a slower host.",
    ),
)

SYNC_INSIDE = Exercise(
    "07.sync-inside",
    "40 samples of loss.sum().item() stand behind a sleep of 10 ms, and the host needs 1 ms for "
    "them. In how many samples is the host ahead, that is, has enqueued the second event when the "
    "GPU reaches the first?",
    Choice(
        right="c",
        why="item() in the first sample waits for the sleep, all of it. Then the queue is empty "
        "and stays so: wake-up and launch are in every pair. No sleep is long enough; take the "
        "wait out of the function, or time it for what it is, with the stopwatch.",
        wrong={
            "a": Diagnosis(
                "sleep-absorbs",
                "The host would have time enough, if it went on. Where does it stand while the "
                "GPU sleeps?",
            ),
            "b": Diagnosis(
                "first-half-ahead",
                "The first sum is in the queue in time, but not the event behind it: item() does "
                "not return before the sleep and the sum are over.",
            ),
            "d": Diagnosis(
                "deadlock",
                "Nobody waits for ever: the sleep ends by itself, after its cycles. The host "
                "goes on then. How much of its head start is left?",
            ),
        },
    ),
    hints=(
        "What does item() of the first sample wait for?",
        "What is in the queue when it returns?",
    ),
    choices={
        "a": "In all 40: ten times as long as needed is enough.",
        "b": "In the first only.",
        "c": "In none.",
        "d": "None is ever read: host and GPU wait for each other for ever.",
    },
)

GRAPH_IT = Exercise(
    "07.graph-it",
    "Write graphed(function, x): capture function(x) into a CUDA graph, and return a function "
    "replay(new) that gives for any new tensor of the same shape what function(new) would, "
    "without launching its kernels one by one.",
    GraphReplay(
        name="graphed",
        why="One launch for all kernels, and the values are those of each input. Mind that the "
        "result lies where it lay at the capture: the next replay overwrites it. Who keeps it "
        "takes a clone().",
    ),
    hints=(
        "Three steps later on: new values into the memory of x, replay, the captured result.",
        "First graph = torch.cuda.CUDAGraph(), then with torch.cuda.graph(graph): call function.",
    ),
)

_SILENT = "No error comes, and that is the danger. Python runs once, at the capture; a replay"
_WHAT_HAPPENS = ("runs", "raises", "frozen", "raises", "runs", "frozen", "raises", "runs")

CAPTURABLE = Exercise(
    "07.capturable",
    "Each line stands in a function that is captured with x on the GPU, and then replayed many "
    "times. 'runs': every replay does what the line says. 'raises': the capture fails. 'frozen': "
    "no error, but the replays do only what the line did at the capture.",
    Table(
        right=dict(zip("abcdefgh", _WHAT_HAPPENS, strict=True)),
        why="What needs an answer from the GPU raises: item(), a mask that decides on a shape, a "
        "copy to ordinary memory. What only Python does is frozen: numbers, prints, names. New "
        "tensors are no trouble, as the graph has memory of its own, and random numbers are "
        "drawn anew.",
        allowed=(("runs", "raises", "frozen"),),
        wrong={
            ("f", "runs"): Diagnosis(
                "frozen-number",
                f"{_SILENT} multiplies by the number that scale was then. Keep it in a tensor on "
                "the GPU if it must change.",
            ),
            ("c", "runs"): Diagnosis(
                "python-is-not-replayed",
                f"{_SILENT} knows nothing of counters, prints and lists.",
            ),
            ("b", "frozen"): Diagnosis(
                "decision-needs-a-value",
                "An if on a Python number would be frozen. This one needs a value from the GPU, "
                "and during a capture nothing has computed it: item() waits, and that raises.",
            ),
            ("d", "runs"): Diagnosis(
                "dynamic-shape",
                "How long is the result? Only the GPU knows, after it has counted; the host must "
                "wait for it to make the tensor. torch.where keeps the shape.",
            ),
            ("d", "frozen"): Diagnosis(
                "dynamic-shape",
                "The length is not even known at the capture: the host would have to wait for "
                "the GPU to count. torch.where keeps the shape.",
            ),
            ("e", "raises"): Diagnosis(
                "allocation",
                "A new tensor in the capture takes memory of the graph's own pool, and every "
                "replay uses the same. Only where it lies may not change.",
            ),
            ("h", "frozen"): Diagnosis(
                "random-numbers",
                "PyTorch hands the generator's state to each replay, so each draws new numbers.",
            ),
        },
        otherwise=(
            Diagnosis(
                "wrong-word",
                "Ask of each line: does the host need something from the GPU (raises)? Is it "
                "Python alone (frozen)? Or is it work of the GPU (runs)?",
            ),
        ),
    ),
    hints=(
        "Which lines could not go on without a value that the GPU has yet to compute?",
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
    "Which is the lowest rung of the ladder that answers the question? 'naive', 'synchronized', "
    "'events', 'calibrated' or 'graph'.",
    Table(
        right=dict(zip("abcde", _RUNGS, strict=True)),
        why="A rung is not better because it is higher. Its error matters if it is large beside "
        "what you want to tell apart, and if it is no part of your question.",
        allowed=(_RUNGS,),
        wrong={
            ("a", "synchronized"): Diagnosis(
                "asked-for-the-launch",
                "Here the launch is the question, so a reading that holds nothing else is right.",
            ),
            ("b", "calibrated"): Diagnosis(
                "higher-is-not-better",
                "The user waits for launches and for Python, too; a calibrated reading leaves "
                "them out. And 10 µs of wake-up beside 30 ms are nothing.",
            ),
            ("b", "events"): Diagnosis(
                "what-the-user-waits-for",
                "Who waits for a whole step waits on the host. Ask the host's clock.",
            ),
            ("c", "calibrated"): Diagnosis(
                "small-beside-the-work",
                "The floor is 3 µs of 300: 1 %. It would not hurt to take it off, but it does not "
                "matter here.",
            ),
            ("c", "synchronized"): Diagnosis(
                "wake-up-not-small",
                "Launch and wake-up are 10 to 20 µs: of 300 that is more than 2 %.",
            ),
            ("d", "events"): Diagnosis(
                "floor-as-large-as-the-kernel",
                "Plain events read the launch, when the GPU is that quick; and even behind a "
                "sleep 3 µs of floor on top of 2 µs of kernel.",
            ),
            ("e", "calibrated"): Diagnosis(
                "pauses-between-launches",
                "Calibrated events read the pauses between launched kernels, about 1 µs each. In "
                "a graph these are shorter, and that is what will run.",
            ),
        },
        otherwise=(
            Diagnosis(
                "wrong-rung",
                "Say first what is in the reading beside the kernel: the launch, the wake-up, "
                "the floor. Is it large beside the work? Is it part of the question?",
            ),
        ),
    ),
    hints=(
        "How long is the work, and how large is the error of the rung in microseconds?",
        "Two of the five ask for something that the host does.",
    ),
    choices={
        "a": "How long does Python need to launch this operator?",
        "b": "How long does a user wait for a step of 30 ms?",
        "c": "How long does this kernel of 0.3 ms take on warm data, within 2 %?",
        "d": "How long is a kernel of 2 µs by itself, in a program that finds its data cold?",
        "e": "How long will forty small kernels take when they are replayed together?",
    },
)

EXERCISES = (GAPS, LONG_ENOUGH, SYNC_INSIDE, GRAPH_IT, CAPTURABLE, WHICH_RUNG)
