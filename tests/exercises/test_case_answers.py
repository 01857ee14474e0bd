"""Answers to the cases: other right programs, and the mistakes that each case must refuse.

The mistake of each posted program is in test_cases.py.
"""

# ruff: noqa: D103, ANN401  # each answer is named for what it does

import random
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Any

import pytest
import torch
from torch import Tensor

import gpulab
from tests.support.answers import Answer, Answers, assert_verdict, changed, events, waited

Work = Callable[[], object]
Model = Callable[[Tensor], Tensor]

ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
def test_verdict(answer: Answer) -> None:
    """Each answer gets the verdict that it deserves."""
    assert_verdict(answer)


def in_a_row(work: Work, n_calls: int) -> float:
    """Return seconds for each of some calls, by two events."""
    start, end = events()
    start.record()
    for _ in range(n_calls):
        work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / n_calls


# case-01.mend


def matrices(n: int) -> Tensor:
    """Return two square matrices."""
    return torch.randn(2, n, n, device="cuda", dtype=torch.float16)


@right("case-01.mend")
def by_events(n: int) -> float:
    a, b = matrices(n)
    torch.mm(a, b)
    return 2 * n**3 / in_a_row(lambda: a @ b, 10) / 1e12


@right("case-01.mend")
def median_of_waited(n: int) -> float:
    a, b = matrices(n)
    samples_s = [waited(lambda: torch.mm(a, b)) for _ in range(9)]
    return 2 * n**3 / median(samples_s) / 1e12


@right("case-01.mend")
def into_one_result(n: int) -> float:
    a = torch.zeros(n, n, device="cuda", dtype=torch.half)
    result = torch.empty_like(a)
    torch.mm(a, a, out=result)
    seconds = waited(lambda: [torch.mm(a, a, out=result) for _ in range(20)]) / 20
    return n * n * (2 * n - 1) / seconds / 1e12


@right("case-01.mend")
def by_measure(n: int) -> float:
    a, b = matrices(n)
    return 2e-12 * n**3 / gpulab.measure(lambda: a @ b, cache="hot").median_s


@right("case-01.mend")
def by_a_graph(n: int) -> float:
    a, b = matrices(n)
    a @ b
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(5):
            a @ b
    graph.replay()
    return 5 * 2 * n**3 / waited(graph.replay) / 1e12


@wrong("backlog", "case-01.mend")
def no_wait_before(n: int) -> float:
    a, b = matrices(n)
    a @ b
    start = time.perf_counter()
    a @ b
    torch.cuda.synchronize()
    return 2 * n**3 / (time.perf_counter() - start) / 1e12


@wrong("first-use", "case-01.mend")
def no_warm_up(n: int) -> float:
    a, b = matrices(n)
    return 2 * n**3 / waited(lambda: a @ b) / 1e12


@wrong("unexplained", "case-01.mend")
def half_of_the_flops(n: int) -> float:
    return float(by_events(n)) / 2


@wrong("flop", "case-01.mend")
def flop_per_second(n: int) -> float:
    return float(by_events(n)) * 1e12


@wrong("milliseconds", "case-01.mend")
def divided_by_milliseconds(n: int) -> float:
    return float(by_events(n)) / 1e3


# case-02.mend


def flush() -> None:
    """Write more than the L2 cache contains."""
    torch.empty(2**27, dtype=torch.int8, device="cuda").zero_()


def cold_times(work: Work, n: int = 11) -> list[float]:
    """Return times in milliseconds, each after a flush."""
    pairs = [events() for _ in range(n)]
    for start, end in pairs:
        flush()
        start.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in pairs]


@right("case-02.mend")
def one_after_the_other(old: Work, new: Work) -> float:
    return median(cold_times(old)) / median(cold_times(new))


