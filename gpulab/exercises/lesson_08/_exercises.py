"""Exercises of lesson 08: streams, waits, races, and copies that overlap with kernels."""

from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import BenchmarkJudge, Choice, Diagnosis, Table
from gpulab.exercises.lesson_08._double_buffer import LEAST_OVERLAP, DoubleBuffer

_GPU_SIDE = Diagnosis(
    "wait-is-gpu-side",
    "wait_event and wait_stream put the wait into the queue of right. The host goes on at once, "
    "whether a, b or c are done or not.",
)
_OWN_QUEUE = Diagnosis(
    "own-queue-first",
    "d is in right, after c, so it always starts after c, whatever LINE is. Add what LINE makes "
    "it wait for.",
)
_MARKER = Diagnosis(
    "marker-is-not-the-stream",
    "The marker was recorded between a and b: a wait for it is a wait for a, and not for b.",
)
_ONE_STREAM = Diagnosis(
    "one-stream-alone",
    "left.synchronize() and .item() wait for one stream. What the other one has done by then is "
    "luck: nothing guarantees it.",
)
_ITEM_WAITS = Diagnosis(
    "item-waits",
    ".item() gives a Python number, so the host must wait for c, which computes it.",
)
_LAUNCHED_LATE = Diagnosis(
    "launched-after-the-wait",
    "If the host waits, it launches d only afterwards: everything the host has waited for is done "
    "when d starts.",
)
_WAITED = ("none", "a", "ab", "c", "abc")
_AFTER = ("at once", "after a", "after ab", "after c", "after ac", "after abc")
_LINES = (
    *("torch.cuda.synchronize", "left.synchronize", "marker.synchronize"),
    *("right.wait_event", "right.wait_stream", "y.item"),
)
_SURE = (
    *(("abc", "after abc"), ("ab", "after abc"), ("a", "after ac")),
    *(("none", "after ac"), ("none", "after abc"), ("c", "after c")),
)

TOO_EARLY = Exercise(
    "08.too-early",
    "The mean is less than 1, and all numbers of the batch are 1. Why?",
    Choice(
        right="c",
        why="The mean starts when its own stream has nothing before it. The copy in the other "
        "stream has only begun, so the mean reads what was there before.",
        wrong={
            "a": Diagnosis(
                "item-waits-for-its-stream",
                "`.item()` waits until the mean is there, and it was there. The mean itself did "
                "not wait for the copy.",
            ),
            "b": Diagnosis(
                "default-stream-as-a-fence",
                "The copy did not fail: with one more wait, the mean is right. And the default "
                "stream did not wait. PyTorch creates its streams as ones for which it does not.",
            ),
            "d": Diagnosis(
                "host-was-done",
                "`torch.ones` had written the batch long before. With one more wait, and the same "
                "batch, the mean is right.",
            ),
        },
    ),
    hints=(
        "In which stream is the copy, and in which one is the mean?",
        "Which line made it right, and what did that line wait for?",
    ),
    choices={
        "a": "`.item()` waits only until the copy has begun.",
        "b": "The default stream waits for all others, so the copy must have failed.",
        "c": "The mean is in another stream than the copy, and nothing orders the two.",
        "d": "The batch was not yet written when the copy read it.",
    },
)

FIVE_WAITS = Exercise(
    "08.five-waits",
    "Put one of six lines in the place of LINE: torch.cuda.synchronize(), left.synchronize(), "
    "marker.synchronize(), right.wait_event(marker), right.wait_stream(left), or y.item(), where "
    "y is the result of c and right is current. Which of a, b and c are surely done when the host "
    "arrives at now()? And after which of them does d surely start?\n\n"
    "    with torch.cuda.stream(left):\n"
    "        a()\n"
    "        marker.record()\n"
    "        b()\n"
    "    with torch.cuda.stream(right):\n"
    "        y = c()\n"
    "        LINE\n"
    "    now()\n"
    "    with torch.cuda.stream(right):\n"
    "        d()",
    Table(
        right=dict(zip(_LINES, _SURE, strict=True)),
        why="Three of them block the host: for all streams, for one stream, or up to a marker. "
        ".item() blocks it too, for the current stream. wait_event and wait_stream block only the "
        "stream. And in its own stream d always comes after c.",
        allowed=(_WAITED, _AFTER),
        wrong={
            **dict.fromkeys(
                ((name, word) for name in _LINES[3:5] for word in _WAITED[1:]), _GPU_SIDE
            ),
            ("y.item", "none"): _ITEM_WAITS,
            ("marker.synchronize", "ab"): _MARKER,
            ("right.wait_event", "after abc"): _MARKER,
            ("left.synchronize", "abc"): _ONE_STREAM,
            ("y.item", "abc"): _ONE_STREAM,
            ("y.item", "after abc"): _ONE_STREAM,
            **dict.fromkeys(((name, word) for name in _LINES for word in _AFTER[:3]), _OWN_QUEUE),
            **dict.fromkeys(((name, "after c") for name in _LINES[:3]), _LAUNCHED_LATE),
        },
        otherwise=(
            Diagnosis("wrong-host", "For each line, ask: who waits, and for which entries?"),
            Diagnosis(
                "wrong-order",
                "When the host arrives is right. Now d: its own queue, and what LINE adds to it.",
            ),
        ),
        headings=("done at now()", "d starts"),
    ),
    hints=(
        "Draw three lanes: the host, left, right. Put LINE into the lane that waits.",
        "d is in right, and so is c: every answer about d has c in it.",
    ),
)

