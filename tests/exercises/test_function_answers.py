"""Answers to the functions that lessons 07 to 12 ask for: other right ways, and mistakes."""

# ruff: noqa: D103, ARG001, ANN401  # each answer is named for what it does; many ignore an argument

import math
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import count
from statistics import median
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gpulab import clocks
from tests.support.answers import Answer, Answers, assert_verdict, changed, events

Work = Callable[[], object]
Fill = Callable[[Tensor, int], None]
Compute = Callable[[Tensor, int], None]
Function = Callable[[Tensor], Tensor]

ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong


# 07.long-enough


def host_time(work: Work, n_samples: int = 40) -> float:
    """Return the time of the host for samples with events."""
    pairs = [events() for _ in range(n_samples)]
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for start, end in pairs:
        start.record()
        work()
        end.record()
    host_s = time.perf_counter() - begin
    torch.cuda.synchronize()
    return host_s


@right("07.long-enough")
def half_more_than_the_host(work: Work) -> int:
    return int(1.5 * host_time(work) * 2e9)


@right("07.long-enough")
def doubled_until_the_host_is_ahead(work: Work) -> int:
    cycles = 100_000
    while True:
        torch.cuda._sleep(cycles)
        pairs, ahead = [events() for _ in range(40)], 0
        for start, end in pairs:
            start.record()
            work()
            end.record()
            ahead += not start.query()
        torch.cuda.synchronize()
        if ahead == 40:
            return 2 * cycles
        cycles *= 2


@right("07.long-enough")
def sum_over_single_samples(work: Work) -> float:
    longest_s = max(host_time(work, 1) for _ in range(5))
    return 40 * 2 * longest_s * 1.98e9


@right("07.long-enough")
def calibrated_by_events(work: Work) -> Tensor:
    start, end = events()
    start.record()
    torch.cuda._sleep(10_000_000)
    end.record()
    end.synchronize()
    cycles_per_s = 1e7 / (start.elapsed_time(end) / 1e3)
    return torch.tensor(2 * host_time(work) * cycles_per_s)


@right("07.long-enough")
def clock_from_torch(work: Work) -> Any:
    return np.float64(2 * host_time(work)) * torch.cuda.clock_rate() * 1e6


@wrong("guess", "07.long-enough")
def enough_for_one_launch(work: Work) -> float:
    return 2 * host_time(torch.cuda.current_stream) * 2e9


@wrong("one-sample", "07.long-enough")
def as_long_as_one_sample(work: Work) -> float:
    return host_time(work, 1) * 2e9


@wrong("forgot-cycles", "07.long-enough")
def microseconds_and_not_cycles(work: Work) -> float:
    return 2e6 * host_time(work)


@wrong("one-sample", "07.long-enough")
def less_than_nothing(work: Work) -> float:
    return -host_time(work) * 2e9


@wrong("only-light", "07.long-enough")
def enough_for_a_light_work(work: Work) -> int:
    work()
    return 2_000_000


for code, edit in {
    "too-short": "1.5 -> 0.5",
    "too-long": "1.5 -> 50",
    "no-number": "return int( -> return str(",
    "nothing-returned": "return int( -> int(",
}.items():
    wrong(code, "07.long-enough")(changed(half_more_than_the_host, code.replace("-", "_"), edit))


# 07.graph-it


@right("07.graph-it")
def graphed_callable(function: Function, x: Tensor) -> Function:
    inner = torch.cuda.make_graphed_callables(function, (x,))
    return lambda new: inner(new).clone()


@right("07.graph-it")
def lazily_captured(function: Function, x: Tensor) -> Function:
    kept: dict[str, Any] = {}

    def replay(new: Tensor) -> Tensor:
        if not kept:
            kept["input"] = x.clone()
            function(kept["input"])
            kept["graph"] = torch.cuda.CUDAGraph()
            with torch.cuda.graph(kept["graph"]):
                kept["result"] = function(kept["input"])
        kept["input"].copy_(new)
        kept["graph"].replay()
        return kept["result"].clone()

    return replay


