"""For each exercise whether an answer is right, found without the exercise's judge."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import product
from statistics import median
from typing import Any
from unittest.mock import patch

import torch

import gpulab
from gpulab.happens_before.activity import ActivityRecord
from gpulab.tracing.profiling import capture
from gpulab.tracing.trials import pair_in

Function = Callable[..., Any]

_CYCLES_PER_S = 1.98e9
_WAKE_UP_S = 35e-6
_EVENTS_S = 5e-6  # a pair of events may read so much more than the kernel between them
_N_NUMBERS = 700


# No question says to the percent how near a number must be: it asks for "the time of one call" or
# "the speed-up". Two right ways differ by a launch, a wake-up or the floor of events, so a judge
# must allow some share, and its exact size is free. Up to four fifths of the share of a reference
# a number is right, and beyond five fourths of it wrong; between them either verdict is right.
# Limits that a question states, such as half of the overlap, have no grey zone.
_GREY = 1.25
GREY_NUMBERS: list[float] = []  # the numbers in a grey zone since the list was cleared


def is_number_near(value: object, truth: float, more: float = 0.0, share: float = 0.05) -> bool:
    """Return whether a number is near the truth; it may be larger by an amount.

    A number in the grey zone counts as near, and is noted.
    """
    number = float(value)  # type: ignore[arg-type]  # an answer of another type raises an error
    allowed = share * abs(truth) + (more if number > truth else 0.0)
    off = abs(number - truth) / allowed
    if 1 / _GREY < off <= _GREY:
        GREY_NUMBERS.append(number)
    return off <= _GREY  # false for nan


def kernel(duration_s: float) -> Callable[[], None]:
    """Return a kernel of known length."""
    return partial(torch.cuda._sleep, round(duration_s * _CYCLES_PER_S))


@contextmanager
def no_pauses() -> Iterator[None]:
    """Let ``time.sleep`` return at once, so that a pause orders nothing."""
    sleep = time.sleep
    with patch.object(time, "sleep", lambda seconds: sleep(min(seconds, 0.0))):
        yield


def with_and_without_pauses(reference: Callable[[Function], bool]) -> Callable[[Function], bool]:
    """Return a reference that also tries a function without its pauses.

    A result that is right only after a pause is right by luck: a pause orders nothing.
    """
    virtual_gpu = gpulab.virtual_gpu

    # Inside, because a virtual GPU has a pause of its own.
    @contextmanager
    def in_haste(*args: Any, **kwargs: Any) -> Iterator[object]:  # noqa: ANN401  # passed on
        with virtual_gpu(*args, **kwargs) as in_use, no_pauses():
            yield in_use

    def both(function: Function) -> bool:
        with patch.object(gpulab, "virtual_gpu", in_haste):
            is_right = reference(function)
        return is_right and reference(function)

    return both


@contextmanager
def noting_times(event: Any, asked: list[object]) -> Iterator[None]:  # noqa: ANN401  # a class
    """Note each call of a class's ``elapsed_time`` in a list."""
    original = event.elapsed_time

    def elapsed_time(*events: object) -> float:
        asked.append(events)
        return float(original(*events))

    with patch.object(event, "elapsed_time", elapsed_time):
        yield


def times_a_kernel(function: Function, *, backlog_s: float = 0.0, by_events: bool = False) -> bool:
    """Return whether a function times kernels, also behind other work, and without its pauses."""
    asked: list[object] = []
    for duration_s in (0.9e-3, 2.5e-3, 7e-3):
        with (
            gpulab.virtual_gpu("H200", first_use=False),
            no_pauses(),
            noting_times(torch.cuda.Event, asked),
            noting_times(torch.Event, asked),
        ):
            if backlog_s:
                kernel(backlog_s)()
            value = float(function(kernel(duration_s)))  # it may be on the GPU
        if not is_number_near(value, duration_s, more=_WAKE_UP_S):
            return False
    return bool(asked) or not by_events