COPY_OVERLAP = Exercise(
    "08.copy-overlap",
    "compute() launches a kernel that does not need x, and still the kernel starts only after the "
    "copy. What does it take to run them at the same time?\n\n"
    "    batch = torch.empty(n)\n"
    "    x.copy_(batch, non_blocking=True)\n"
    "    compute()",
    Choice(
        right="d",
        why="There were two reasons, and each alone is enough to keep the timeline sequential: a "
        "copy from pageable memory blocks the host, and one stream is one queue.",
        wrong={
            "a": Diagnosis(
                "one-queue",
                "Now the host goes on, but copy and compute() are in one stream: an entry starts "
                "when the one before it is done.",
            ),
            "b": Diagnosis(
                "pageable",
                "Two queues, but the copy blocks the host until it is done, whatever non_blocking "
                "says: the host launches compute() too late.",
            ),
            "c": Diagnosis(
                "already-asked",
                "non_blocking=True is there already. It is a request: from pageable memory the "
                "driver must copy in pieces through a buffer of its own, and the host takes part.",
            ),
        },
    ),
    hints=(
        "What does the copy block: the host, the stream, or both?",
        "Each of the two reasons hides the other: fix one, and the timeline looks the same.",
    ),
    choices={
        "a": "Pinned memory: `torch.empty(n, pin_memory=True)`.",
        "b": "A stream of its own for the copies.",
        "c": "Nothing but `non_blocking=True`, on every copy.",
        "d": "Both a and b.",
    },
)

_SEQUENCES = {
    "two matmuls": ("the gpu is full", "nothing"),
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
    'You have seen two timelines: "two matmuls" of 4096 x 4096 and "two small kernels". In both '
    "the kernels are in two streams, nothing waits, and still one kernel runs after the other. "
    "Why, and what would help?",
    Table(
        right=_SEQUENCES,
        why="A kernel that fills the GPU leaves no room for another. Nothing is lost: the GPU "
        "works all the time. A kernel that is done before the next one is launched leaves the GPU "
        "idle: there you need fewer launches, by larger kernels or by a graph, not more streams.",
        allowed=(_REASONS, _CURES),
        wrong={
            **dict.fromkeys(((name, "one stream") for name in _SEQUENCES), _NOT_ONE_STREAM),
            ("two small kernels", "the gpu is full"): Diagnosis(
                "small-does-not-fill",
                "A kernel on 1,024 elements takes a few of the multiprocessors. Compare the end "
                "of the first kernel with the launch of the second.",
            ),
            ("two matmuls", "the host is late"): Diagnosis(
                "launched-in-time",
                "Both launches are over long before the first matmul ends. The second one was "
                "in its queue, ready, and found no free multiprocessor.",
            ),
            **dict.fromkeys(
                ((name, "more streams") for name in _SEQUENCES),
                Diagnosis(
                    "more-streams",
                    "More streams change nothing if there is no room, and nothing if the kernels "
                    "arrive one by one.",
                ),
            ),
        },
        otherwise=(
            Diagnosis("wrong-reason", "Is the GPU idle between the two kernels, or not?"),
            Diagnosis(
                "wrong-cure",
                "The reasons are right. What would make the GPU finish sooner? In one of the two "
                "cases nothing does: it already works all the time.",
            ),
        ),
        headings=("why", "what helps"),
    ),
    hints=(
        "In one of the timelines there is a gap between the kernels. Which?",
        "Compare in both the end of the second launch with the end of the first kernel.",
    ),
)

