"""Time kernels after each way to prepare the cache, by the driver's records."""

import random
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.cold_cache.flushes import MIB, Prepare, Way, clones_of, needed_bytes, prepared
from benchmarks.cold_cache.works import Case, Work
from benchmarks.common.device_records import busy_us, is_spin, profiled, short_name
from gpulab.tracing.profiling import ActivityRecord

SHARES = (1 / 4, 1 / 2, 1.0, 2.0, 4.0)  # of the L2, beside the small sizes
SMALL_MIB = (1, 4)
_LONG_SLEEP, _SHORT_SLEEP = 40_000, 1_000  # cycles: the long one lets the host get ahead
# Three sleeps divide the records of a sample: after the first comes the flush, after the second
# the timed kernel, after the third what the next sample runs before its flush.
_N_MARKS = 3
# The day of the recording. It only sets the order of the samples.
_SEED = 20261121


@dataclass(frozen=True, slots=True)
class Sample:
    """One kernel after one way to prepare the cache.

    Attributes
    ----------
    steps
        What runs before it; the last step is the flush.
    """

    way: Way
    size_mib: int
    case: Case
    steps: Sequence[Prepare]

    def run(self) -> None:
        """Enqueue the kernel between marks that divide the records."""
        for step in self.steps[:-1]:
            step()
        torch.cuda._sleep(_LONG_SLEEP)
        self.steps[-1]()
        torch.cuda._sleep(self.way.pause_cycles)
        self.case.run(*self.case.tensors)
        torch.cuda._sleep(_SHORT_SLEEP)


def sizes_mib() -> list[int]:
    """Return the working sets in MiB."""
    return [*SMALL_MIB, *(round(needed_bytes(share) / MIB) for share in SHARES)]


def flushes_of(ways: Sequence[Way]) -> dict[str, Prepare | None]:
    """Return for each way a function that enqueues its flush, with its own buffers."""
    l2_bytes = needed_bytes(1)
    return {way.name: way.make(l2_bytes) if way.make else None for way in ways}


def samples_of(
    work: Work, size_mib: int, ways: Sequence[Way], flushes: dict[str, Prepare | None]
) -> list[Sample]:
    """Return one sample for each way, all of the same kernel and tensors."""
    case = work.make(size_mib * MIB)
    clones = clones_of(case, max(way.rotation for way in ways))
    return [
        Sample(way, size_mib, case, prepared(way, flushes[way.name], case, clones)) for way in ways
    ]


def times_of(samples: Sequence[Sample], n_samples: int) -> dict[str, Any]:
    """Return the durations of one kernel and of the flushes before it, in microseconds.

    The samples are shuffled, so that no way always follows the same other way, and slow drifts
    of the clock change all ways alike.
    """
    for sample in samples:  # the first use of a library or a kernel takes longer
        sample.run()
    chance = random.Random(_SEED)  # noqa: S311 # an order, not a secret
    order = [item for _ in range(n_samples) for item in chance.sample(samples, len(samples))]

    def everything() -> None:
        for sample in order:
            sample.run()

    return _summary(order, profiled(everything))


def _summary(order: Sequence[Sample], records: Sequence[ActivityRecord]) -> dict[str, Any]:
    groups = list(_between_marks(records))
    if len(groups) != _N_MARKS * len(order):
        raise RuntimeError(f"{len(groups)} groups of records, not {_N_MARKS * len(order)}")
    kernels: dict[tuple[int, str], list[float]] = defaultdict(list)
    flushes: dict[str, list[float]] = defaultdict(list)
    names: dict[str, list[str]] = {}
    for index, sample in enumerate(order):
        flush, timed, _ = groups[_N_MARKS * index : _N_MARKS * (index + 1)]
        way = sample.way.name
        kernels[sample.size_mib, way].append(busy_us(timed))
        flushes[way].append(busy_us(flush))
        names.setdefault("kernel", [short_name(record.name) for record in timed])
        # The first three are enough to recognise a flush; rotation runs many kernels.
        names.setdefault(way, [short_name(record.name) for record in flush[:3]])
    times: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for (size_mib, way), values in kernels.items():
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        times[str(size_mib)][way] = [round(value, 3) for value in (middle, low, high)]
    flush_us = {way: round(statistics.median(values), 3) for way, values in flushes.items()}
    return {"times_us": times, "flush_us": flush_us, "names": names}


def _between_marks(records: Sequence[ActivityRecord]) -> Iterator[list[ActivityRecord]]:
    group: list[ActivityRecord] | None = None
    for record in records:
        if is_spin(record):
            if group is not None:
                yield group
            group = []
        elif group is not None:
            group.append(record)
    if group is not None:
        yield group
