"""Answers to the clinic's exercises: other right ways, and the mistakes that each must refuse.

The mistake of each patient is in test_lesson_13.py.
"""

# ruff: noqa: D103, ARG001  # each answer is named for what it does; many ignore an argument

import itertools
import time
from collections.abc import Callable, Sequence
from statistics import median

import pytest
import torch
from torch import Tensor

from tests.support.answers import Answer, Answers, assert_verdict, changed, events, waited

Work = Callable[[], object]
Double = Callable[[Tensor], Tensor]

ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
def test_verdict(answer: Answer) -> None:
    """Each answer gets the verdict that it deserves."""
    assert_verdict(answer)


# 13.unwaited, 13.backlog, 13.too-early, 13.first-call


@right("13.unwaited", "13.backlog", "13.too-early")
def events_and_device_wait(work: Work) -> float:
    start, end = events()
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3


@right("13.unwaited", "13.backlog")
def wait_for_the_stream(work: Work) -> float:
    torch.cuda.current_stream().synchronize()
    start = time.monotonic_ns()
    work()
    torch.cuda.current_stream().synchronize()
    return (time.monotonic_ns() - start) / 1e9


@right("13.unwaited", "13.backlog", "13.first-call")
def many_calls_in_a_row(work: Work) -> float:
    work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 20


@right("13.unwaited", "13.backlog")
def poll_an_event(work: Work) -> float:
    torch.zeros(1, device="cuda").item()  # a wait, too
    done = torch.cuda.Event()
    start = time.perf_counter()
    work()
    done.record()
    while not done.query():
        pass
    return time.perf_counter() - start


@right("13.unwaited", "13.backlog", "13.first-call")
def median_of_several(work: Work) -> float:
    return median(waited(work) for _ in range(9))


@right("13.unwaited")
def read_a_result(work: Work) -> float:
    start = time.perf_counter()
    work()
    torch.zeros(1, device="cuda").cpu()
    return time.perf_counter() - start


@right("13.backlog")
def poll_the_stream(work: Work) -> float:
    stream = torch.cuda.current_stream()
    while not stream.query():
        time.sleep(1e-5)
    start = time.perf_counter()
    work()
    stream.synchronize()
    return time.perf_counter() - start


right("13.too-early")(
    changed(
        events_and_device_wait,
        "events_and_stream_wait",
        "cuda.synchronize() -> cuda.current_stream().synchronize()",
    )
)
right("13.too-early")(
    changed(
        events_and_device_wait,
        "events_and_polling",
        "torch.cuda.synchronize() -> while not end.query(): time.sleep(1e-4)",
    )
)


@right("13.too-early")
def try_until_it_works(work: Work) -> float:
    start, end = events()
    start.record()
    work()
    end.record()
    while True:
        try:
            return start.elapsed_time(end) / 1e3
        except RuntimeError:
            time.sleep(1e-3)


@right("13.too-early", "13.first-call")
def median_of_pairs(work: Work) -> float:
    pairs = [events() for _ in range(7)]
    for start, end in pairs:
        start.record()
        work()
        end.record()
    pairs[-1][1].synchronize()
    return median(start.elapsed_time(end) for start, end in pairs) / 1e3


right("13.too-early")(
    changed(
        events_and_device_wait,
        "wait_for_a_later_event",
        "torch.cuda.synchronize() -> torch.cuda.current_stream().record_event().synchronize()",
    )
)


@right("13.first-call")
def shortest_of_five(work: Work) -> float:
    return min(waited(work) for _ in range(5))


@right("13.first-call")
def second_of_two(work: Work) -> float:
    return [waited(work) for _ in range(2)][-1]


right("13.first-call")(
    changed(
        events_and_device_wait,
        "warm_up_thrice",
        "start, end -> work(), work(), work(); start, end",
    )
)
wrong("unexplained", "13.unwaited")(
    changed(
        waited,
        "sleep_in_place_of_a_wait",
        "torch.cuda.synchronize() -> pass",
        "torch.cuda.synchronize() -> time.sleep(0.01)",
    )
)
wrong("pause", "13.backlog", "13.first-call")(
    changed(
        waited, "pause_before_the_clock", "torch.cuda.synchronize() -> work(), time.sleep(0.1)"
    )
)
wrong("pause", "13.too-early")(
    changed(
        events_and_device_wait,
        "pause_before_the_events_are_read",
        "torch.cuda.synchronize() -> time.sleep(0.1)",
    )
)


