"""The keys of the lab on streams: they stay with the grader, and no package contains them."""

from collections.abc import Mapping
from math import inf
from typing import Any

from gpulab.course import FunctionKey, NumbersKey, Part, SetsKey, Variant


def _surely_done(variant: Variant) -> Mapping[str, str]:
    numbers: Any = variant.numbers
    before: dict[str, set[str]] = {"left": set(), "right": set(), "marker": set()}
    for step in numbers["program"]:
        stream, _, action = step.partition(" ")
        if action == "marker.record()":
            before["marker"] = set(before[stream])
        elif action == "right.wait_event(marker)":
            before[stream] |= before["marker"]
        else:
            before[stream].add(action)
    # a wait is itself in the queue: right.synchronize() waits for what it waits for
    return {name: "".join(sorted(letters)) for name, letters in before.items()}


def _makespan(variant: Variant) -> Mapping[str, float]:
    numbers: Any = variant.numbers
    n_steps, copy, compute = (numbers[name] for name in ("n_steps", "copy", "compute"))
    return {
        "serial": float(n_steps * (copy + compute)),
        "overlapped": float(copy + (n_steps - 1) * max(copy, compute) + compute),
    }


_SECONDS_IN = """
import torch


def seconds_in(stream, work):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(stream):
        start.record()
        work()
        end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000
"""

_PIPELINE = """
import torch


def pipeline(side, copies, computes):
    for copy, compute in zip(copies, computes):
        arrived = torch.cuda.Event()
        with torch.cuda.stream(side):
            copy()
            arrived.record()
        torch.cuda.current_stream().wait_event(arrived)
        compute()
"""

KEYS = {
    "surely_done": SetsKey(_surely_done),
    "makespan": NumbersKey(_makespan, tolerance=0.001),
    "seconds_in": FunctionKey(
        _SECONDS_IN,
        (
            Part("idle", "The time on an idle GPU is wrong."),
            Part("queue", "Earlier work of the stream is in your time."),
            Part(
                "stream",
                "The work does not run in the given stream.",
                low=0.3,
                high=inf,
                fact="host, queue",
                after="idle",
            ),
            Part("others", "Work of another stream is in your time."),
            Part(
                "host",
                "The host waits for other streams.",
                low=1.0,
                high=9.0,
                fact="host, others",
                after="others",
            ),
        ),
    ),
    "pipeline": FunctionKey(
        _PIPELINE,
        (
            Part("values", "Some results are not those of their own batch.", None, 0.0, 0.0),
            Part(
                "order",
                "gpulab.hazards() finds accesses in no order.",
                after="values",
            ),
            Part("time", "Copies and computing do not overlap enough.", high=0.1, after="values"),
        ),
    ),
}
