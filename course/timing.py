"""The keys of the lab on timing: they stay with the grader, and no package contains them."""

from collections.abc import Mapping

from gpulab.course import FunctionKey, LettersKey, NumbersKey, Part, Variant

_WAIT = {
    "`bool(y.any())`",
    "`float(y.mean())`",
    "`m = y.max().tolist()`",
    "`n = y.nonzero()`",
    "`y[y > 0]`",
    "`torch.unique(y)`",
    "`int(y[0, 0])`",
    "`end.record(); end.synchronize()`",
}


def _waiting(variant: Variant) -> str:
    return "".join(letter for letter, line in variant.choices.items() if line in _WAIT)


def _readings(variant: Variant) -> Mapping[str, float]:
    kernel, backlog, host = (
        float(str(variant.numbers[name])) for name in ("kernel", "backlog", "host")
    )
    return {
        "slept": host,
        "waited": max(backlog + kernel, host),
        "events": kernel,
        "moved": max(kernel, host),
    }


_TAIL = """
import statistics
import torch


def tail(work, n_calls):
    for _ in range(10):
        work()
    torch.cuda.synchronize()
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(n_calls)]
    torch.cuda._sleep(20_000_000)
    for start, end in pairs:
        start.record()
        work()
        end.record()
    torch.cuda.synchronize()
    times_s = [start.elapsed_time(end) / 1000 for start, end in pairs]
    return statistics.median(times_s), max(times_s)
"""

KEYS = {
    "waits": LettersKey(_waiting),
    "readings": NumbersKey(_readings),
    "tail": FunctionKey(
        _TAIL,
        (
            Part("steady", "The median of equal calls is wrong."),
            Part("backlog", "Earlier work in the queue is in your median."),
            # They take twenty times as long as the others. A host that has waited for them is
            # cold, and adds to the largest time of a right way to leave them out.
            Part("first calls", "The slow first calls are in your numbers.", index=1, high=1.0),
            Part("largest", "The largest of the times is wrong.", index=1),
            Part("short", "Launches or waits are in the times of short kernels.", high=0.1),
        ),
    ),
}
