"""Exercises of lesson 02: where to wait, what a wait costs, and which side waits."""

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import BenchmarkJudge, Choice, Diagnosis, Table, TimerFunction

_IDLE_ENOUGH = 0.5  # a reading below half of the work cannot contain the work


_LAUNCH_ONLY = Diagnosis(
    "launch-only",
    "You timed the launch, not the kernel: you read the clock the second time while the GPU is "
    "still working. Wait between work() and that reading.",
)
_WAITED_BEFORE = Diagnosis(
    "waited-before-work",
    "Your interval contains a wait, but the wait comes before the work. So you read the time of "
    "the backlog, and only the launch of the work. Wait before the first reading, and again after "
    "work().",
)
_BACKLOG = Diagnosis(
    "backlog-charged",
    "Your reading is right on an idle GPU. When other work is still in the queue, it is charged "
    "to you. Wait before you read the clock the first time.",
)

# By the readings on an idle GPU and on a busy one.
_MISSING_WAITS = (
    (
        # A function reads the time of the backlog alone if it waits only before the work.
        lambda readings: (
            readings[0].ratio < _IDLE_ENOUGH and readings[1].is_near(readings[1].queued)
        ),
        _WAITED_BEFORE,
    ),
    (lambda readings: readings[0].ratio < _IDLE_ENOUGH, _LAUNCH_ONLY),
    (lambda readings: readings[1].is_near(1 + readings[1].queued), _BACKLOG),
)

TIME_IT_RIGHT = Exercise(
    "02.time-it-right",
    "Write timed(work). It returns the seconds from an idle GPU to the end of the work, read on "
    "the host. It must also be right when other work is still in the queue.",
    TimerFunction(
        name="timed",
        why="Your number is the time of the work, on an idle GPU and behind other work. The clock "
        "of the host also reads the launch and the wake-up, some microseconds. That does not "
        "matter for milliseconds of work, but it hides a short kernel.",
        mistakes=_MISSING_WAITS,
    ),
    hints=(
        "Besides the work, the function reads time.perf_counter() twice and waits twice.",
        "Call torch.cuda.synchronize() before the first reading, and again before the second.",
    ),
)

WHAT_IS_CHARGED = Exercise(
    "02.what-is-charged",
    "The stopwatch waits after your matmul. The others were launched before it started. Why does "
    "each of them make the reading longer?",
    Choice(
        right="b",
        why="synchronize waits for everything that is in the queues. It does not know which work "
        "is yours.",
        wrong={
            "a": Diagnosis(
                "slower-when-busy",
                "Each matmul takes the same time, whether one or twenty of them are in the queue. "
                "But yours has to wait for its turn.",
            ),
            "c": Diagnosis(
                "side-by-side",
                "The work of one queue does not run side by side: the GPU takes one entry after "
                "the other.",
            ),
            "d": Diagnosis(
                "slower-launch",
                "A launch takes some microseconds, as long as the queue has room. Each matmul "
                "before yours added the time of a whole matmul.",
            ),
        },
    ),
    hints=(
        "When does the GPU begin with your matmul?",
        "For what does torch.cuda.synchronize() wait?",
    ),
    choices={
        "a": "The GPU is slower while it has much to do.",
        "b": "The wait ends when the whole queue is done, and the others are in it.",
        "c": "The matmuls run at the same time and share the GPU.",
        "d": "A launch takes longer if the queue is longer.",
    },
)

_READS = ("work", "launch", "work and backlog")
_FIXES = ("none", "wait before", "wait after")
_LATE_WAIT = Diagnosis(
    "late-wait",
    "a: there is a wait, but after the second reading. At t1 the model was still in the queue.",
)
_IDLE_QUEUE = Diagnosis(
    "idle-queue",
    "c: the queue is empty at t0, because .item() has waited for it. You need a wait only where "
    "there may be something to wait for.",
)
_ITEM_WAITS = Diagnosis(
    "item-waits",
    "d: .item() needs the value, so it waits for the model. The reading contains the work, and "
    "the small sum.",
)