_WHO = ("fill", "copy", "compute")
_WAITS = ("host", "copying", "computing")

FIND_THE_RACES = Exercise(
    "08.find-the-races",
    "The report of gpulab.hazards() names two races, one for each kind of buffer. For each: what "
    "writes too early, what still reads, and what must wait (the host, the stream copying, or the "
    "stream computing)?",
    Table(
        right={"pinned": ("fill", "copy", "host"), "device": ("copy", "compute", "copying")},
        why="A writer must wait for the last reader of its buffer. The host writes the pinned "
        "buffer, so the host waits. A stream writes the device buffer, so the stream waits, and "
        "the host goes on.",
        allowed=(_WHO, _WHO, _WAITS),
        wrong={
            ("device", "fill"): Diagnosis(
                "host-writes-device",
                "fill writes the pinned buffer only. The copy writes the buffer on the GPU.",
            ),
            ("pinned", "copy"): Diagnosis(
                "copy-writes-pinned",
                "The copy goes to the GPU: it reads the pinned buffer, and fill writes it.",
            ),
            **dict.fromkeys(
                (("pinned", stream) for stream in _WAITS[1:]),
                Diagnosis(
                    "stream-cannot-hold-host",
                    "The host is the one that is too early. A wait in a stream does not block it: "
                    "the host must wait itself, in event.synchronize().",
                ),
            ),
            ("device", "computing"): Diagnosis(
                "reader-waits-already",
                "computing already waits for the copy. The way back is missing: the next copy "
                "into this buffer must wait until computing has read it.",
            ),
            ("device", "host"): Diagnosis(
                "host-need-not-wait",
                "The host could wait here, but then it launches nothing in the meantime. The "
                "writer is the copy in the stream copying: let that stream wait.",
            ),
        },
        otherwise=(
            Diagnosis("wrong-writer", "What puts new data into the buffer two steps later?"),
            Diagnosis("wrong-reader", "What may still be reading the buffer at that moment?"),
            Diagnosis("wrong-waiter", "The writer waits. In which lane is it?"),
        ),
        headings=("writes too early", "still reads", "must wait"),
    ),
    hints=(
        "Each entry of the report has two operations: one reads the buffer, one writes it.",
        "The data flow is fill, pinned buffer, copy, device buffer, compute.",
    ),
)

DOUBLE_BUFFER = Exercise(
    "08.double-buffer",
    "Write pipeline(slots, copying, fill, compute, n_steps): the listing with both races "
    "fixed. Every step must compute on its own data, and gpulab.hazards() must find nothing. Then "
    f"keep the overlap: {100 * LEAST_OVERLAP:.0f} % of what is possible, or more.",
    DoubleBuffer(),
    hints=(
        "Two waits are missing, each before a write: fill writes, and so does the copy.",
        "A wait for an event that was never recorded returns at once.",
        "The two calls are slot.copied.synchronize() and copying.wait_event(slot.computed).",
    ),
)

_WRONG_WAY = Diagnosis(
    "wrong-direction",
    "d: that makes side wait for the current stream. The memory goes back to the current stream's "
    "pool, so the current stream must wait for side.",
)
_WRONG_TENSOR = Diagnosis(
    "wrong-tensor",
    "e: total was made on side and is kept. The tensor that is dropped too early is x.",
)

