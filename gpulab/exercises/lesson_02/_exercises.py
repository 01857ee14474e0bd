"""Where to wait, what a wait costs, and who it is that waits."""

from typing import TYPE_CHECKING

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Diagnosis, Table, TimerFunction, near, unexplained

if TYPE_CHECKING:
    from gpulab.exercises.answers import FunctionTrial


_IDLE_ENOUGH = 0.5  # a reading below half of the work cannot hold the work


def _explain_stopwatch(idle: "FunctionTrial", busy: "FunctionTrial") -> Diagnosis | None:
    """Say which wait is missing, from the readings on an idle and on a busy GPU."""
    queued = busy.backlog_s / busy.work_s
    if idle.ratio is not None and idle.ratio < _IDLE_ENOUGH:
        return _WAITED_BEFORE if near(busy.ratio, queued) else _LAUNCH_ONLY
    if near(busy.ratio, 1 + queued):
        return _BACKLOG
    if near(idle.ratio, 1) and near(busy.ratio, 1):
        return None
    return unexplained(idle, busy)


_LAUNCH_ONLY = Diagnosis(
    "launch-only",
    "You timed the launch, not the kernel: the second reading of the clock is taken while the "
    "GPU still works. Wait between work() and that reading.",
)
_WAITED_BEFORE = Diagnosis(
    "waited-before-work",
    "Your interval holds a wait, but in front of the work: it reads what was queued before, and "
    "of the work only the launch. Wait before the first reading, and again after work().",
)
_BACKLOG = Diagnosis(
    "backlog-charged",
    "On an idle GPU your reading is right. When work of others is still in the queue, it is "
    "charged to you: wait for an idle GPU before you read the clock the first time.",
)

TIME_IT_RIGHT = Exercise(
    "02.time-it-right",
    "Write timed(work): the seconds from an idle GPU to the end of the work, read on the host. "
    "It must be right on an idle GPU and on one that still has other work in its queue.",
    TimerFunction(
        name="timed",
        why="Wait, read, work, wait, read. The reading still holds the launch and the wake-up, "
        "some 10 µs: nothing against milliseconds, too much for a kernel of a few microseconds.",
        explain=_explain_stopwatch,
    ),
    hints=(
        "Four things happen in it: two readings of time.perf_counter() and two waits.",
        "torch.cuda.synchronize() before the first reading, and again before the second.",
    ),
)

_READS = ("work", "launch", "work and backlog")
_FIXES = ("none", "wait before", "wait after")
_LATE_WAIT = Diagnosis(
    "late-wait",
    "a: there is a wait, but after the second reading. When t1 was read, the model was still in "
    "the queue.",
)
_IDLE_QUEUE = Diagnosis(
    "idle-queue",
    "c: nothing is left in the queue at t0, because .item() has waited for it. A wait is needed "
    "only where there may be something to wait for.",
)

SNIPPET_QUIZ = Exercise(
    "02.snippet-quiz",
    "Three listings. What does t1 - t0 hold, and which fix does it need? model and warm_up only "
    "launch kernels.\n\n"
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
    "        t1 = time.perf_counter()",
    Table(
        right={
            "a": ("launch", "wait after"),
            "b": ("work and backlog", "wait before"),
            "c": ("work", "none"),
        },
        why="A wait must stand between the work and the second reading, and the queue must be "
        "empty at the first. How it became empty does not matter.",
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
        },
        otherwise=(
            Diagnosis("wrong-reading", "Ask: is the queue empty at t0, and is it at t1?"),
            Diagnosis(
                "wrong-fix",
                "What each reads is right, but a fix is not: a missing wait before charges the "
                "backlog, a missing wait after (before t1 is read) leaves the work out.",
            ),
        ),
    ),
    hints=(
        "Mark in each listing where the queue is empty.",
        "Two of the three are wrong, each for another reason.",
    ),
)

_GPU_SIDE = Diagnosis(
    "wait-is-gpu-side",
    "wait_event and wait_stream put the wait into the stream: the GPU will hold that stream, "
    "the host goes on at once.",
)
_HOST_SIDE = Diagnosis(
    "synchronize-blocks-host",
    "Whatever is called synchronize keeps the host until it is done: the device, one stream, or "
    "one event. They differ in what they wait for, not in who waits.",
)
_HOST = ("torch.cuda.synchronize", "stream.synchronize", "event.synchronize")
_GPU = ("stream.wait_event", "stream.wait_stream")

WHO_BLOCKS = Exercise(
    "02.who-blocks",
    "Five ways to wait. Does the host wait, or only the GPU?",
    Table(
        right=dict.fromkeys(_HOST, "host") | dict.fromkeys(_GPU, "gpu"),
        why="Synchronize keeps the host; wait_event and wait_stream keep a stream, and the host "
        "goes on. To time on the host you need the first kind; to order streams, the second.",
        allowed=(("host", "gpu"),),
        wrong=dict.fromkeys(((name, "host") for name in _GPU), _GPU_SIDE)
        | dict.fromkeys(((name, "gpu") for name in _HOST), _HOST_SIDE),
        otherwise=(_HOST_SIDE,),
    ),
    hints=(
        "Look at the host in the five timelines: where does it stand still before the last wait?",
        "The name tells: synchronize, or wait.",
    ),
)

EXERCISES = (TIME_IT_RIGHT, SNIPPET_QUIZ, WHO_BLOCKS)