@right("case-02.mend")
def flush_by_reading(old: Work, new: Work) -> float:
    data = torch.zeros(2**26, device="cuda")
    times_ms: dict[Work, list[float]] = {old: [], new: []}
    for _ in range(8):
        for work, samples_ms in times_ms.items():
            data.sum()
            start, end = events()
            start.record()
            work()
            end.record()
            end.synchronize()
            samples_ms.append(start.elapsed_time(end))
    return median(times_ms[old]) / median(times_ms[new])


@right("case-02.mend")
def two_measurements(old: Work, new: Work) -> float:
    return gpulab.measure(old).median_s / gpulab.measure(new).median_s


@right("case-02.mend")
def ratio_of_means(old: Work, new: Work) -> float:
    old(), new()
    return fmean(cold_times(old)) / fmean(cold_times(new))


@right("case-02.mend")
def other_order(old: Work, new: Work) -> float:
    new_ms = cold_times(new, 15)
    return sum(cold_times(old, 15)) / sum(new_ms)


@wrong("both-warm", "case-02.mend")
def no_flush(old: Work, new: Work) -> float:
    old(), new()
    return in_a_row(old, 20) / in_a_row(new, 20)


@wrong("warm-old", "case-02.mend")
def flush_for_the_new_alone(old: Work, new: Work) -> float:
    return 1e3 * in_a_row(old, 51) / median(cold_times(new))


@wrong("both-warm", "case-02.mend")
def one_flush_for_all_calls(old: Work, new: Work) -> float:
    times_s = []
    for work in (old, new):
        flush()
        times_s.append(in_a_row(work, 30))
    return times_s[0] / times_s[1]


@wrong("upside-down", "case-02.mend")
def the_other_way_round(old: Work, new: Work) -> float:
    return float(one_after_the_other(new, old))


wrong("flush-timed", "case-02.mend")(
    changed(
        cold_times,
        "flush_in_the_sample",
        "work: Work, n: int = 11 -> old: Work, new: Work, n: int = 11",
        "list[float] -> float",
        "range(n)] -> range(2 * n)]",
        "for start, end in pairs: -> for i, (start, end) in enumerate(pairs):",
        "flush()\n        start.record() -> start.record(); flush()",
        "work() -> (old, new)[i % 2]()",
        "return [ -> ms = [",
        "in pairs] -> in pairs]\n    return median(ms[::2]) / median(ms[1::2])",
    )
)


# case-03.mend


@right("case-03.mend")
def last_of_many(work: Work) -> float:
    marks = events(401)
    for mark in marks:
        mark.record()
        work()
    torch.cuda.synchronize()
    return median(one.elapsed_time(two) for one, two in list(pairwise(marks))[-150:]) / 1e3


@right("case-03.mend")
def warm_up_for_seconds(work: Work) -> float:
    start = time.perf_counter()
    while time.perf_counter() - start < 0.5:
        work()
        torch.cuda.synchronize()
    return in_a_row(work, 20)


@right("case-03.mend")
def until_batches_agree(work: Work) -> float:
    last_s = [in_a_row(work, 100)]
    while len(last_s) < 4 or max(last_s[-4:]) > 1.005 * min(last_s[-4:]):
        last_s.append(in_a_row(work, 100))
    return last_s[-1]


@right("case-03.mend")
def waited_at_the_end(work: Work) -> float:
    for _ in range(300):
        work()
    return waited(lambda: [work() for _ in range(50)]) / 50


@right("case-03.mend")
def mean_after_a_mean(work: Work) -> float:
    in_a_row(work, 200)
    return in_a_row(work, 150)


@wrong("burst", "case-03.mend")
def ten_calls(work: Work) -> float:
    work()
    return in_a_row(work, 10)


@wrong("not-divided", "case-03.mend")
def all_calls(work: Work) -> float:
    return 20 * float(mean_after_a_mean(work))


@wrong("burst", "case-03.mend")
def calls_with_pauses(work: Work) -> float:
    samples_s = []
    for _ in range(5):
        time.sleep(0.5)
        samples_s.append(in_a_row(work, 1))
    return median(samples_s)