RECORD_STREAM = Exercise(
    "08.record-stream",
    "x is created on the current stream, read on side, and dropped. One line, or none, is in the "
    "place of LINE. With which of them is total safe?\n\n"
    "    x = torch.ones(n, device='cuda')\n"
    "    side.wait_stream(torch.cuda.current_stream())\n"
    "    with torch.cuda.stream(side):\n"
    "        total = x.sum()\n"
    "    LINE\n"
    "    del x\n"
    "    other = torch.full((n,), 7.0, device='cuda')\n\n"
    "    a   (nothing)\n"
    "    b   x.record_stream(side)\n"
    "    c   torch.cuda.current_stream().wait_stream(side)\n"
    "    d   side.wait_stream(torch.cuda.current_stream())\n"
    "    e   total.record_stream(side)\n"
    "    f   side.synchronize()",
    Table(
        right={name: "safe" if name in "bcf" else "corrupted" for name in "abcdef"},
        why="The memory of x goes back to the pool of the stream on which it was made, at the "
        "moment of del. Either the allocator knows that side uses it (b), or that stream comes "
        "after side (c), or side is done (f).",
        allowed=(("safe", "corrupted"),),
        wrong={
            ("a", "safe"): Diagnosis(
                "del-does-not-wait",
                "a: del waits for nothing. The host drops x before side has read it, and the next "
                "tensor of this size gets the same memory.",
            ),
            ("d", "safe"): _WRONG_WAY,
            ("e", "safe"): _WRONG_TENSOR,
            ("c", "corrupted"): Diagnosis(
                "order-is-enough",
                "c: other gets the same memory, but its kernel is in the current stream, after "
                "the wait. So the memory is written only after side has read it.",
            ),
            ("f", "corrupted"): Diagnosis(
                "nothing-left-to-read",
                "f: the host goes on when side is done. That is safe, but it blocks the host.",
            ),
            ("b", "corrupted"): Diagnosis(
                "record-stream",
                "b: this is what record_stream is for. The allocator gives the memory to another "
                "tensor only when side has done what was in its queue at del.",
            ),
        },
        otherwise=(Diagnosis("wrong", "When is the memory of x written again?"),),
    ),
    hints=(
        "Which stream writes into the memory of x again, and when?",
        "Three of the six are safe.",
    ),
)

_NEEDED = (
    *("none", "default waits for side", "third waits for default"),
    *("third waits for side", "side waits for default"),
)

BACKWARD = Exercise(
    "08.backward",
    "forward ran on side, and the default stream has waited for it. Four ways to go on; each pair "
    "says on which stream loss.backward() is called and on which optimizer.step(). Which wait is "
    "needed between the two calls?\n\n"
    "    a   backward: default   step: default\n"
    "    b   backward: side      step: default\n"
    "    c   backward: default   step: third\n"
    "    d   backward: side      step: side",
    Table(
        right={
            "a": "none",
            "b": "default waits for side",
            "c": "third waits for default",
            "d": "none",
        },
        why="Backward runs on the streams of forward, and at its end the stream that called it "
        "waits for all of them. So only another stream than the caller's needs a wait, and it "
        "waits for the caller's.",
        allowed=(_NEEDED,),
        wrong={
            ("a", "default waits for side"): Diagnosis(
                "caller-waits-already",
                "a: not wrong, but unnecessary. The stream that is current when backward() is "
                "called waits for the gradients automatically.",
            ),
            ("b", "none"): Diagnosis(
                "caller-was-side",
                "b: backward makes the caller's stream wait, and here that was side. The default "
                "stream does not wait.",
            ),
            ("c", "none"): Diagnosis(
                "other-stream",
                "c: the default stream waits for the gradients, but third is another queue: it "
                "begins at once.",
            ),
            ("c", "third waits for side"): Diagnosis(
                "not-promised",
                "c: this is enough only while every gradient is computed on side. PyTorch "
                "guarantees only that the caller's stream comes after all of them: wait for "
                "default.",
            ),
            ("d", "default waits for side"): Diagnosis(
                "default-not-concerned",
                "d: both calls are in one stream, so they run in order. The default stream needs "
                "a wait only when it uses the new weights.",
            ),
        },
        otherwise=(Diagnosis("wrong-wait", "Who uses the gradients, and who waited for them?"),),
    ),
    hints=(
        "At its end backward makes one stream wait. Which?",
        "A wait is needed where the optimizer is in another stream than the call of backward.",
    ),
)

BENCHMARK = Exercise(
    "08.benchmark",
    "Your benchmark from lesson 07, whole: it waits, warms up, flushes the cache, times with "
    "events, gives the host a head start, and reports the clock. Does it agree with "
    "gpulab.measure for a large matmul, a sum of 64 MiB and ten small kernels? It may differ by "
    "15 % and the floor of a pair of events.",
    BenchmarkJudge(rung="measure"),
    hints=(
        "Start from the listing above. The check names the first thing that is missing.",
        "Flush before each sample, and let the GPU sleep long enough for all launches of a round.",
    ),
)

EXERCISES = (
    *(TOO_EARLY, FIVE_WAITS, COPY_OVERLAP, TWO_REASONS, FIND_THE_RACES),
    *(DOUBLE_BUFFER, RECORD_STREAM, BACKWARD, BENCHMARK),
)