def times_a_usual_call(function: Function) -> bool:
    """Return whether a function times a matmul whose library is loaded."""
    for n in (1024, 2304):
        with gpulab.virtual_gpu("H200", first_use=True), no_pauses():
            a = torch.randn(n, n, device="cuda")
            # The first call is long, so a clock that starts before its end reads more.
            after = iter([kernel(20e-3)])
            value = function(lambda a=a, after=after: (a @ a, next(after, int)())[0])
            torch.cuda.synchronize()
            record = capture(lambda a=a: a @ a).records[-1]
        if not is_number_near(value, record.duration_ns / 1e9, more=_WAKE_UP_S):
            return False
    return True


def times_a_pass(function: Function) -> bool:
    """Return whether a function times layers without pauses between them."""
    for n_layers, duration_s in ((25, 40e-6), (60, 25e-6)):
        with gpulab.virtual_gpu("H200", first_use=False):
            value = function([kernel(duration_s) for _ in range(n_layers)])
        if not is_number_near(value, n_layers * (duration_s + 1e-6), more=_WAKE_UP_S, share=0.05):
            return False
    return True


def copied_bytes(records: Sequence[ActivityRecord], direction: str) -> int:
    """Return how many bytes were copied."""
    return sum(record.size_bytes or 0 for record in records if record.name == direction)


def _append(values: list[Any], function: Function, *arguments: object) -> None:
    values.append(function(*arguments))


def copies_beside(function: Function) -> bool:
    """Return whether a function copies all bytes from pinned memory beside a kernel."""
    works = ((1 << 24, 0.4e-3), (5 << 22, 0.15e-3))
    # Without its pauses, too: events that are complete after a pause are so by luck.
    for (n_bytes, kernel_s), pauses in product(works, (no_pauses, nullcontext)):
        values: list[Any] = []
        with gpulab.virtual_gpu("H200", first_use=False), pauses():
            work = kernel(kernel_s)
            function(n_bytes, work)  # pinned memory is expensive once
            torch.cuda.synchronize()
            trace = capture(partial(_append, values, function, n_bytes, work))
        copy_s = n_bytes / (64e9 * 0.88)
        if copied_bytes(trace.records, "copy in") < n_bytes:
            return False
        if not is_number_near(values[-1], max(copy_s, kernel_s), more=20e-6, share=0.15):
            return False
    return True


