"""What the samples allow one to say: each doubt is one pure function over the facts of a run.

A check takes :class:`Facts` and returns a :class:`~gpulab.measurement.Finding` or ``None``.
It touches no device and no clock, so a new doubt is one function, one line in ``CHECKS``
and one test that provokes it.
"""

from collections.abc import Callable

from gpulab import _doubts_run, _doubts_samples
from gpulab._doubts_samples import EVENT_RESOLUTION_S
from gpulab._facts import Facts
from gpulab.measurement import Finding

__all__ = ["CHECKS", "EVENT_RESOLUTION_S", "Facts", "examine"]

CHECKS: tuple[Callable[[Facts], Finding | None], ...] = (
    _doubts_run.faster_than_possible,
    _doubts_run.side_stream,
    _doubts_run.synchronizes_inside,
    _doubts_run.starved,
    _doubts_run.naive_launch_only,
    _doubts_run.records_dropped,
    _doubts_run.launch_bound,
    _doubts_run.cache_hot,
    _doubts_run.written_flush,
    _doubts_run.clock_changed,
    _doubts_run.allocator_grew,
    _doubts_run.zero_result,
    _doubts_samples.too_few_samples,
    _doubts_samples.below_resolution,
    _doubts_samples.drifting,
    _doubts_samples.bimodal,
)


def examine(facts: Facts) -> tuple[Finding, ...]:
    """Return what there is to doubt about a run, the gravest first; often nothing."""
    return tuple(finding for check in CHECKS if (finding := check(facts)) is not None)
