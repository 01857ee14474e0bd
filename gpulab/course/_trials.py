"""Trials: run a learner's function on a virtual GPU and record its numbers; no key is needed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from gpulab.course._seeded_random import SeededDraw
from gpulab.tracing.trials import Trial, called, number_in, text_of

if TYPE_CHECKING:
    import torch

Work = Callable[[], object]
# Numbers that a trial recorded, by name; a text instead of a list is what the answer raised.
Facts = dict[str, object]

# The GPU spins this long before timed work, so that the work is in the queue before it starts and
# the time between two events contains no launch. The host launches all of a trial in less.
_HEAD_START_US = 5_000.0
_CYCLES_PER_US = 1_980  # the virtual H200 spins at its boost clock


@contextmanager
def _gpu(name: str = "H200") -> Iterator[None]:
    from gpulab import virtual

    with virtual.virtual_gpu(name, first_use=False):
        yield


def _spin(duration_us: float) -> Work:
    from gpulab.core.torch_private import spin

    n_cycles = round(duration_us * _CYCLES_PER_US)
    return lambda: spin(n_cycles)


def _in_turn(durations_us: list[float], usual_us: float) -> Work:
    """Return work whose first calls take the given times; later calls take ``usual_us``."""
    works = iter([*map(_spin, durations_us)])
    usual = _spin(usual_us)

    def work() -> None:
        next(works, usual)()

    return work


def _stream() -> "torch.cuda.Stream":
    import torch

    make: Callable[[], torch.cuda.Stream] = torch.cuda.Stream
    return make()


def numbers(value: object) -> list[float] | None:
    """Return the finite numbers in an answer's result as a list, or None if it has others."""
    parts = [number_in(part) for part in (value if isinstance(value, tuple | list) else [value])]
    finite = [part for part in parts if part is not None and isfinite(part)]
    return finite if finite and len(finite) == len(parts) else None


def tail(function: Callable[..., object], draw: SeededDraw) -> Facts:
    """Try ``tail(work, n_calls)`` in five situations."""
    usual = float(draw.number(300, 700, 20))
    # Rare enough that the median does not change, and often enough to be in 4 * every calls.
    every = draw.number(6, 8)
    rare = [3 * usual if i % every == every - 1 else usual for i in range(200)]
    situations = {
        "steady": _in_turn([], usual),
        "backlog": _in_turn([], usual),
        # Fewer than the ten that the question allows, so that leaving out ten is enough.
        "first calls": _in_turn([20 * usual] * 6, usual),
        "largest": _in_turn(rare, usual),
        "short": _in_turn([], 20.0),
    }
    facts: Facts = {}
    for name, work in situations.items():
        with _gpu():
            if name == "backlog":
                _spin(50_000.0)()
            facts[name] = _timed(4 * every, work, function, work, 4 * every)
    return facts


def _timed(
    n_calls: int, work: Work, function: Callable[..., object], *arguments: object
) -> object:
    """Return the fact of a function that times a work, which it must call often enough.

    Without calls there is no measurement, however right the numbers are. The work is one of the
    arguments.
    """
    n = 0

    def counted() -> None:
        nonlocal n
        n += 1
        work()

    fact = _fact(_try(function, *(counted if each is work else each for each in arguments)))
    if n >= n_calls or isinstance(fact, str):
        return fact
    return f"called the work {n} times, and should {n_calls} times"


def _try(function: Any, *arguments: object) -> Trial:  # noqa: ANN401  # what a learner made
    """Call a learner's function; what cannot be called raises an error as it does."""
    trial = called(lambda: function(*arguments))
    if isinstance(trial.error, MemoryError) or not isinstance(trial.error, Exception | None):
        raise trial.error  # the caller reports that memory is used up, or that it tried to end
    return trial


def _fact(trial: Trial) -> object:
    """Return the numbers of a trial, or a text that says why there are none."""
    if trial.error is not None:
        return f"{type(trial.error).__name__}: {text_of(trial.error)}"
    durations = numbers(trial.value)
    return f"returned {type(trial.value).__name__}" if durations is None else durations


def make_flush(function: Callable[..., object], draw: SeededDraw) -> Facts:
    """Time a reduction after the flush that ``make_flush(l2_bytes)`` returns, on two GPUs."""
    import torch

    facts: Facts = {}
    # A second GPU with another L2, where a flush of a fixed size leaves data behind.
    for name in ("H200", "B200"):
        with _gpu(name):
            l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
            flush = _try(function, l2_bytes)
            if flush.error is not None:
                return dict.fromkeys(("H200", "another", "host"), _fact(flush))
            fact = "H200" if name == "H200" else "another"
            # About a quarter of the L2: so much stays in any cache, and hot and cold times differ.
            facts[fact] = _after_flush(flush.value, l2_bytes, draw.number(20, 30))
            facts["host"] = _host_time(flush.value)
    return facts


def _after_flush(flush: object, l2_bytes: int, percent: int) -> object:
    """Return the seconds that a reduction takes after a flush; its numbers fill part of the L2."""
    import torch

    # Hot it takes a sixth less than cold, on any GPU; a layer takes nearly as long.
    a = torch.randn(percent * l2_bytes // 100 // 4096 // 4, 4096, device="cuda")
    work = partial(torch.logsumexp, a, 1)
    make: Callable[..., torch.cuda.Event] = torch.cuda.Event
    start, end = (make(enable_timing=True) for _ in range(2))
    work()  # now its numbers are in the cache
    torch.cuda.synchronize()
    _spin(_HEAD_START_US)()
    flushed = _try(flush)
    if flushed.error is not None:
        return _fact(flushed)
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1000]