class Doubling:
    """A work in place of ``double``, which triples, and notes in which streams it ran."""

    def __init__(self) -> None:
        self.streams: list[Any] = []

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Triple the numbers after a kernel."""
        self.streams.append(torch.cuda.current_stream())
        kernel(1e-3)()
        return x * 3

    @property
    def is_beside(self) -> bool:
        """Whether it ran, and only in streams of its own."""
        return bool(self.streams) and torch.cuda.default_stream() not in self.streams


def sums_a_double(function: Function) -> bool:
    """Return whether a function sums what another stream doubles, in a fixed order."""
    double = Doubling()
    with gpulab.virtual_gpu("H200", first_use=False):
        with gpulab.hazards() as races:
            value = float(function(torch.arange(float(_N_NUMBERS), device="cuda"), double))
        return value == 1.5 * _N_NUMBERS * (_N_NUMBERS - 1) and not len(races) and double.is_beside


def doubles_safely(function: Function) -> bool:
    """Return whether a function returns the doubled numbers, in a fixed order."""
    double = Doubling()
    with gpulab.virtual_gpu("H200", first_use=False):
        with gpulab.hazards() as races:
            value = function(torch.arange(float(_N_NUMBERS), device="cuda"), double).tolist()
        wanted = [3.0 * (number + 1) for number in range(_N_NUMBERS)]
        return value == wanted and not len(races) and double.is_beside


def sums_on_the_host(function: Function) -> bool:
    """Return whether a function copies numbers to the host and sums them, in a fixed order."""
    values: list[float] = []
    with gpulab.virtual_gpu("H200", first_use=False), gpulab.hazards() as races:
        x = torch.arange(float(_N_NUMBERS), device="cuda")
        kernel(2e-3)()
        x.add_(1)
        trace = capture(partial(_append, values, function, x))
    right = float(values[0]) == _N_NUMBERS * (_N_NUMBERS + 1) / 2
    return right and not len(races) and copied_bytes(trace.records, "copy out") >= 4 * _N_NUMBERS


def uploads(function: Function) -> bool:
    """Return whether a function uploads all batches, in a fixed order."""
    batches = [torch.full((900,), 3.0 * k) for k in range(7)]
    with gpulab.virtual_gpu("H200", first_use=False):
        with gpulab.hazards() as races:
            kernel(2e-3)()
            value = function(batches)
        is_there = value.device.type == "cuda"
        return is_there and torch.equal(value.cpu(), torch.stack(batches)) and not len(races)


def counts_fillers(function: Function) -> bool:
    """Return whether a function counts the fillers that it launched in time."""
    for duration_s in (1.5e-3, 3e-3):
        with gpulab.virtual_gpu("H200", first_use=False):
            ends: list[float] = []
            begins: list[float] = []

            def first(ends: list[float] = ends, duration_s: float = duration_s) -> None:
                kernel(duration_s)()
                ends.append(time.perf_counter() + duration_s)

            def fill(begins: list[float] = begins) -> None:
                begins.append(time.perf_counter())
                kernel(10e-6)()
                time.sleep(50e-6)

            value = float(function(first, fill))
        in_time = sum(begin < ends[0] for begin in begins)
        stops_early = begins[-1] < ends[0] - 0.25 * duration_s
        if not in_time or stops_early or abs(value - in_time) > 0.1 * in_time:
            return False
    return True


def overlaps(function: Function) -> bool:
    """Return whether a double buffer computes on its own data, without races and with overlap."""
    from gpulab.exercises.lesson_08 import pipelines

    class Slot:
        def __init__(self) -> None:
            self.pinned = torch.zeros(1 << 20, dtype=torch.float64).pin_memory()
            self.on_device = torch.zeros(1 << 20, dtype=torch.float64, device="cuda")
            self.copied, self.computed = torch.cuda.Event(), torch.cuda.Event()

    n_steps = 24
    with gpulab.virtual_gpu("H200", first_use=False):
        results = torch.zeros(n_steps, dtype=torch.float64, device="cuda")

        called: dict[str, list[int]] = {"fill": [], "compute": []}

        def fill(pinned: torch.Tensor, step: int) -> None:
            called["fill"].append(step)
            pinned[:64] = step + 5

        def compute(on_device: torch.Tensor, step: int) -> None:
            called["compute"].append(step)
            kernel(0.25e-3)()
            results[step] = on_device[:64].mean()

        slots, copying = [Slot(), Slot()], torch.cuda.Stream()
        torch.cuda.synchronize()
        host_s: list[float] = []

        def timed() -> None:
            start_s = time.perf_counter()
            function(slots, copying, fill, compute, n_steps)
            torch.cuda.synchronize()
            host_s.append(time.perf_counter() - start_s)

        trace = capture(timed)
        right = results.cpu().tolist() == [step + 5.0 for step in range(n_steps)]
        right &= all(sorted(steps) == list(range(n_steps)) for steps in called.values())
        races = pipelines.run_for_races(function).trial.hazards or ()
    copies = [record for record in trace.records if record.name == "copy in"]
    sleeps = [record for record in trace.records if record.name == "sleep"]
    parts_s = [sum(record.duration_ns for record in part) / 1e9 for part in (copies, sleeps)]
    return right and not races and sum(parts_s) - host_s[-1] >= 0.5 * min(parts_s)


def replays(function: Function) -> bool:
    """Return whether a function captures once, and then replays for any input."""
    calls: list[int] = []

    def chain(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return ((x * 3).relu() + 1).relu() * 2

    with gpulab.virtual_gpu("H200", first_use=False):
        x = torch.arange(8.0, device="cuda")
        replay = function(chain, x)
        for start in (3.0, 50.0, 700.0):
            before = len(calls)
            new = torch.arange(start, start + 8, device="cuda")
            if replay(new).tolist() != chain(new.cpu()).tolist():
                return False
            n_calls = len(calls) - before - 1
        return n_calls == 0


def reads_the_speed(function: Function) -> bool:
    """Return whether a function returns the TFLOP/s of a matmul, on a GPU that is new."""
    for n in (4608, 6144):
        with gpulab.virtual_gpu("H200", first_use=True), no_pauses():
            value = function(n)
            torch.cuda.synchronize()
            a = torch.zeros(n, n, device="cuda", dtype=torch.half)
            # The last one: a library may clear memory first.
            duration_s = capture(lambda a=a: a @ a).records[-1].duration_ns / 1e9
        if not is_number_near(value, 2 * n**3 / duration_s / 1e12, share=0.15):
            return False
    return True


def times_a_library(function: Function) -> bool:
    """Return whether a function times a kernel in a stream of its own, also after other work."""
    from gpulab.exercises import cases

    works = ((0.08, 0.0), (1.5, 0.0), (0.7, 3e-3))
    # A pause makes no order, and takes time itself: the answer is right with it and without it.
    for (duration_ms, other_s), pauses in product(works, (no_pauses, nullcontext)):
        with gpulab.virtual_gpu("H200", first_use=False), pauses():
            op = cases.library_kernel(duration_ms)
            with torch.cuda.stream(op.stream):
                kernel(other_s)()
            value = function(op)
        if not is_number_near(value, duration_ms / 1e3, more=16e-6):
            return False
    return True


def kernels_s(work: Callable[[], object]) -> float:
    """Return the seconds of the kernels that a work launches, from the simulator's records."""
    return sum(record.duration_ns for record in capture(work).records) / 1e9