# case-04.mend

Step = Callable[[Tensor], Tensor]


@right("case-04.mend")
def events_both_ways(batches: Sequence[Tensor], step: Step) -> tuple[float, Tensor]:
    buffers = [torch.empty_like(batches[0], device="cuda") for _ in range(2)]
    copied, free = ([torch.cuda.Event() for _ in range(2)] for _ in range(2))
    copying, current = torch.cuda.Stream(), torch.cuda.current_stream()
    results = []
    torch.cuda.synchronize()
    start = time.perf_counter()
    for number, batch in enumerate(batches):
        slot = number % 2
        with torch.cuda.stream(copying):
            copying.wait_event(free[slot])
            buffers[slot].copy_(batch, non_blocking=True)
            copied[slot].record()
        current.wait_event(copied[slot])
        results.append(step(buffers[slot]))
        free[slot].record()
    torch.cuda.synchronize()
    return time.perf_counter() - start, torch.stack(results)


@right("case-04.mend")
def a_buffer_for_each_batch(batches: Sequence[Tensor], step: Step) -> tuple[float, Tensor]:
    buffers = [torch.empty_like(batch, device="cuda") for batch in batches]
    copying, results = torch.cuda.Stream(), []
    torch.cuda.synchronize()
    start = time.perf_counter()
    for buffer, batch in zip(buffers, batches, strict=True):
        with torch.cuda.stream(copying):
            buffer.copy_(batch, non_blocking=True)
        torch.cuda.current_stream().wait_stream(copying)
        results.append(step(buffer))
    torch.cuda.synchronize()
    return time.perf_counter() - start, torch.stack(results)


@right("case-04.mend")
def fresh_copies(batches: Sequence[Tensor], step: Step) -> tuple[float, Tensor]:
    copying, current, results = torch.cuda.Stream(), torch.cuda.current_stream(), []
    torch.cuda.synchronize()
    start = time.perf_counter()
    for batch in batches:
        with torch.cuda.stream(copying):
            on_gpu = batch.to("cuda", non_blocking=True)
        current.wait_stream(copying)
        on_gpu.record_stream(current)
        results.append(step(on_gpu))
    torch.cuda.synchronize()
    return time.perf_counter() - start, torch.stack(results)


@right("case-04.mend")
def three_buffers(batches: Sequence[Tensor], step: Step) -> list[object]:
    buffers = [torch.empty_like(batches[0], device="cuda") for _ in range(3)]
    done: list[torch.cuda.Event | None] = [None] * 3
    copying, results = torch.cuda.Stream(), []
    start, end = events()
    torch.cuda.synchronize()
    start.record()
    copying.wait_event(start)
    for number, batch in enumerate(batches):
        slot = number % 3
        if (event := done[slot]) is not None:
            copying.wait_event(event)
        with torch.cuda.stream(copying):
            buffers[slot].copy_(batch, non_blocking=True)
        torch.cuda.current_stream().wait_event(copying.record_event())
        results.append(step(buffers[slot]))
        done[slot] = torch.cuda.current_stream().record_event()
    end.record()
    end.synchronize()
    return [start.elapsed_time(end) / 1e3, torch.stack(results)]


right("case-04.mend")(
    changed(three_buffers, "host_waits_for_each_copy", "non_blocking=True -> non_blocking=False")
)


@right("case-04.mend")
def steps_in_the_side_stream(batches: Sequence[Tensor], step: Step) -> tuple[float, Tensor]:
    buffers = [torch.empty_like(batches[0], device="cuda") for _ in range(2)]
    done: list[torch.cuda.Event] = []
    computing, results = torch.cuda.Stream(), []
    torch.cuda.synchronize()
    start = time.perf_counter()
    for number, batch in enumerate(batches):
        if number >= 2:
            torch.cuda.current_stream().wait_event(done[number - 2])
        buffers[number % 2].copy_(batch, non_blocking=True)
        computing.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(computing):
            results.append(step(buffers[number % 2]))
            done.append(computing.record_event())
    torch.cuda.synchronize()
    return time.perf_counter() - start, torch.stack(results)