@right("07.graph-it")
def own_input_and_warm_up_in_a_side_stream(function: Function, x: Tensor) -> Function:
    static, side = x.detach().clone(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            function(static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        result = function(static)

    def replay(new: Tensor) -> Tensor:
        static[...] = new
        graph.replay()
        return torch.empty_like(result).copy_(result)

    return replay


class Replayed:
    """A graph that is called like a function."""

    def __init__(self, function: Function, x: Tensor) -> None:
        self.input = torch.empty_like(x)
        self.input.copy_(x)
        function(self.input)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = function(self.input)

    def __call__(self, new: Tensor) -> Tensor:
        """Return the function's result for a new tensor."""
        self.input.copy_(new, non_blocking=True)
        self.graph.replay()
        return self.result.detach().clone()


@right("07.graph-it")
def an_object(function: Function, x: Tensor) -> Function:
    return Replayed(function, x)


@right("07.graph-it")
def capture_begin_and_end(function: Function, x: Tensor) -> Function:
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        function(x)
        graph.capture_begin()
        result = function(x)
        graph.capture_end()
    torch.cuda.current_stream().wait_stream(side)

    def replay(graph: torch.cuda.CUDAGraph, new: Tensor) -> Tensor:
        x.copy_(new)
        graph.replay()
        return result + 0

    return partial(replay, graph)


@right("07.graph-it")
def result_is_not_cloned(function: Function, x: Tensor) -> Function:
    function(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function(x)

    def replay(new: Tensor) -> Tensor:
        x.copy_(new)
        graph.replay()
        return result

    return replay


wrong("input-not-copied", "07.graph-it")(
    changed(
        result_is_not_cloned,
        "input_is_never_copied",
        "x.copy_(new) -> x = new",
        "return result -> return result.clone()",
    )
)


for code, edit in {
    "not-replayed": "graph.replay() -> pass",
    "other-values": "return result -> return result + 1",
    "no-tensor": "return result -> return None",
    "nothing-returned": "return replay -> return None",
    "no-function": "return replay -> return result",
    "waits-in-capture": "result = function(x) -> result = function(x).cpu()",
}.items():
    wrong(code, "07.graph-it")(changed(result_is_not_cloned, code.replace("-", "_"), edit))
wrong("copied-too-late", "07.graph-it")(
    changed(
        result_is_not_cloned,
        "copied_after_the_replay",
        "x.copy_(new)\n        graph.replay() -> graph.replay()",
        "return result -> kept = result.clone(); x.copy_(new); return kept",
    )
)


LATEST: dict[str, Any] = {}


@wrong("shared-graph", "07.graph-it")
def latest_graph_of_the_module(function: Function, x: Tensor) -> Function:
    LATEST.update(graph=torch.cuda.CUDAGraph(), input=x)
    function(x)
    with torch.cuda.graph(LATEST["graph"]):
        LATEST["result"] = function(x)

    def replay(new: Tensor) -> Tensor:
        LATEST["input"].copy_(new)
        LATEST["graph"].replay()
        return LATEST["result"].clone()

    return replay


@wrong("shared-graph", "07.graph-it")
def one_graph_for_two_captures(function: Function, x: Tensor) -> Function:
    # Taken out again by the second call, so that a later check begins anew.
    kept = vars(one_graph_for_two_captures)
    graph = kept.pop("graph", None) or kept.setdefault("graph", torch.cuda.CUDAGraph())
    function(x)
    with torch.cuda.graph(graph):
        result = function(x)

    def replay(new: Tensor) -> Tensor:
        x.copy_(new)
        graph.replay()
        return result.clone()

    return replay


@wrong("shared-graph", "07.graph-it")
def only_the_first_function(function: Function, x: Tensor) -> Function:
    kept = vars(only_the_first_function)
    return kept.pop("replay", None) or kept.setdefault("replay", result_is_not_cloned(function, x))


@wrong("no-graph", "07.graph-it")
def no_graph(function: Function, x: Tensor) -> Function:
    return function


@wrong("captures-again", "07.graph-it")
def captured_in_every_call(function: Function, x: Tensor) -> Function:
    def replay(new: Tensor) -> Tensor:
        x.copy_(new)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = function(x)
        graph.replay()
        return result.clone()

    return replay


# 07.benchmark and 08.benchmark


def read_l2() -> Work:
    """Return a work that reads twice the L2."""
    data = torch.zeros(2 * torch.cuda.get_device_properties(0).L2_cache_size // 4, device="cuda")
    return data.amax


def warm_up(fn: Work) -> None:
    """Call a work until three calls in a row take the same time."""
    last_s: list[float] = []
    for _ in range(100):
        torch.cuda.synchronize()
        start = time.perf_counter()
        fn()
        torch.cuda.synchronize()
        last_s = [*last_s[-2:], time.perf_counter() - start]
        if last_s[2:] and max(last_s) < 1.05 * min(last_s):
            return


def timed(fn: Work, sleep_cycles: int, n_samples: int = 11) -> tuple[list[float], float]:
    """Return seconds of samples with a cold cache, each after a sleep, and the clock."""
    flush, pairs = read_l2(), [events() for _ in range(n_samples)]
    flush()
    torch.cuda.synchronize()
    for start, end in pairs:
        torch.cuda._sleep(sleep_cycles)
        flush()
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    clock_mhz = clocks.read().sm_mhz
    return [start.elapsed_time(end) / 1e3 for start, end in pairs], clock_mhz


# Both exercises have the same judge, with other works.
@right("07.benchmark", "08.benchmark")
def a_sleep_for_each_sample(fn: Work) -> tuple[float, float]:
    warm_up(fn)
    times_s, clock_mhz = timed(fn, 4_000_000)
    return median(times_s), clock_mhz


@right("07.benchmark", "08.benchmark")
def a_list_with_the_clock_of_gpulab(fn: Work) -> list[object]:
    warm_up(fn)
    times_s, clock_mhz = timed(fn, 4_000_000)
    return [np.median(times_s), clock_mhz]


@right("07.benchmark", "08.benchmark")
def one_long_sleep(fn: Work) -> tuple[float, float]:
    warm_up(fn)
    flush, pairs = read_l2(), [events() for _ in range(15)]
    flush()
    torch.cuda._sleep(100_000_000)
    for start, end in pairs:
        flush()
        start.record()
        fn()
        end.record()
    pairs[-1][1].synchronize()
    clock_mhz = torch.cuda.clock_rate()
    return sorted(start.elapsed_time(end) for start, end in pairs)[7] / 1e3, clock_mhz


@right("07.benchmark", "08.benchmark")
def a_sleep_in_parts(fn: Work) -> tuple[float, float]:
    warm_up(fn)
    flush, pairs = read_l2(), [events() for _ in range(9)]
    flush()
    for start, end in pairs:
        for _ in range(3):
            torch.cuda._sleep(2_000_000)
        flush()
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    clock_mhz = torch.cuda.clock_rate()
    return median(start.elapsed_time(end) for start, end in pairs) / 1e3, clock_mhz


@right("07.benchmark", "08.benchmark")
def a_tensor_for_each_number(fn: Work) -> tuple[Tensor, Tensor]:
    warm_up(fn)
    times_s, clock_mhz = timed(fn, 4_000_000)
    return torch.tensor(times_s).median(), torch.tensor(float(clock_mhz))


wrong("gaps", "07.benchmark", "08.benchmark")(
    changed(one_long_sleep, "lesson_06", "torch.cuda._sleep(100_000_000) -> pass")
)
wrong("hot-cache", "07.benchmark")(
    changed(one_long_sleep, "no_flush", "flush()\n    torch -> torch", "        flush() -> ")
)


# 08.double-buffer


@right("08.double-buffer")
def third_stream(slots: Any, copying: Any, fill: Fill, compute: Compute, n_steps: int) -> None:
    computing, current = torch.cuda.Stream(), torch.cuda.current_stream()
    computing.wait_stream(current)
    for step in range(n_steps):
        slot = slots[step % 2]
        slot.copied.synchronize()
        fill(slot.pinned, step)
        copying.wait_event(slot.computed)
        with torch.cuda.stream(copying):
            slot.on_device.copy_(slot.pinned, non_blocking=True)
            slot.copied.record()
        computing.wait_event(slot.copied)
        with torch.cuda.stream(computing):
            compute(slot.on_device, step)
            slot.computed.record()
    current.wait_stream(computing)


@right("08.double-buffer")
def new_events_each_step(
    slots: Any, copying: Any, fill: Fill, compute: Compute, n_steps: int
) -> None:
    copied, computed = [], []
    for step in range(n_steps):
        slot = slots[step % 2]
        if step >= 2:
            copied[step - 2].synchronize()
            copying.wait_event(computed[step - 2])
        fill(slot.pinned, step)
        with torch.cuda.stream(copying):
            slot.on_device.copy_(slot.pinned, non_blocking=True)
        copied.append(copying.record_event())
        torch.cuda.current_stream().wait_event(copied[-1])
        compute(slot.on_device, step)
        computed.append(torch.cuda.current_stream().record_event())


@right("08.double-buffer")
def host_waits_for_both(
    slots: Any, copying: Any, fill: Fill, compute: Compute, n_steps: int
) -> None:
    for step in range(n_steps):
        slot = slots[step % 2]
        slot.computed.synchronize()
        fill(slot.pinned, step)
        with torch.cuda.stream(copying):
            slot.on_device.copy_(slot.pinned, non_blocking=True)
            slot.copied.record()
        torch.cuda.current_stream().wait_event(slot.copied)
        compute(slot.on_device, step)
        slot.computed.record()


@right("08.double-buffer")
def copies_ahead(slots: Any, copying: Any, fill: Fill, compute: Compute, n_steps: int) -> None:
    def upload(step: int) -> None:
        slot = slots[step % 2]
        slot.copied.synchronize()
        fill(slot.pinned, step)
        copying.wait_event(slot.computed)
        with torch.cuda.stream(copying):
            slot.on_device.copy_(slot.pinned, non_blocking=True)
            slot.copied.record()

    upload(0)
    for step in range(n_steps):
        if step + 1 < n_steps:
            upload(step + 1)
        torch.cuda.current_stream().wait_event(slots[step % 2].copied)
        compute(slots[step % 2].on_device, step)
        slots[step % 2].computed.record()


@right("08.double-buffer")
def repair_of_the_report(
    slots: Any, copying: Any, fill: Fill, compute: Compute, n_steps: int
) -> None:
    copied: dict[int, torch.cuda.Event] = {}
    computed: dict[int, torch.cuda.Event] = {}
    for step in range(n_steps):
        slot = slots[step % 2]
        if step % 2 in copied:
            copied[step % 2].synchronize()
        fill(slot.pinned, step)
        if step % 2 in computed:
            copying.wait_event(computed[step % 2])
        with torch.cuda.stream(copying):
            slot.on_device.copy_(slot.pinned, non_blocking=True)
            slot.copied.record()
        copied[step % 2] = copying.record_event()
        torch.cuda.current_stream().wait_event(slot.copied)
        compute(slot.on_device, step)
        computed[step % 2] = torch.cuda.default_stream().record_event()


@wrong("both-races", "08.double-buffer")
def as_listed(slots: Any, copying: Any, fill: Fill, compute: Compute, n_steps: int) -> None:
    for step in range(n_steps):
        slot = slots[step % 2]
        fill(slot.pinned, step)
        with torch.cuda.stream(copying):
            slot.on_device.copy_(slot.pinned, non_blocking=True)
            slot.copied.record()
        torch.cuda.current_stream().wait_event(slot.copied)
        compute(slot.on_device, step)


@wrong("steps-missing", "08.double-buffer")
def always_forty_steps(slots: Any, copying: Any, fill: Fill, compute: Compute, _: int) -> None:
    host_waits_for_both(slots, copying, fill, compute, 40)


wrong("both-races", "08.double-buffer")(
    changed(
        as_listed,
        "sleeps",
        "compute(slot.on_device, step) -> compute(slot.on_device, step), time.sleep(0.01)",
    )
)


# 09.how-many


@right("09.how-many")
def floor_and_one(cpu_s: float, gpu_s: float, transfers_s: float) -> int | None:
    return None if gpu_s >= cpu_s else math.floor(transfers_s / (cpu_s - gpu_s)) + 1


@right("09.how-many")
def try_each(cpu_s: float, gpu_s: float, transfers_s: float) -> int | None:
    if cpu_s <= gpu_s:
        return None
    return next(n for n in count(1) if transfers_s + n * gpu_s < n * cpu_s)


@right("09.how-many")
def with_numpy(cpu_s: float, gpu_s: float, transfers_s: float) -> Any:
    if cpu_s - gpu_s <= 0:
        return None
    return np.int64(np.floor(transfers_s / (cpu_s - gpu_s))) + 1


@right("09.how-many")
def by_fractions(cpu_s: float, gpu_s: float, transfers_s: float) -> int | None:
    saved = Fraction(str(cpu_s)) - Fraction(str(gpu_s))
    return int(Fraction(str(transfers_s)) // saved) + 1 if saved > 0 else None


@right("09.how-many")
def a_whole_float(cpu_s: float, gpu_s: float, transfers_s: float) -> float | None:
    if not cpu_s > gpu_s:
        return None
    n = float(math.ceil(transfers_s / (cpu_s - gpu_s)))
    return n if n * cpu_s > transfers_s + n * gpu_s else n + 1


# 10.least-time


@right("10.least-time")
def by_max(m: int, k: int, n: int, peak: float, bandwidth: float) -> float:
    return max(2 * m * n * k / peak, 2 * (m * k + k * n + m * n) / bandwidth)


@right("10.least-time")
def by_intensity(m: int, k: int, n: int, peak: float, bandwidth: float) -> float:
    size_bytes = 2 * (m * k + k * n + m * n)
    flops = 2 * m * n * k
    return flops / min(peak, flops / size_bytes * bandwidth)


@right("10.least-time")
def as_a_tensor(m: int, k: int, n: int, peak: float, bandwidth: float) -> Tensor:
    times_s = [2 * m * n * k / peak, 2 * (m * k + k * n + m * n) / bandwidth]
    return torch.tensor(times_s, dtype=torch.float64).max()


@right("10.least-time")
def as_numpy(m: int, k: int, n: int, peak: float, bandwidth: float) -> Any:
    return np.maximum(2.0 * m * n * k / peak, 2.0 * (m * k + k * n + m * n) / bandwidth)


@right("10.least-time")
def exact_flops(m: int, k: int, n: int, peak: float, bandwidth: float) -> float:
    times_s = 2 * m * n * k / peak, (m * k + k * n + m * n) / (bandwidth / 2)
    return float(np.max(times_s))


# 10.which-bound


@right("10.which-bound")
def longest_of_three(flops: float, size_bytes: float) -> str:
    times_s = {"compute": flops / 989.4e12, "memory": size_bytes / 4.8e12, "launch": 1e-6}
    return max(times_s, key=lambda name: times_s[name])


@right("10.which-bound")
def by_the_ridge(flops: float, size_bytes: float) -> str:
    if max(flops / 989.4e12, size_bytes / 4.8e12) < 1e-6:
        return "launch"
    return "compute" if flops > 989.4 / 4.8 * size_bytes else "memory"


@right("10.which-bound")
def in_capitals(flops: float, size_bytes: float) -> str:
    return longest_of_three(flops, size_bytes).upper()


@right("10.which-bound")
def by_a_list(flops: float, size_bytes: float) -> str:
    times_s = [flops / 989.4e12, size_bytes / 4.8e12, 1e-6]
    return ["compute", "memory", "launch"][times_s.index(max(times_s))]


@wrong("unexplained", "10.which-bound")
def launch_if_few_bytes(flops: float, size_bytes: float) -> str:
    if size_bytes < 4.8e6:
        return "launch"
    return "compute" if flops > 989.4 / 4.8 * size_bytes else "memory"


@right("10.which-bound")
def by_argmax(flops: float, size_bytes: float) -> Any:
    index = int(np.argmax([flops / 989.4e12, size_bytes / 4.8e12, 1e-6]))
    return np.array(["compute", "memory", "launch"])[index]


# 12.sectors


@right("12.sectors")
def as_a_set(n: int, stride: int, size_bytes: int) -> int:
    return len({k * stride * size_bytes // 32 for k in range(n)})


@right("12.sectors")
def by_the_last_element(n: int, stride: int, size_bytes: int) -> int:
    if stride * size_bytes >= 32:
        return n
    return (n - 1) * stride * size_bytes // 32 + 1


@right("12.sectors")
def by_numpy(n: int, stride: int, size_bytes: int) -> Any:
    return np.unique(np.arange(n) * stride * size_bytes // 32).size


@right("12.sectors")
def by_a_tensor(n: int, stride: int, size_bytes: int) -> Tensor:
    sectors = torch.arange(n) * (stride * size_bytes) // 32
    return (sectors.diff() != 0).sum() + 1


@right("12.sectors")
def as_a_smaller_of_two(n: int, stride: int, size_bytes: int) -> int:
    return min(n, math.ceil(((n - 1) * stride * size_bytes + size_bytes) / 32))


@wrong("beyond-the-last", "12.sectors")
def bytes_to_the_next_element(n: int, stride: int, size_bytes: int) -> int:
    return min(n, math.ceil(n * stride * size_bytes / 32))


@pytest.mark.parametrize("answer", ANSWERS.judged(), ids=str)
def test_verdict(answer: Answer) -> None:
    """Each answer gets the verdict that it deserves."""
    assert_verdict(answer)
