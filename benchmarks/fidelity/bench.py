"""Time a GPU, real or virtual, with the same code: kernel records, event times and host times."""

import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from types import FrameType

import torch

from benchmarks.common.device_records import KINDS, duration_us, is_spin, profiled, short_name
from gpulab.device.work import Work
from gpulab.timing import elapsed_s
from gpulab.timing._event_pairs import new_event
from gpulab.tracing.profiling import ActivityRecord

# The host blocks once 1,021 launches are pending on an H200; stay well below.
MOST_PENDING = 900
_SPIN_CYCLES = 1_000
_CLOCK_HZ = 1.98e9
_FLUSH_ELEMENTS = 1 << 26  # 256 MB of float32, four times the L2 cache of an H200
_N_NAMED_KERNELS = 12
_US_PER_S = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """How often to read each time on the GPU in use.

    Attributes
    ----------
    n_repetitions
        Number of samples of a device time.
    n_calls, n_rounds
        Number of calls enqueued back-to-back for a host time, and of repetitions of that.
    """

    n_repetitions: int
    n_calls: int
    n_rounds: int

    def records(self, work: Work) -> list[ActivityRecord]:
        """Run some work, wait for it, and return the device's records, sorted by start."""
        return profiled(work)


def real_bench(*, quick: bool) -> Bench:
    """Return the bench of the CUDA GPU in use."""
    if quick:
        return Bench(n_repetitions=2, n_calls=10, n_rounds=1)
    return Bench(n_repetitions=20, n_calls=200, n_rounds=5)


def virtual_bench() -> Bench:
    """Return the bench of the virtual GPU in use, which repeats itself exactly."""
    return Bench(n_repetitions=3, n_calls=50, n_rounds=1)


def spin(cycles: int = _SPIN_CYCLES) -> None:
    """Let the device spin for a number of clock cycles."""
    torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call] # torch's is untyped


def spin_s(duration_s: float) -> None:
    """Let the device spin for about a number of seconds."""
    spin(int(duration_s * _CLOCK_HZ))


def median_us(values_s: list[float]) -> float:
    """Return the median of times in seconds, in microseconds."""
    return round(statistics.median(values_s) * _US_PER_S, 4)


def host_us(bench: Bench, work: Work, n_calls: int | None = None) -> float:
    """Return the host time of a call in microseconds, enqueued back-to-back on an idle queue."""
    n_calls = n_calls or bench.n_calls
    rounds = []
    for _ in range(bench.n_rounds):
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        for _ in range(n_calls):
            work()
        rounds.append((time.perf_counter() - start_s) / n_calls)
    torch.cuda.synchronize()
    return median_us(rounds)


def event_us(work: Work, n_repetitions: int, host_s: float) -> float:
    """Return the time between a pair of events around the work, hot, with the queue full.

    Parameters
    ----------
    host_s
        Host time of the work, from which the length of the spinning kernel before it follows.
    """
    pairs = [(new_event(), new_event()) for _ in range(n_repetitions)]
    torch.cuda.synchronize()
    # The device must not reach the first event before the host has enqueued the last one. Twice
    # the expected time covers a host that is busy; 30 µs are for the events of a pair.
    spin_s(1e-3 + 2 * n_repetitions * (host_s + 30e-6))
    for start, end in pairs:
        start.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return median_us([elapsed_s(pair) for pair in pairs])


def device_reading(bench: Bench, work: Work, n_repetitions: int) -> dict[str, object]:
    """Return device times of the work, hot and cold, from the records of its kernels.

    Hot: called repeatedly on the same inputs. Cold: after a read of 256 MB, which leaves no dirty
    lines. The time of one call is the sum of the durations of all its records; the result is the
    median over the repetitions.
    """
    flush = torch.zeros(_FLUSH_ELEMENTS, device="cuda")

    def repeat() -> None:
        for _ in range(n_repetitions):
            spin()
            work()
        for _ in range(n_repetitions):
            spin()
            flush.sum()
            spin()
            work()
        spin()

    parts = _split(bench.records(repeat))
    if len(parts) != 3 * n_repetitions:
        raise RuntimeError(f"{len(parts)} parts were recorded instead of {3 * n_repetitions}")
    # After the hot calls come the flush and the cold call in turns; the flushes are left out.
    return _summary(parts[:n_repetitions], parts[n_repetitions + 1 :: 2])


def _split(records: list[ActivityRecord]) -> list[list[ActivityRecord]]:
    """Return the records between one separator and the next."""
    marks = [index for index, record in enumerate(records) if is_spin(record)]
    return [records[a + 1 : b] for a, b in pairwise(marks)]


def _summary(
    hot: list[list[ActivityRecord]], cold: list[list[ActivityRecord]]
) -> dict[str, object]:
    usual = statistics.mode(len(part) for part in hot + cold)
    # Only calls with the usual number of records can be compared kernel by kernel.
    hot_usual = [part for part in hot if len(part) == usual]
    cold_usual = [part for part in cold if len(part) == usual]
    hot_us, cold_us = [_total_us(part) for part in hot], [_total_us(part) for part in cold]
    first = (hot_usual + cold_usual)[0]
    return {
        "hot_us": _median(hot_us),
        "cold_us": _median(cold_us),
        "hot_range_us": [round(min(hot_us), 3), round(max(hot_us), 3)],
        "cold_range_us": [round(min(cold_us), 3), round(max(cold_us), 3)],
        "n_repetitions": len(hot),
        **{f"n_{kind}": sum(record.kind == kind for record in first) for kind in KINDS},
        **{f"{kind}_hot_us": _median([_total_us(part, kind) for part in hot]) for kind in KINDS},
        "kernels": [
            {
                "name": short_name(first[i].name),
                "hot_us": _median([duration_us(part[i]) for part in hot_usual]),
                "cold_us": _median([duration_us(part[i]) for part in cold_usual]),
            }
            for i in range(min(usual, _N_NAMED_KERNELS))
        ],
    }


def _total_us(part: list[ActivityRecord], kind: str | None = None) -> float:
    return sum(duration_us(record) for record in part if kind in {None, record.kind})


def _median(values: list[float]) -> float | None:
    return round(statistics.median(values), 3) if values else None


@contextmanager
def at_most(limit_s: float) -> Iterator[None]:
    """Raise ``TimeoutError`` in the block if it takes longer on the host than a limit.

    The alarm counts real time, also under the virtual clock.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"it took longer than {limit_s:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
