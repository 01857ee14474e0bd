"""How copies and kernels run at the same time, and which waits keep that safe."""

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Choice, Diagnosis, Table
from gpulab.exercises.lesson_08._double_buffer import DOUBLE_BUFFER
from gpulab.exercises.lesson_08._stream_order import BACKWARD, FIVE_WAITS, RECORD_STREAM

_SEQUENCES = {
    "two products": ("the gpu is full", "nothing"),
    "two small kernels": ("the host is late", "fewer launches"),
}
_REASONS = ("the gpu is full", "the host is late", "one stream", "a wait")
_CURES = ("nothing", "fewer launches", "more streams", "pinned memory")
_NOT_ONE_STREAM = Diagnosis(
    "streams-are-two",
    "Look at the lanes: the kernels are in two streams, and no stream waits for another. Streams "
    "allow two kernels to run at once; they do not make it happen.",
)

TWO_REASONS = Exercise(
    "08.two-reasons",
    'You have seen two timelines: "two products" of 4096 x 4096 and "two small kernels". In both '
    "the kernels are in two streams, nothing waits, and still one kernel runs after the other. "
    "Why, and what would help?",
    Table(
        right=_SEQUENCES,
        why="A kernel that fills the GPU leaves no room: nothing is lost, the GPU works all the "
        "time. A kernel that is done before the next one is launched leaves the GPU idle: there "
        "the cure is less launching, by larger kernels or by a graph, not more streams.",
        allowed=(_REASONS, _CURES),
        wrong={
            **dict.fromkeys(((name, "one stream") for name in _SEQUENCES), _NOT_ONE_STREAM),
            ("two small kernels", "the gpu is full"): Diagnosis(
                "small-does-not-fill",
                "A kernel on 1,024 elements takes a handful of the multiprocessors. Compare the "
                "end of the first kernel with the launch of the second.",
            ),
            ("two products", "the host is late"): Diagnosis(
                "launched-in-time",
                "Both launches are over long before the first product ends. The second one was "
                "in its queue, ready, and found no free multiprocessor.",
            ),
            **dict.fromkeys(
                ((name, "more streams") for name in _SEQUENCES),
                Diagnosis(
                    "more-streams",
                    "More streams change nothing where there is no room, and nothing where the "
                    "kernels arrive one by one.",
                ),
            ),
        },
        otherwise=(
            Diagnosis("wrong-reason", "Is the GPU idle between the two kernels, or not?"),
            Diagnosis(
                "wrong-cure",
                "The reasons are right. What would make each GPU finish sooner? For one of them "
                "nothing does: it works all the time already.",
            ),
        ),
    ),
    hints=(
        "In one of the timelines there is a gap between the kernels. Which?",
        "Compare in both the end of the second launch with the end of the first kernel.",
    ),
)

COPY_OVERLAP = Exercise(
    "08.copy-overlap",
    "compute() launches a kernel that does not need x, and still the kernel starts when the copy "
    "is over. What does it take to run them at the same time?\n\n"
    "    batch = torch.empty(n)\n"
    "    x.copy_(batch, non_blocking=True)\n"
    "    compute()",
    Choice(
        right="d",
        why="There were two reasons, and each alone is enough to keep the trace sequential: "
        "pageable memory keeps the host in the copy, and one stream is one queue.",
        wrong={
            "a": Diagnosis(
                "one-queue",
                "Now the host goes on, but copy and compute() stand in one stream: an entry "
                "starts when the one before it is done.",
            ),
            "b": Diagnosis(
                "pageable",
                "Two queues, but the host stands in the copy until it is over, whatever "
                "non_blocking says: compute() is launched too late to run beside it.",
            ),
            "c": Diagnosis(
                "already-asked",
                "non_blocking=True is there already. It is a request: from pageable memory the "
                "driver must copy in pieces through a buffer of its own, and the host takes part.",
            ),
        },
    ),
    hints=(
        "Who is held up by the copy: the host, the stream, or both?",
        "Each of the two reasons hides the other: mend one, and the trace looks the same.",
    ),
    choices={
        "a": "Pinned memory: `torch.empty(n, pin_memory=True)`.",
        "b": "A stream of its own for the copies.",
        "c": "Nothing but `non_blocking=True`, on every copy.",
        "d": "Both a and b.",
    },
)

_WHO = ("fill", "copy", "compute")
_WAITS = ("host", "copying", "computing")

FIND_THE_RACES = Exercise(
    "08.find-the-races",
    "The report of gpulab.hazards() names two races, one for each kind of buffer. For each: who "
    "writes too early, who still reads, and who must wait (the host, the stream copying, or the "
    "stream computing)?",
    Table(
        right={"pinned": ("fill", "copy", "host"), "device": ("copy", "compute", "copying")},
        why="Whoever writes into a buffer waits for its last reader. The writer of the pinned "
        "buffer is the host, so the host waits; the writer of the device buffer is a stream, so "
        "the stream waits, and the host goes on.",
        allowed=(_WHO, _WHO, _WAITS),
        wrong={
            ("device", "fill"): Diagnosis(
                "host-writes-device",
                "fill writes the pinned buffer only. Into the buffer on the GPU writes the copy.",
            ),
            ("pinned", "copy"): Diagnosis(
                "copy-writes-pinned",
                "The copy goes to the GPU: it reads the pinned buffer, and fill writes it.",
            ),
            ("pinned", "copying"): Diagnosis(
                "stream-cannot-hold-host",
                "The one that is too early is the host. A wait in a stream does not hold it: the "
                "host must stand still, in event.synchronize().",
            ),
            ("pinned", "computing"): Diagnosis(
                "stream-cannot-hold-host",
                "The one that is too early is the host. A wait in a stream does not hold it: the "
                "host must stand still, in event.synchronize().",
            ),
            ("device", "computing"): Diagnosis(
                "reader-waits-already",
                "computing waits for the copy already. What is missing is the way back: the next "
                "copy into this buffer must wait until computing has read it.",
            ),
            ("device", "host"): Diagnosis(
                "host-need-not-wait",
                "The host could wait here, but then it launches nothing meanwhile. The writer is "
                "the copy in the stream copying: let that stream wait.",
            ),
        },
        otherwise=(
            Diagnosis("wrong-writer", "Who puts new data into the buffer two steps later?"),
            Diagnosis("wrong-reader", "Who may still be reading the buffer at that moment?"),
            Diagnosis("wrong-waiter", "The writer waits. In which lane does it stand?"),
        ),
    ),
    hints=(
        "Each entry of the report has two operations: one reads the buffer, one writes it.",
        "The data flow is fill, pinned buffer, copy, device buffer, compute.",
    ),
)

EXERCISES = (
    *(FIVE_WAITS, COPY_OVERLAP, TWO_REASONS, FIND_THE_RACES),
    *(DOUBLE_BUFFER, RECORD_STREAM, BACKWARD),
)