SNIPPET_QUIZ = Exercise(
    "02.snippet-quiz",
    "Four listings. What does the number of each contain, and which fix does the listing need? "
    "model and warm_up only launch kernels.\n\n"
    "    a   torch.cuda.synchronize()\n"
    "        t0 = time.perf_counter()\n"
    "        y = model(x)\n"
    "        t1 = time.perf_counter()\n"
    "        torch.cuda.synchronize()\n\n"
    "    b   warm_up(model, x)\n"
    "        t0 = time.perf_counter()\n"
    "        y = model(x)\n"
    "        torch.cuda.synchronize()\n"
    "        t1 = time.perf_counter()\n\n"
    "    c   before = model(x).sum().item()\n"
    "        t0 = time.perf_counter()\n"
    "        y = model(x)\n"
    "        torch.cuda.synchronize()\n"
    "        t1 = time.perf_counter()\n\n"
    "    d   torch.cuda.synchronize()\n"
    "        t0 = time.perf_counter()\n"
    "        loss = model(x).sum().item()\n"
    "        t1 = time.perf_counter()",
    Table(
        right={
            "a": ("launch", "wait after"),
            "b": ("work and backlog", "wait before"),
            "c": ("work", "none"),
            "d": ("work", "none"),
        },
        why="The host's clock needs an empty queue at the first reading, and a wait between the "
        "work and the second. It does not matter how the queue became empty, or which line waits.",
        allowed=(_READS, _FIXES),
        wrong={
            ("a", "work"): _LATE_WAIT,
            ("a", "work and backlog"): _LATE_WAIT,
            ("b", "work"): Diagnosis(
                "backlog",
                "b: the launches of warm_up are still in the queue at t0, and the wait at the end "
                "waits for them too.",
            ),
            ("c", "work and backlog"): _IDLE_QUEUE,
            ("d", "launch"): _ITEM_WAITS,
        },
        otherwise=(
            Diagnosis(
                "wrong-reading",
                "For each listing, ask: is the queue empty at the first reading, and at the "
                "second?",
            ),
            Diagnosis(
                "wrong-fix",
                "You know what each number contains, but a fix is wrong. Without a wait before, "
                "the backlog is charged to you. Without a wait after, the work is left out.",
            ),
        ),
        headings=("it reads", "it lacks"),
    ),
    hints=(
        "Mark in each listing where the queue is empty.",
        "Two of the four are right.",
    ),
)

_GPU_SIDE = Diagnosis(
    "wait-is-gpu-side",
    "wait_event and wait_stream put a wait into the stream. That stream stops there, and the host "
    "goes on at once.",
)
_HOST_SIDE = Diagnosis(
    "synchronize-blocks-host",
    "Every call named synchronize blocks the host: for the device, for one stream, or for one "
    "event. They differ in what they wait for, not in who waits.",
)
_HOST = ("torch.cuda.synchronize", "stream.synchronize", "event.synchronize")
_GPU = ("stream.wait_event", "stream.wait_stream")

WHO_BLOCKS = Exercise(
    "02.who-blocks",
    "Five ways to wait. Does the host wait, or only the GPU?",
    Table(
        right=dict.fromkeys(_HOST, "host") | dict.fromkeys(_GPU, "gpu"),
        why="Every call named synchronize blocks the host. wait_event and wait_stream make a "
        "stream wait, and the host goes on. Use the first kind to time on the host, and the "
        "second to order streams.",
        allowed=(("host", "gpu"),),
        wrong=dict.fromkeys(((name, "host") for name in _GPU), _GPU_SIDE)
        | dict.fromkeys(((name, "gpu") for name in _HOST), _HOST_SIDE),
        otherwise=(_HOST_SIDE,),
    ),
    hints=(
        "Look at the host's lane in the timelines. Where is it blocked before the last wait?",
        "The names say it: synchronize, or wait.",
    ),
)

BENCHMARK = Exercise(
    "02.benchmark",
    "Your benchmark(fn) from lesson 01 does not wait. Let it wait in the right places, so that it "
    "returns the seconds of one call, also when other work is still in the queue. Call fn several "
    "times and return the median.",
    BenchmarkJudge("wait"),
    hints=(
        "The function timed(fn) of the lesson times one call. Use the same lines in a loop.",
        "Keep the reading of each call in a list, and return statistics.median of the list.",
    ),
)

EXERCISES = (WHAT_IS_CHARGED, SNIPPET_QUIZ, WHO_BLOCKS, TIME_IT_RIGHT, BENCHMARK)