@wrong("no-overlap", "case-04.mend")
def wait_in_each_step(batches: Sequence[Tensor], step: Step) -> tuple[float, Tensor]:
    results = []
    torch.cuda.synchronize()
    start = time.perf_counter()
    for batch in batches:
        results.append(step(batch.to("cuda", non_blocking=True)))
        torch.cuda.synchronize()
    return time.perf_counter() - start, torch.stack(results)


@wrong("overwritten", "case-04.mend")
def only_the_step_waits(batches: Sequence[Tensor], step: Step) -> tuple[float, Tensor]:
    buffers = [torch.empty_like(batches[0], device="cuda") for _ in range(2)]
    copying, results = torch.cuda.Stream(), []
    torch.cuda.synchronize()
    start = time.perf_counter()
    for number, batch in enumerate(batches):
        with torch.cuda.stream(copying):
            buffers[number % 2].copy_(batch, non_blocking=True)
        torch.cuda.current_stream().wait_stream(copying)
        results.append(step(buffers[number % 2]))
    torch.cuda.synchronize()
    return time.perf_counter() - start, torch.stack(results)


wrong("stops-early", "case-04.mend")(
    changed(
        fresh_copies,
        "no_wait_at_the_end",
        "(step(on_gpu))\n    torch.cuda.synchronize() -> (step(on_gpu))",
    )
)
wrong("not-arrived", "case-04.mend")(
    changed(
        only_the_step_waits,
        "only_the_copy_waits",
        "with -> copying.wait_stream(torch.cuda.current_stream())\n        with",
        "torch.cuda.current_stream().wait_stream(copying) -> pass",
    )
)
wrong("both-races", "case-04.mend")(
    changed(
        only_the_step_waits,
        "sleeps_in_place_of_waits",
        "torch.cuda.current_stream().wait_stream(copying) -> time.sleep(0.01)",
        "2]))\n -> 2])), time.sleep(0.01)\n",
    )
)


# case-05.mend


@right("case-05.mend")
def in_its_stream(op: Any) -> float:
    with torch.cuda.stream(op.stream):
        start, end = events()
        start.record()
        op.launch()
        end.record()
    op.stream.synchronize()
    return start.elapsed_time(end) / 1e3


@right("case-05.mend")
def joined_streams(op: Any) -> float:
    current = torch.cuda.current_stream()
    current.wait_stream(op.stream)
    start, end = events()
    start.record()
    op.stream.wait_stream(current)
    op.launch()
    current.wait_stream(op.stream)
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3


@right("case-05.mend")
def returned_events(op: Any) -> float:
    start = op.stream.record_event(torch.cuda.Event(enable_timing=True))
    op.launch()
    end = op.stream.record_event(torch.cuda.Event(enable_timing=True))
    while not end.query():
        pass
    return start.elapsed_time(end) / 1e3


@right("case-05.mend")
def many_launches(op: Any) -> float:
    op.launch()
    start, end = events()
    start.record(op.stream)
    for _ in range(10):
        op.launch()
    end.record(op.stream)
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e4


@right("case-05.mend")
def median_after_a_wait(op: Any) -> float:
    op.stream.synchronize()
    samples_ms = []
    for _ in range(5):
        start, end = events()
        start.record(op.stream)
        op.launch()
        end.record(op.stream)
        end.synchronize()
        samples_ms.append(start.elapsed_time(end))
    return median(samples_ms) / 1e3


@right("case-05.mend")
def stopwatch_with_two_waits(op: Any) -> float:
    return waited(op.launch)