@wrong("first-use", "13.first-call")
def mean_with_the_first(work: Work) -> float:
    return sum(waited(work) for _ in range(10)) / 10


@wrong("too-short", "13.too-early")
def zero_if_they_are_not_completed(work: Work) -> float:
    start, end = events()
    start.record()
    work()
    end.record()
    try:
        return start.elapsed_time(end) / 1e3
    except RuntimeError:
        return 0.0


@wrong("no-events", "13.too-early")
def stopwatch(work: Work) -> float:
    return waited(work)


# 13.each-layer


@right("13.each-layer")
def events_around_the_pass(layers: Sequence[Work]) -> float:
    start, end = events()
    start.record()
    for layer in layers:
        layer()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


@right("13.each-layer")
def second_pass(layers: Sequence[Work]) -> float:
    def one_pass() -> None:
        for layer in layers:
            layer()

    one_pass()
    return waited(one_pass)


@right("13.each-layer")
def many_passes(layers: Sequence[Work]) -> float:
    start = time.perf_counter()
    for layer in list(layers) * 10:
        layer()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 10


@right("13.each-layer")
def passes_in_a_graph(layers: Sequence[Work]) -> float:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for layer in layers:
            layer()
    graph.replay()
    return waited(graph.replay)


@right("13.each-layer")
def wait_for_the_stream_once(layers: Sequence[Work]) -> float:
    stream = torch.cuda.current_stream()
    stream.synchronize()
    start = time.perf_counter()
    [layer() for layer in layers]
    stream.synchronize()
    return time.perf_counter() - start


wrong("waits-each-layer", "13.each-layer")(
    changed(
        wait_for_the_stream_once,
        "wait_for_an_event_each",
        "[layer() -> [(layer(), stream.record_event().synchronize())",
    )
)


@wrong("one-layer", "13.each-layer")
def mean_of_the_layers(layers: Sequence[Work]) -> float:
    return float(wait_for_the_stream_once(layers)) / len(layers)


wrong("launch", "13.each-layer")(
    changed(
        wait_for_the_stream_once,
        "no_wait_at_the_end",
        "layers]\n    stream.synchronize() -> layers]",
    )
)


# 13.pageable


@right("13.pageable")
def kernel_first(n_bytes: int, work: Work) -> float:
    host = torch.zeros(n_bytes, dtype=torch.uint8).pin_memory()
    target = torch.empty(n_bytes, dtype=torch.uint8, device="cuda")
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    with torch.cuda.stream(side):
        target.copy_(host, non_blocking=True)
    torch.cuda.synchronize()
    return time.perf_counter() - start


@right("13.pageable")
def kernel_in_the_side_stream(n_bytes: int, work: Work) -> float:
    host = torch.empty(n_bytes, dtype=torch.uint8, pin_memory=True)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    start = time.perf_counter()
    with torch.cuda.stream(side):
        work()
    host.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    return time.perf_counter() - start