def _layer(n_bytes: int) -> Work:
    import torch

    # A row has 8192 bytes; their number is a multiple of 64, which needs no kernel for odd sizes.
    weight = torch.randn(n_bytes // 8192 // 64 * 64, 4096, device="cuda", dtype=torch.half)
    row = torch.randn(1, 4096, device="cuda", dtype=torch.half)
    return lambda: torch.nn.functional.linear(row, weight)


def _host_time(flush: object) -> object:
    """Return the seconds that the host needs for one flush while the GPU is busy.

    A flush that waits for the GPU takes as long as the GPU is busy; a right one only enqueues.
    """
    import time

    import torch

    torch.cuda.synchronize()
    # So long that a flush which waits for the GPU shows, however slow the host is.
    _spin(100_000.0)()
    start_s = time.perf_counter()
    flushed = _try(flush)
    if flushed.error is not None:
        return _fact(flushed)
    host_s = time.perf_counter() - start_s
    torch.cuda.synchronize()
    return [host_s]


def cold_seconds(function: Callable[..., object], draw: SeededDraw) -> Facts:
    """Try ``cold_seconds(work, flush, n_samples)`` on work with and without inputs."""
    import torch

    facts: Facts = {}
    n_bytes, usual_us = draw.number(10, 16) * 2**20, float(draw.number(200, 400))
    for name in ("cold", "only the work", "short"):
        with _gpu():
            # Twice the H200's L2 of 60 MiB, in elements of 4 bytes.
            buffer = torch.zeros(2 * 60 * 2**18, device="cuda")
            work = _layer(n_bytes) if name == "cold" else _spin(usual_us)
            if name == "short":
                work = _spin(20.0)
            facts[name] = _timed(11, work, function, work, buffer.sum, 11)
    return facts


def seconds_in(function: Callable[..., object], draw: SeededDraw) -> Facts:
    """Try ``seconds_in(stream, work)`` while the same stream or another one has work to do."""
    import time

    import torch

    facts: Facts = {}
    work = _spin(float(draw.number(300, 600)))
    # The other stream is busy for so long that a function which waits for it is clearly slower.
    for name, own_us, other_us in (("idle", 0, 0), ("queue", 5_000, 0), ("others", 0, 200_000)):
        with _gpu():
            stream, other = _stream(), _stream()
            for busy, length_us in ((stream, own_us), (other, other_us)):
                with torch.cuda.stream(busy):
                    _spin(float(length_us))()
            start_s = time.perf_counter()
            facts[name] = _timed(1, work, function, stream, work)
            facts[f"host, {name}"] = [time.perf_counter() - start_s]
            torch.cuda.synchronize()
    return facts


_N_STEPS = 8  # of the pipeline
# A batch and the part of it that a step copies into its result: a short read shows whether the
# right batch was in the buffer, and leaves the time to the spinning kernel.
_N_ELEMENTS, _N_HEAD = 1 << 20, 1 << 12


def pipeline(function: Callable[..., object], draw: SeededDraw) -> Facts:
    """Try ``pipeline(side, copies, computes)``; record data races, right results and the time."""
    from gpulab.tracing.sanitizer import hazards

    facts: Facts = {}
    cycles = draw.number(400, 600) * 1000
    contents = [float(draw.number(1, 1 << 20)) for _ in range(_N_STEPS)]
    with _gpu(), hazards() as races:
        problem, values, _ = _piped(function, cycles, contents)
        facts["order"] = problem or [float(len(races.found))]
        facts["values"] = problem or values
    with _gpu():
        # In a run of its own, because the race detector slows the launches.
        problem, _, duration_s = _piped(function, cycles, contents)
        facts["time"] = problem or [duration_s]
    return facts


def _piped(
    function: Callable[..., object], cycles: int, contents: list[float]
) -> tuple[str, list[float], float]:
    """Run a pipeline; return what it raised or "", the numbers in its results, and its seconds.

    Each batch is in pinned memory, and has a buffer and a result on the GPU. Of each result the
    least and the greatest number are returned; the grader compares them.
    """
    import time

    import torch

    from gpulab.core.torch_private import spin

    batches = [torch.full((_N_ELEMENTS,), content).pin_memory() for content in contents]
    buffers = [torch.zeros(_N_ELEMENTS, device="cuda") for _ in batches]
    results = [torch.zeros(_N_HEAD, device="cuda") for _ in batches]

    def copy(i: int) -> None:
        buffers[i].copy_(batches[i], non_blocking=True)

    def compute(i: int) -> None:
        results[i].copy_(buffers[i][:_N_HEAD])
        spin(cycles)

    copies = [lambda i=i: copy(i) for i in range(_N_STEPS)]
    computes = [lambda i=i: compute(i) for i in range(_N_STEPS)]
    side = _stream()
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    # What the function returns does not matter: the question asks for no result.
    trial = _try(function, side, copies, computes)
    torch.cuda.synchronize()
    duration_s = time.perf_counter() - start_s
    values = [number for y in results for number in (min(y.tolist()), max(y.tolist()))]
    return "" if trial.error is None else str(_fact(trial)), values, duration_s


TRIALS: dict[str, Callable[[Callable[..., object], SeededDraw], Facts]] = {
    each.__name__: each for each in (tail, make_flush, cold_seconds, seconds_in, pipeline)
}


def warm_up() -> None:
    """Use a virtual GPU once, so that no answer pays for imports and first use."""
    import torch

    from gpulab.tracing.sanitizer import hazards

    with _gpu(), hazards():
        _spin(1.0)()
        torch.ones(4, device="cuda").sum().item()