wrong("backlog", "case-05.mend")(
    changed(
        waited,
        "stopwatch_without_a_wait_before",
        "work: Work -> op: Any",
        "torch.cuda.synchronize() -> pass",
        "work() -> op.launch()",
    )
)
wrong("backlog", "case-05.mend")(
    changed(
        joined_streams,
        "pause_in_place_of_the_first_wait",
        "current.wait_stream(op.stream) -> time.sleep(0.1)",
    )
)
wrong("unexplained", "case-05.mend")(
    changed(joined_streams, "pause_in_the_time", "op.launch() -> time.sleep(0.01); op.launch()")
)
wrong("pause", "case-05.mend")(
    changed(
        in_its_stream,
        "pause_before_the_events_are_read",
        "op.stream.synchronize() -> time.sleep(0.1)",
    )
)


# case-06.mend


def step_times(step: Work, n: int = 120) -> list[float]:
    """Return the seconds of some steps."""
    pairs = [events() for _ in range(n)]
    for start, end in pairs:
        start.record()
        step()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1e3 for start, end in pairs]


def two_groups(samples_s: list[float], limit_s: float) -> tuple[float, float, float]:
    """Return the medians of both sides of a limit, and the share of the upper side."""
    fast = [sample_s for sample_s in samples_s if sample_s < limit_s]
    slow = [sample_s for sample_s in samples_s if sample_s >= limit_s]
    return median(fast), median(slow), len(slow) / len(samples_s)


@right("case-06.mend")
def nearest_centre(step: Work) -> tuple[float, float, float]:
    samples_s = sorted(step_times(step))[:-1]
    fast_s, slow_s = samples_s[0], samples_s[-1]
    for _ in range(20):
        fast_s, slow_s, share = two_groups(samples_s, (fast_s + slow_s) / 2)
    return fast_s, slow_s, share


@right("case-06.mend")
def twice_the_median(step: Work) -> tuple[float, float, float]:
    samples_s = sorted(step_times(step, 240))[:-1]
    return two_groups(samples_s, 1.5 * samples_s[0])