@right("13.pageable")
def copy_in_two_parts(n_bytes: int, work: Work) -> float:
    host = torch.empty(n_bytes, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(n_bytes, dtype=torch.uint8, device="cuda")
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    start = time.perf_counter()
    with torch.cuda.stream(side):
        for into, part in zip(target.chunk(2), host.chunk(2), strict=True):
            into.copy_(part, non_blocking=True)
    work()
    side.synchronize()
    torch.cuda.current_stream().synchronize()
    return time.perf_counter() - start


@right("13.pageable")
def both_timed_by_events(n_bytes: int, work: Work) -> float:
    host = torch.empty(n_bytes, dtype=torch.uint8, pin_memory=True)
    target = torch.empty_like(host, device="cuda")
    current, side = torch.cuda.current_stream(), torch.cuda.Stream()
    start, end = events()
    start.record()
    side.wait_event(start)
    with torch.cuda.stream(side):
        target.copy_(host, non_blocking=True)
    work()
    current.wait_stream(side)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


@right("13.pageable")
def two_side_streams(n_bytes: int, work: Work) -> float:
    host = torch.empty(n_bytes // 4, dtype=torch.float32, pin_memory=True)
    target = torch.empty(n_bytes // 4, device="cuda")
    copying, computing = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    start = time.perf_counter()
    with torch.cuda.stream(copying):
        target.copy_(host, non_blocking=True)
    with torch.cuda.stream(computing):
        work()
    copying.synchronize()
    computing.synchronize()
    return time.perf_counter() - start


wrong("copy-not-timed", "13.pageable")(
    changed(both_timed_by_events, "kernel_alone_by_events", "current.wait_stream(side) -> pass")
)


@wrong("no-copy", "13.pageable")
def no_copy_at_all(n_bytes: int, work: Work) -> float:
    return waited(work)


wrong("no-overlap", "13.pageable")(
    changed(kernel_first, "pinned_in_one_stream", "stream(side) -> stream(None)")
)
wrong("no-overlap", "13.pageable")(
    changed(
        kernel_first,
        "pageable_with_a_stream",
        ".pin_memory() -> ",
        "work() -> pass",
        "True)\n -> True)\n    work()\n",
    )
)
wrong("pageable", "13.pageable")(
    changed(kernel_first, "kernel_first_then_a_pageable_copy", ".pin_memory() -> ")
)


@wrong("part-copied", "13.pageable")
def half_of_the_bytes(n_bytes: int, work: Work) -> float:
    return float(both_timed_by_events(n_bytes // 2, work))


# 13.read-too-early


@right("13.read-too-early")
def wait_for_an_event(x: Tensor) -> float:
    host = torch.zeros(x.shape, pin_memory=True)
    host.copy_(x, non_blocking=True)
    torch.cuda.current_stream().record_event().synchronize()
    return host.sum().item()


@right("13.read-too-early")
def ordinary_copy(x: Tensor) -> float:
    return x.cpu().sum().item()


@right("13.read-too-early")
def blocking_copy(x: Tensor) -> float:
    host = torch.zeros(x.shape)
    host.copy_(x)
    return float(host.sum())


@right("13.read-too-early")
def wait_for_the_current_stream(x: Tensor) -> float:
    host = x.to("cpu", non_blocking=True)
    torch.cuda.current_stream().synchronize()
    return host.sum().item()


@right("13.read-too-early")
def poll_for_the_copy(x: Tensor) -> float:
    host, done = torch.zeros(x.shape, pin_memory=True), torch.cuda.Event()
    host.copy_(x, non_blocking=True)
    done.record()
    while not done.query():
        pass
    return host.sum().item()


@right("13.read-too-early")
def sum_of_a_list(x: Tensor) -> float:
    return sum(x.tolist())


@right("13.read-too-early")
def copy_in_a_side_stream(x: Tensor) -> float:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    host = torch.zeros(x.shape, pin_memory=True)
    with torch.cuda.stream(side):
        host.copy_(x, non_blocking=True)
    side.synchronize()
    return host.sum().item()


wrong("not-arrived", "13.read-too-early")(
    changed(
        wait_for_an_event,
        "sleep_for_the_copy",
        "torch.cuda.current_stream().record_event().synchronize() -> time.sleep(0.05)",
    )
)
wrong("not-arrived", "13.read-too-early")(
    changed(
        wait_for_an_event,
        "wait_for_another_stream",
        "current_stream().record_event().synchronize() -> Stream().synchronize()",
    )
)


@wrong("not-on-host", "13.read-too-early")
def sum_on_the_gpu(x: Tensor) -> float:
    return x.sum().item()


# 13.two-streams and 13.wait-before-record

IN_TWO_STREAMS = ("13.two-streams", "13.wait-before-record")


@right(*IN_TWO_STREAMS)
def host_waits_for_the_side(x: Tensor, double: Double) -> float:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = double(x)
    side.synchronize()
    return y.sum().item()


right(*IN_TWO_STREAMS)(
    changed(
        host_waits_for_the_side,
        "device_waits",
        "side.wait_stream(torch.cuda.current_stream()) -> torch.cuda.synchronize()",
        "side.synchronize() -> torch.cuda.synchronize()",
    )
)


@right(*IN_TWO_STREAMS)
def two_events(x: Tensor, double: Double) -> float:
    side, current = torch.cuda.Stream(), torch.cuda.current_stream()
    ready, done = torch.cuda.Event(), torch.cuda.Event()
    ready.record()
    side.wait_event(ready)
    with torch.cuda.stream(side):
        y = double(x)
        done.record()
    done.wait(current)
    return y.sum().item()


@right(*IN_TWO_STREAMS)
def sum_in_the_side_stream(x: Tensor, double: Double) -> float:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        return double(x).sum().item()


@right(*IN_TWO_STREAMS)
def record_event_and_record_stream(x: Tensor, double: Double) -> float:
    side, current = torch.cuda.Stream(), torch.cuda.current_stream()
    side.wait_event(current.record_event())
    with torch.cuda.stream(side):
        y = double(x)
    current.wait_event(side.record_event())
    y.record_stream(current)
    return y.sum().item()


right(*IN_TWO_STREAMS)(
    changed(
        host_waits_for_the_side,
        "host_adds",
        "double(x) -> double(x).cpu()",
        "side.synchronize() -> pass",
    )
)
wrong("no-order", *IN_TWO_STREAMS)(
    changed(
        host_waits_for_the_side, "sleep_for_the_side", "side.synchronize() -> time.sleep(0.01)"
    )
)
wrong("input-not-ordered", *IN_TWO_STREAMS)(
    changed(
        host_waits_for_the_side,
        "side_does_not_wait",
        "side.wait_stream(torch.cuda.current_stream()) -> pass",
        "side.synchronize() -> torch.cuda.current_stream().wait_stream(side)",
    )
)


@wrong("unexplained", *IN_TWO_STREAMS)
def doubled_by_the_host(x: Tensor, double: Double) -> float:
    return (2 * x.cpu()).sum().item()


@wrong("one-stream", *IN_TWO_STREAMS)
def a_stream_that_is_not_used(x: Tensor, double: Double) -> float:
    side = torch.cuda.Stream()
    y = double(x)
    side.wait_stream(torch.cuda.current_stream())
    return y.sum().item()


# 13.freed


@right("13.freed")
def side_before_del(x: Tensor, double: Double) -> Tensor:
    side, current = torch.cuda.Stream(), torch.cuda.current_stream()
    temporary = x + 1
    side.wait_stream(current)
    with torch.cuda.stream(side):
        result = double(temporary)
    current.wait_stream(side)
    del temporary
    other = torch.full_like(x, -1.0)
    return result + 0 * other


right("13.freed")(changed(side_before_del, "no_del", "del temporary -> pass"))


@right("13.freed")
def all_in_the_side_stream(x: Tensor, double: Double) -> Tensor:
    side, current = torch.cuda.Stream(), torch.cuda.current_stream()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        result = double(x + 1)
    other = torch.zeros_like(x)
    current.wait_stream(side)
    return result + other


@wrong("other-gone", "13.freed")
def line_that_shows_it_is_deleted(x: Tensor, double: Double) -> Tensor:
    side, current = torch.cuda.Stream(), torch.cuda.current_stream()
    temporary = x + 1
    side.wait_stream(current)
    with torch.cuda.stream(side):
        result = double(temporary)
    del temporary
    current.wait_stream(side)
    return result


right("13.freed")(
    changed(
        side_before_del,
        "host_waits_before_del",
        "side.wait_stream(current) -> torch.cuda.synchronize()",
        "current.wait_stream(side) -> side.synchronize()",
    )
)


@right("13.freed")
def record_stream_at_once(x: Tensor, double: Double) -> Tensor:
    side, current = torch.cuda.Stream(), torch.cuda.current_stream()
    temporary = x + 1
    temporary.record_stream(side)
    side.wait_event(current.record_event())
    with torch.cuda.stream(side):
        result = double(temporary)
    del temporary
    other = torch.full_like(x, -1.0)
    current.wait_event(side.record_event())
    return result + 0 * other


wrong("memory-reused", "13.freed")(
    changed(
        side_before_del,
        "sleep_before_del",
        "current.wait_stream(side) -> time.sleep(0.05)",
        "return -> current.wait_stream(side)\n    return",
    )
)


@wrong("one-stream", "13.freed")
def no_side_stream(x: Tensor, double: Double) -> Tensor:
    return double(x + 1)


wrong("no-order", "13.freed")(
    changed(
        side_before_del,
        "nobody_waits_for_the_side",
        "current.wait_stream(side) -> temporary.record_stream(side)",
    )
)
wrong("input-not-ordered", "13.freed")(
    changed(
        side_before_del,
        "side_does_not_wait_for_the_temporary",
        "side.wait_stream(current) -> temporary.record_stream(side)",
    )
)


# 13.refilled


@right("13.refilled")
def device_wait_each_round(batches: Sequence[Tensor]) -> Tensor:
    staging = torch.empty(batches[0].shape, pin_memory=True)
    uploaded = []
    for batch in batches:
        staging.copy_(batch)
        uploaded.append(staging.to("cuda", non_blocking=True))
        torch.cuda.synchronize()
    return torch.stack(uploaded)


@right("13.refilled")
def a_buffer_for_each(batches: Sequence[Tensor]) -> Tensor:
    pinned = [batch.pin_memory() for batch in batches]
    return torch.stack([each.to("cuda", non_blocking=True) for each in pinned])


right("13.refilled")(
    changed(
        device_wait_each_round,
        "blocking_uploads",
        ", non_blocking=True -> ",
        "torch.cuda.synchronize() -> pass",
    )
)


@right("13.refilled")
def stacked_on_the_host(batches: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(batches)).to("cuda")


@right("13.refilled")
def two_buffers_in_turns(batches: Sequence[Tensor]) -> Tensor:
    staging = [torch.empty(batches[0].shape, pin_memory=True) for _ in range(2)]
    copied = [torch.cuda.Event() for _ in range(2)]
    uploaded = []
    for number, batch in enumerate(batches):
        copied[number % 2].synchronize()
        staging[number % 2].copy_(batch)
        uploaded.append(staging[number % 2].to("cuda", non_blocking=True))
        copied[number % 2].record()
    return torch.stack(uploaded)


@right("13.refilled")
def rows_of_one_tensor(batches: Sequence[Tensor]) -> Tensor:
    uploaded = torch.empty(len(batches), *batches[0].shape, device="cuda")
    staging = torch.empty(batches[0].shape, pin_memory=True)
    for row, batch in zip(uploaded, batches, strict=True):
        torch.cuda.current_stream().synchronize()
        staging.copy_(batch)
        row.copy_(staging, non_blocking=True)
    return uploaded


wrong("refilled", "13.refilled")(
    changed(
        device_wait_each_round, "sleep_each_round", "torch.cuda.synchronize() -> time.sleep(0.01)"
    )
)
wrong("refilled", "13.refilled")(
    changed(
        device_wait_each_round,
        "wait_for_the_event_before",
        "torch.cuda.synchronize() -> pass",
        "uploaded.app -> torch.cuda.current_stream().synchronize()\n        uploaded.app",
    )
)


@wrong("on-host", "13.refilled")
def left_on_the_host(batches: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(batches))


# 13.endless


@right("13.endless")
def break_in_the_loop(first: Work, fill: Work) -> int:
    done = torch.cuda.Event()
    first()
    done.record()
    n_fillers = 0
    while True:
        if done.query():
            return n_fillers
        fill()
        n_fillers += 1


@right("13.endless")
def another_event_for_the_fillers(first: Work, fill: Work) -> int:
    n_fillers, done, filled = 0, torch.cuda.Event(), torch.cuda.Event()
    first()
    done.record()
    while not done.query():
        fill()
        filled.record()
        n_fillers += 1
    return n_fillers


@right("13.endless")
def count_from_itertools(first: Work, fill: Work) -> int:
    first()
    done = torch.cuda.current_stream().record_event()
    n_fillers = itertools.count()
    while not done.query():
        fill()
        next(n_fillers)
    return next(n_fillers)


@right("13.endless")
def first_in_a_side_stream(first: Work, fill: Work) -> int:
    side, n_fillers = torch.cuda.Stream(), 0
    with torch.cuda.stream(side):
        first()
    while not side.query():
        fill()
        n_fillers += 1
    return n_fillers


@right("13.endless")
def wait_for_each_filler(first: Work, fill: Work) -> int:
    done, side, n_fillers = torch.cuda.Event(), torch.cuda.Stream(), 0
    first()
    done.record()
    while not done.query():
        with torch.cuda.stream(side):
            fill()
        side.synchronize()
        n_fillers += 1
    return n_fillers


wrong("too-long", "13.endless")(
    changed(
        another_event_for_the_fillers,
        "query_the_busy_stream",
        "done.query() -> torch.cuda.current_stream().query()",
    )
)
wrong("waits", "13.endless")(
    changed(
        another_event_for_the_fillers,
        "wait_at_once",
        "done.record() -> done.record(), done.synchronize()",
    )
)


@wrong("stops-early", "13.endless")
def ten_fillers(first: Work, fill: Work) -> int:
    first()
    for _ in range(10):
        fill()
    return 10


@wrong("never-fills", "13.endless")
def a_constant(first: Work, fill: Work) -> int:
    first()
    return 10
