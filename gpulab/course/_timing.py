"""The lab "timing": which lines wait for the GPU, four readings of one kernel, and a timer."""

from gpulab.course._question import Lab, LabQuestion, Variant
from gpulab.course._seeded_random import SeededDraw

# In each pair one line waits for the GPU and one does not; a learner can try them.
_PAIRS = (
    ("`bool(y.any())`", "`y.dim()`"),
    ("`float(y.mean())`", "`y.mean()`"),
    ("`m = y.max()`", "`m = y.max().tolist()`"),
    ("`n = len(y)`", "`n = y.nonzero()`"),
    ("`torch.where(y > 0, y, z)`", "`y[y > 0]`"),
    ("`torch.sort(y)`", "`torch.unique(y)`"),
    ("`y.add_(1)`", "`int(y[0, 0])`"),
    ("`end.record()`", "`end.record(); end.synchronize()`"),
)
_LETTERS = "kmnprstu"  # other letters than those of the lessons


def _waits(draw: SeededDraw) -> Variant:
    lines = draw.shuffled([line for pair in _PAIRS for line in pair])
    pairs = draw.shuffled(_PAIRS)[: len(_LETTERS) // 2]
    shown = [line for line in lines if any(line in pair for pair in pairs)]
    return Variant(
        "Put one of the lines below in place of LINE. With which of them does the host wait for "
        "the matmul before it reads the clock again? `y`, `z` and `end` (an event) are on the "
        "GPU.\n\n"
        "    t0 = time.perf_counter()\n"
        "    y = x @ x              # on the GPU, takes milliseconds\n"
        "    LINE\n"
        "    t1 = time.perf_counter()",
        dict(zip(_LETTERS, shown, strict=True)),
    )


def _readings(draw: SeededDraw) -> Variant:
    kernel, backlog = draw.number(20, 60, 2), draw.number(70, 130, 10)
    host = kernel + draw.number(6, 12, 2)  # between kernel and kernel + backlog
    return Variant(
        f"The kernel takes {kernel} ms, the backlog {backlog} ms, and the sleep of the host "
        f"{host} ms. All work is in one stream; the GPU is idle before.\n\n"
        "    backlog()\n"
        "    t0 = time.perf_counter()\n"
        "    start.record()\n"
        "    kernel()\n"
        "    end.record()\n"
        f"    time.sleep({host / 1000:g})\n"
        "    t1 = time.perf_counter()\n"
        "    torch.cuda.synchronize()\n"
        "    t2 = time.perf_counter()\n\n"
        "Give four readings in milliseconds. slept: t1 - t0. waited: t2 - t0. "
        "events: start.elapsed_time(end). moved: t2 - t0, if one more torch.cuda.synchronize() "
        "stands between backlog() and the first reading of the clock. Launches take "
        "microseconds; leave them out.",
        numbers={"kernel": kernel, "backlog": backlog, "host": host},
    )


def _tail(_draw: SeededDraw) -> Variant:
    """Return the question about the slowest call, which is the same for every learner."""
    return Variant(
        "Write tail(work, n_calls). It returns a pair of seconds: the median and the largest of "
        "the times that n_calls single calls of work take on the GPU. work is a function without "
        "arguments that puts work into the queue. Up to ten first calls may be slow; they do not "
        "count. Work that is still in the queue when tail is called does not count either. Some "
        "kernels take only 20 µs, and then launches and waits must not be in the numbers."
    )


TIMING = Lab(
    "timing",
    "Lab: time GPU work",
    "This lab belongs to lessons 01 to 04. Try on the GPU whatever you like before you answer.",
    (
        LabQuestion(
            "waits",
            "Which lines wait?",
            2,
            'Answer with a text of letters, such as `waits = "km"`.',
            _waits,
        ),
        LabQuestion(
            "readings",
            "Four readings of one kernel",
            4,
            "Answer with four numbers in milliseconds: "
            '`readings = {"slept": 1.0, "waited": 1.0, "events": 1.0, "moved": 1.0}`.',
            _readings,
        ),
        LabQuestion(
            "tail",
            "A timer that shows the tail",
            5,
            "Answer with the function `def tail(work, n_calls):`. You may import torch, time and "
            "statistics; write the timer yourself.",
            _tail,
            trial="tail",
        ),
    ),
)