@right("case-06.mend")
def waited_steps(step: Work) -> list[float]:
    samples_s = sorted(waited(step) for _ in range(160))[:-1]
    return list(two_groups(samples_s, 1.5 * samples_s[len(samples_s) // 4]))


@right("case-06.mend")
def by_the_widest_gap(step: Work) -> tuple[float, float, float]:
    samples = torch.tensor(step_times(step)).sort().values[:-1]
    cut = int((samples[1:] / samples[:-1]).argmax()) + 1
    fast, slow = samples[:cut], samples[cut:]
    return fast.median().item(), slow.median().item(), len(slow) / len(samples)


@right("case-06.mend")
def by_a_histogram(step: Work) -> Tensor:
    step()
    samples_s = [s for s in step_times(step, 200) if s > 0]
    ordered = sorted(samples_s)[:-1]
    fast_s, slow_s, share = two_groups(ordered, (ordered[0] * ordered[-1]) ** 0.5)
    return torch.tensor([fast_s, slow_s, share], dtype=torch.float64)


@wrong("swapped", "case-06.mend")
def slow_before_fast(step: Work) -> tuple[float, float, float]:
    fast_s, slow_s, share = nearest_centre(step)
    return slow_s, fast_s, share


@wrong("outlier-as-mode", "case-06.mend")
def shortest_and_longest(step: Work) -> tuple[float, float, float]:
    samples_s = step_times(step)
    return min(samples_s), max(samples_s), 1 / len(samples_s)


def with_change(name: str, change: Callable[[float, float, float], object]) -> Work:
    """Return a right answer with one change."""

    def answer(step: Work) -> object:
        return change(*nearest_centre(step))

    answer.__name__ = name
    return answer  # type: ignore[return-value]  # a function of a step


for code, change in {
    "one-number": lambda fast_s, _slow_s, _share: fast_s,
    "percent": lambda fast_s, slow_s, share: (fast_s, slow_s, 100 * share),
    "share-of-fast": lambda fast_s, slow_s, share: (fast_s, slow_s, 1 - share),
    "milliseconds": lambda fast_s, slow_s, share: (1e3 * fast_s, 1e3 * slow_s, share),
}.items():
    wrong(code, "case-06.mend")(with_change(code, change))


@wrong("median-as-fast", "case-06.mend")
def median_of_all_as_fast(step: Work) -> tuple[float, float, float]:
    samples_s = sorted(step_times(step))
    _, slow_s, share = nearest_centre(step)
    return median(samples_s), slow_s, share


# case-07.mend


@right("case-07.mend")
def there_and_back(a: Work, b: Work) -> float:
    a(), b()
    times_ms: dict[Work, float] = {a: 0.0, b: 0.0}
    for number in range(40):
        for work in (a, b) if number % 2 else (b, a):
            times_ms[work] += in_a_row(work, 1)
    return times_ms[b] / times_ms[a]


@right("case-07.mend")
def by_compare(a: Work, b: Work) -> float:
    return gpulab.compare(a, b).ratio


@right("case-07.mend")
def settled_first(a: Work, b: Work) -> float:
    for _ in range(150):
        a(), b()
    first_s = in_a_row(a, 40)
    return in_a_row(b, 40) / first_s


@right("case-07.mend")
def random_order(a: Work, b: Work) -> float:
    a(), b()
    order = [a, b] * 60
    random.Random(1).shuffle(order)
    samples_ms: dict[Work, list[float]] = {a: [], b: []}
    for _ in range(150):
        a(), b()
    for work in order:
        samples_ms[work].append(in_a_row(work, 1))
    return median(samples_ms[b]) / median(samples_ms[a])


@right("case-07.mend")
def median_of_ratios(a: Work, b: Work) -> float:
    a(), b()
    ratios = []
    for _ in range(30):
        first_s = in_a_row(a, 2)
        ratios.append(in_a_row(b, 2) / first_s)
    return median(ratios)


@wrong("difference", "case-07.mend")
def ratio_less_one(a: Work, b: Work) -> float:
    return float(settled_first(a, b)) - 1


@wrong("b-first", "case-07.mend")
def b_then_a(a: Work, b: Work) -> float:
    a(), b()
    second_s = in_a_row(b, 40)
    return second_s / in_a_row(a, 40)


@wrong("upside-down", "case-07.mend")
def a_over_b(a: Work, b: Work) -> float:
    return float(there_and_back(b, a))


@wrong("no-warm-up", "case-07.mend")
def no_call_before(a: Work, b: Work) -> float:
    first_s = in_a_row(a, 5)
    return in_a_row(b, 5) / first_s


# case-08.mend


@right("case-08.mend")
def waits_and_copies(step: Model, data: Tensor, n_steps: int) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    x = data.cuda()
    for _ in range(n_steps):
        x = step(x)
    x.to("cpu")
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / n_steps


@right("case-08.mend")
def events_around_the_run(step: Model, data: Tensor, n_steps: int) -> float:
    start, end = events()
    start.record()
    x = data.to("cuda", non_blocking=True)
    for _ in range(n_steps):
        x = step(x)
    x.cpu()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / n_steps


@right("case-08.mend")
def into_a_tensor_on_the_host(step: Model, data: Tensor, n_steps: int) -> float:
    result = torch.empty_like(data)
    step(data.to("cuda"))  # warm-up
    torch.cuda.synchronize()
    start = time.perf_counter()
    x = torch.empty_like(data, device="cuda")
    x.copy_(data)
    for _ in range(n_steps):
        x = step(x)
    result.copy_(x)
    return (time.perf_counter() - start) / n_steps


@right("case-08.mend")
def with_functools(step: Model, data: Tensor, n_steps: int) -> float:
    from functools import reduce

    start = time.monotonic()
    reduce(lambda x, _: step(x), range(n_steps), data.to("cuda")).cpu()
    return (time.monotonic() - start) / n_steps


@right("case-08.mend")
def numpy_at_the_end(step: Model, data: Tensor, n_steps: int) -> float:
    start = time.perf_counter_ns()
    x = data.to("cuda")
    for _ in range(n_steps):
        x = step(x)
    x.numpy(force=True)
    return (time.perf_counter_ns() - start) / n_steps / 1e9


@wrong("no-result", "case-08.mend")
def no_copies_in_the_time(step: Model, data: Tensor, n_steps: int) -> float:
    x = data.to("cuda")
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(n_steps):
        x = step(x)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / n_steps


wrong("steps-missing", "case-08.mend")(
    changed(waits_and_copies, "one_step_less", "range(n_steps) -> range(n_steps - 1)")
)
wrong("no-result", "case-08.mend")(
    changed(waits_and_copies, "no_copy_back", 'x.to("cpu") -> pass')
)


wrong("copies-out-in-each-step", "case-08.mend")(
    changed(numpy_at_the_end, "copied_back_in_each_step", "x = step(x) -> x = step(x); x.cpu()")
)
wrong("not-divided", "case-08.mend")(
    changed(waits_and_copies, "time_of_all_steps", " / n_steps -> ")
)
wrong("copies-left-out", "case-08.mend")(
    changed(
        waits_and_copies,
        "copies_out_of_the_time",
        "data.cuda() -> data.cuda(); torch.cuda.synchronize(); start = time.perf_counter()",
        'x.to("cpu") -> torch.cuda.synchronize(); end = time.perf_counter(); x.to("cpu")',
        "(time.perf_counter() - start) -> (end - start)",
    )
)
wrong("no-copy-out", "case-08.mend")(
    changed(
        into_a_tensor_on_the_host,
        "copy_back_after_the_time",
        "result.copy_(x) -> torch.cuda.synchronize(); end = time.perf_counter(); result.copy_(x)",
        "(time.perf_counter() - start) -> (end - start)",
    )
)


# case-09.mend


@right("case-09.mend")
def captured_after_a_warm_up(
    model: Model, requests: Sequence[Tensor]
) -> tuple[float, list[Tensor]]:
    static = torch.empty_like(requests[0])
    static.copy_(requests[0])
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model(static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(static)
    torch.cuda.synchronize()
    outputs = []
    start = time.perf_counter()
    for request in requests:
        static[:] = request
        graph.replay()
        outputs.append(y + 0)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / len(requests), outputs


@right("case-09.mend")
def answers_in_the_host(model: Model, requests: Sequence[Tensor]) -> tuple[float, list[Tensor]]:
    static = requests[0].clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(static)
    torch.cuda.synchronize()
    outputs = []
    start = time.perf_counter()
    for request in requests:
        static.copy_(request)
        graph.replay()
        outputs.append(y.cpu())
    return (time.perf_counter() - start) / len(requests), outputs


@right("case-09.mend")
def answers_in_one_tensor(model: Model, requests: Sequence[Tensor]) -> tuple[float, Tensor]:
    static = requests[0].clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(static)
    answers = torch.empty(len(requests), *y.shape, device="cuda")
    start, end = events()
    start.record()
    for number, request in enumerate(requests):
        static.copy_(request)
        graph.replay()
        answers[number].copy_(y)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / len(requests), answers


@right("case-09.mend")
def a_graph_for_each_request(
    model: Model, requests: Sequence[Tensor]
) -> tuple[float, list[Tensor]]:
    graphs, outputs = [], []
    for request in requests:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs.append(model(request))
        graphs.append(graph)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for graph in graphs:
        graph.replay()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / len(requests), outputs


@right("case-09.mend")
def graphed_callable(model: Model, requests: Sequence[Tensor]) -> tuple[float, list[Tensor]]:
    replay = torch.cuda.make_graphed_callables(model, (requests[0].clone(),))
    torch.cuda.synchronize()
    start = time.perf_counter()
    outputs = [replay(request).clone() for request in requests]
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / len(requests), outputs


wrong("aliased-output", "case-09.mend")(
    changed(answers_in_the_host, "the_last_output", "y.cpu() -> y")
)


@wrong("no-graph", "case-09.mend")
def no_graph(model: Model, requests: Sequence[Tensor]) -> tuple[float, list[Tensor]]:
    torch.cuda.synchronize()
    start = time.perf_counter()
    outputs = [model(request) for request in requests]
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / len(requests), outputs


wrong("one-behind", "case-09.mend")(
    changed(
        answers_in_the_host,
        "copied_after_the_replay",
        "static.copy_(request)\n        graph.replay() -> graph.replay()",
        "outputs.append(y.cpu()) -> outputs.append(y.cpu()); static.copy_(request)",
    )
)


@wrong("not-divided", "case-09.mend")
def time_of_all_requests(model: Model, requests: Sequence[Tensor]) -> tuple[float, list[Tensor]]:
    seconds, outputs = answers_in_the_host(model, requests)
    return seconds * len(requests), outputs


# case-10.mend


@right("case-10.mend")
def events_around_many(work: Work) -> float:
    work()
    return in_a_row(work, 100)


@right("case-10.mend")
def events_after_a_sleep(work: Work) -> float:
    work()
    torch.cuda._sleep(20_000_000)
    samples_ms = []
    for _ in range(20):
        start, end = events()
        start.record()
        work()
        end.record()
        samples_ms.append((start, end))
    torch.cuda.synchronize()
    return median(start.elapsed_time(end) for start, end in samples_ms) / 1e3


@right("case-10.mend")
def measured(work: Work) -> float:
    return gpulab.measure(work, cache="hot").median_s


@right("case-10.mend")
def waited_batches(work: Work) -> float:
    return min(waited(lambda: [work() for _ in range(200)]) for _ in range(5)) / 200


@right("case-10.mend")
def difference_of_two_batches(work: Work) -> float:
    work()

    def calls(n_calls: int) -> float:
        return waited(lambda: [work() for _ in range(n_calls)])

    return (calls(600) - calls(100)) / 500


@wrong("launch", "case-10.mend")
def median_of_launches(work: Work) -> float:
    samples_s = []
    for _ in range(200):
        start = time.perf_counter()
        work()
        samples_s.append(time.perf_counter() - start)
    return median(samples_s)


@wrong("launch", "case-10.mend")
def no_wait_after_the_loop(work: Work) -> float:
    start = time.perf_counter()
    for _ in range(500):
        work()
    return (time.perf_counter() - start) / 500


wrong("mean-of-both", "case-10.mend")(
    changed(median_of_launches, "mean_of_launches", "200 -> 1500", "median( -> fmean(")
)


@wrong("wait-each-call", "case-10.mend")
def wait_after_each_call(work: Work) -> float:
    return median(waited(work) for _ in range(20))


@wrong("not-divided", "case-10.mend")
def time_of_a_hundred(work: Work) -> float:
    return 100 * float(events_around_many(work))


# Right values in another unit.
for exercise_id, right_answer in (
    ("case-03.mend", mean_after_a_mean),
    ("case-05.mend", in_its_stream),
    ("case-10.mend", events_around_many),
):

    def in_milliseconds(*given: Any, seconds: Work = right_answer) -> float:
        return 1e3 * float(seconds(*given))

    wrong("milliseconds", exercise_id)(in_milliseconds)

for exercise_id, right_pair in (
    ("case-04.mend", three_buffers),
    ("case-09.mend", answers_in_the_host),
):

    def pair_in_milliseconds(*given: Any, pair: Callable[..., Any] = right_pair) -> Any:
        seconds, results = pair(*given)
        return 1e3 * seconds, results

    wrong("milliseconds", exercise_id)(pair_in_milliseconds)