def compares_cold(function: Function) -> bool:
    """Return whether a function returns the ratio of two cold works, and lets both start cold."""
    for n_old, n_new, shared in ((6, 6, True), (6, 3, True), (25, 6, False)):
        with gpulab.virtual_gpu("H200", first_use=False):
            stored = torch.ones(n_old << 20, device="cuda")
            new = stored[: n_new << 20] if shared else torch.ones(n_new << 20, device="cuda")
            large, works = torch.ones(1 << 26, device="cuda"), (stored.amax, new.amin)
            values: list[Any] = []
            records = capture(partial(_append, values, function, *works)).records
            cold_s = []
            for work in works:
                large.sum()
                cold_s.append(capture(work).records[-1].duration_ns / 1e9)
            hot_s = [capture(work).records[-1].duration_ns / 1e9 for work in works]
        for name, hot, cold in zip(("amax", "amin"), hot_s, cold_s, strict=True):
            calls_s = [each.duration_ns / 1e9 for each in records if each.name == name]
            samples_s = calls_s[len(calls_s) // 2 :]  # a warm-up comes first
            if median(samples_s) < (hot + cold) / 2:
                return False
        old_s, new_s = cold_s
        if not is_number_near(
            values[-1], (old_s + _EVENTS_S / 2) / (new_s + _EVENTS_S / 2), share=0.1
        ):
            return False
    return True


def times_a_long_run(function: Function) -> bool:
    """Return whether a function returns the time of a matmul after seconds of work."""
    for n in (7168, 8448):
        with gpulab.virtual_gpu("H200", first_use=False):
            a = torch.ones(n, n, device="cuda", dtype=torch.half)
            value = float(function(lambda a=a: a @ a))
        with gpulab.virtual_gpu("H200", first_use=False):
            a = torch.ones(n, n, device="cuda", dtype=torch.half)
            for _ in range(700):
                a @ a
            long_s = kernels_s(lambda a=a: a @ a)
        if not is_number_near(value, long_s, share=0.02):
            return False
    return True


def finds_two_modes(function: Function) -> bool:
    """Return whether a function returns both modes of a step and the share of the slow one."""
    from gpulab.exercises import cases

    for fast_ms, slow_ms, period, n_slow in ((0.25, 1.0, 5, 1), (0.3, 0.7, 5, 3)):
        with gpulab.virtual_gpu("H200", first_use=False):
            *modes_s, share = function(cases.decoder(fast_ms, slow_ms, period, n_slow))
        pairs = zip(modes_s, (fast_ms / 1e3, slow_ms / 1e3), strict=True)
        near = [is_number_near(mode_s, true_s, more=8e-6) for mode_s, true_s in pairs]
        if not all(near) or not is_number_near(share, n_slow / period, share=0.1):
            return False
    return True


def compares_rivals(function: Function) -> bool:
    """Return whether a function returns the ratio of two matmuls, at the same clock."""
    from gpulab.exercises import cases

    for n_rows in (8192, 7424):
        with gpulab.virtual_gpu("H200", first_use=True):
            value = float(function(*cases.rival_matmuls(n_rows)))
        with gpulab.virtual_gpu("H200", first_use=False):
            works = cases.rival_matmuls(n_rows)
            for _ in range(400):
                for work in works:
                    work()
            a_s, b_s = map(kernels_s, works)
        if not is_number_near(value, b_s / a_s, share=0.025):
            return False
    return True


def times_a_simulation(function: Function) -> bool:
    """Return whether a function times steps with one copy in and one copy out."""
    from gpulab.exercises import cases

    def three(x: torch.Tensor) -> torch.Tensor:
        return cases.smooth(cases.smooth(cases.smooth(x)))

    works = ((cases.smooth, 1 << 20, 18), (three, 1 << 19, 8))
    for (step, n, n_steps), pauses in product(works, (no_pauses, nullcontext)):
        n_calls = 0

        def counted(x: torch.Tensor, step: Function = step) -> Any:  # noqa: ANN401  # a step
            nonlocal n_calls
            n_calls += 1
            return step(x)

        with gpulab.virtual_gpu("H200", first_use=False), pauses():
            trace = capture(partial(function, counted, torch.ones(n), n_steps))
            value = float(function(step, torch.ones(n), n_steps))
            data = torch.ones(n)
            torch.cuda.synchronize()
            start_s = time.perf_counter()
            x = data.cuda()
            for _ in range(n_steps):
                x = step(x)
            x.tolist()
            wanted_s = (time.perf_counter() - start_s) / n_steps
        if n_calls < n_steps or copied_bytes(trace.records, "copy out") < x.nbytes:
            return False
        if not is_number_near(value, wanted_s, share=0.12):
            return False
    return True


def times_calls(function: Function) -> bool:
    """Return whether a function times one call of a kernel that is as short as a few launches."""
    for duration_s in (25e-6, 70e-6):
        with gpulab.virtual_gpu("H200", first_use=False):
            value = function(kernel(duration_s))
        if not is_number_near(value, duration_s, more=3.5e-6):
            return False
    return True


def serves_each(function: Function) -> bool:
    """Return whether a function answers every request by a replay, and returns its time."""
    from gpulab.exercises import cases

    counts: list[int] = []
    with gpulab.virtual_gpu("H200", first_use=False):
        graph = torch.cuda.CUDAGraph
        original = graph.replay

        def replay(self: Any) -> None:  # noqa: ANN401  # the virtual graph
            counts.append(1)
            original(self)

        model, requests = cases.small_model(12), cases.requests(7)
        values: list[Any] = []
        with patch.object(graph, "replay", replay), gpulab.hazards() as races:
            trace = capture(partial(_append, values, function, model, requests))
        seconds, outputs = pair_in(values[0]) or ()
        wanted = [model(request).tolist() for request in requests]
        # In seconds of a loop without a graph, which takes far longer than all replays.
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        for request in requests:
            model(request)
        torch.cuda.synchronize()
        plain_s = (time.perf_counter() - start_s) / 7
        right = [output.tolist() for output in outputs] == wanted
    launches = Counter(record.correlation for record in trace.records)
    graphs = [record for record in trace.records if launches[record.correlation] > 1]
    span_s = (graphs[-1].end_ns - graphs[0].start_ns) / 1e9
    is_near = 0.75 * span_s / 7 <= float(seconds) <= min(1.4 * span_s / 7, plain_s)
    return right and is_near and len(counts) >= len(requests) and not len(races)


def trains_beside(function: Function) -> bool:
    """Return whether every step reads its batch, in a fixed order, beside the next copy."""
    from gpulab.exercises import cases

    with gpulab.virtual_gpu("H200", first_use=False):
        batches = cases.pinned_batches(9)
        values: list[Any] = []
        with gpulab.hazards() as races:
            torch.cuda.synchronize()
            trace = capture(partial(_append, values, function, batches, cases.training_step))
        seconds, results = pair_in(values[0]) or ()
        right = results.tolist() == [float(number) for number in range(1, 10)]
    copies = [record for record in trace.records if record.name == "copy in"]
    sleeps = [record for record in trace.records if record.name == "sleep"]
    span_s = (trace.records[-1].end_ns - copies[0].start_ns) / 1e9
    parts_s = [sum(record.duration_ns for record in part) / 1e9 for part in (copies, sleeps)]
    overlaps_half = sum(parts_s) - span_s >= 0.5 * min(parts_s)
    is_near = is_number_near(seconds, span_s, share=0.15)
    return right and not len(races) and overlaps_half and is_near


def agrees_on(cases: Sequence[tuple[Any, ...]], right: Function, function: Function) -> bool:
    """Return whether a function returns what a right one does, for all cases."""
    for case in cases:
        value, wanted = function(*case), right(*case)
        if isinstance(wanted, str):
            same = str(value).lower() == wanted
        elif wanted is None or value is None:
            same = value is wanted
        else:
            same = math.isclose(float(value), wanted, rel_tol=1e-3)
        if not same:
            return False
    return True


def _needed(cpu_s: float, gpu_s: float, transfers_s: float) -> int | None:
    if cpu_s <= gpu_s:
        return None
    return next(n for n in range(1, 1000) if round(transfers_s + n * gpu_s - n * cpu_s, 12) < 0)


def _bound(flops: float, size_bytes: float) -> str:
    times_s = {"compute": flops / 989.4e12, "memory": size_bytes / 4.8e12, "launch": 1e-6}
    return max(times_s, key=lambda name: times_s[name])


def _least_s(m: int, k: int, n: int, peak: float, bandwidth: float) -> float:
    return max(2 * m * n * k / peak, 2 * (m * k + k * n + m * n) / bandwidth)


def _sectors(n: int, stride: int, size_bytes: int) -> int:
    return len({k * stride * size_bytes // 32 for k in range(n)})


_NEEDED = [(c * 1e-3, g * 1e-3, t * 1e-3) for c in (1, 2, 5) for g in (1, 2) for t in (1, 3, 12)]
_BOUNDS = [(10.0**f, 10.0**b) for f in range(5, 16) for b in range(3, 11)]
_SIDES = [(m, k, n) for m in (1, 300, 8192) for k in (8, 4096) for n in (2, 300, 6000)]
_LEAST = [(*sides, 312e12, 2e12) for sides in _SIDES]
_READS = [(n, s, b) for n in (1, 3, 32, 70) for s in (1, 2, 7, 30) for b in (1, 4, 8)]

REFERENCES: dict[str, Callable[[Function], bool]] = {
    "07.graph-it": replays,
    "08.double-buffer": overlaps,
    "09.how-many": partial(agrees_on, _NEEDED, _needed),
    "10.least-time": partial(agrees_on, _LEAST, _least_s),
    "10.which-bound": partial(agrees_on, _BOUNDS, _bound),
    "12.sectors": partial(agrees_on, _READS, _sectors),
    "13.unwaited": times_a_kernel,
    "13.backlog": partial(times_a_kernel, backlog_s=8e-3),
    "13.too-early": partial(times_a_kernel, by_events=True),
    "13.first-call": times_a_usual_call,
    "13.each-layer": with_and_without_pauses(times_a_pass),
    "13.pageable": copies_beside,
    "13.read-too-early": sums_on_the_host,
    "13.two-streams": sums_a_double,
    "13.wait-before-record": sums_a_double,
    "13.freed": doubles_safely,
    "13.refilled": uploads,
    "13.endless": counts_fillers,
    "case-01.mend": reads_the_speed,
    "case-02.mend": with_and_without_pauses(compares_cold),
    "case-03.mend": times_a_long_run,
    "case-04.mend": trains_beside,
    "case-05.mend": times_a_library,
    "case-06.mend": finds_two_modes,
    "case-07.mend": compares_rivals,
    "case-08.mend": times_a_simulation,
    "case-09.mend": with_and_without_pauses(serves_each),
    "case-10.mend": with_and_without_pauses(times_calls),
}
