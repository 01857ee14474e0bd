"""The timing methods by their names: what each reads, by which clock, on which cache.

A new method is one class like those in :mod:`gpulab.timing._samplers`, one entry here and one
exact test.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Protocol

from gpulab.requirements import COUNT, FUNCTION, NameOf
from gpulab.timing._cuda_graph import GraphSampler
from gpulab.timing._profiler import ProfilerSampler
from gpulab.timing._samplers import EventSampler, NaiveSampler, Sampler, SynchronizedSampler
from gpulab.timing._saturated import SaturatedSampler
from gpulab.work import Work, check_callable, refuse_endless

__all__ = ["METHODS", "Method", "find_method", "take_samples"]


class MakeSampler(Protocol):
    """How every sampler is made."""

    def __call__(self, work: Work, *, inner_loops: int = 1, before: Work | None = None) -> Sampler:
        """Return a sampler of this work."""
        ...


@dataclass(frozen=True, slots=True)
class Method:
    """A timing method by its name.

    Attributes
    ----------
    name
        What ``method=`` takes.
    sampler
        Makes what takes the samples of one piece of work.
    summary
        One line on what it reads.
    clock
        The clock that it reads: ``"host"``, ``"events"`` or the driver's ``"records"``.
    cache
        State of the cache before each sample, unless the user asks for another: ``"hot"`` or
        ``"cold"``.
    floor_of
        Which floor :func:`gpulab.measure` takes off its samples; see :func:`gpulab.timing.floor`.
        None where it takes off none.
    """

    name: str
    sampler: MakeSampler
    summary: str
    clock: str = "events"
    cache: str = "hot"
    floor_of: str | None = None

    @property
    def needs_host_ahead(self) -> bool:
        """Whether the host must be ahead of the GPU, which work that waits never allows."""
        return self.sampler is SaturatedSampler


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        method.name: method
        for method in (
            Method(
                "naive",
                NaiveSampler,
                "the host's clock, nothing waited for: the launch alone",
                clock="host",
            ),
            Method(
                "synchronized",
                SynchronizedSampler,
                "the host's clock, from idle to idle device",
                clock="host",
            ),
            Method("events", EventSampler, "the device's clock, between two events in the stream"),
            Method(
                "saturated",
                SaturatedSampler,
                "events behind a sleep of the GPU, so that the host is ahead",
                cache="cold",
            ),
            Method(
                "calibrated",
                SaturatedSampler,
                "the same, less what events read of no work at all: the time on the GPU",
                cache="cold",
                floor_of="launches",
            ),
            Method(
                "graph",
                GraphSampler,
                "events inside a CUDA graph, less their floor: no launch by Python in between",
                floor_of="graph",
            ),
            Method(
                "profiler",
                ProfilerSampler,
                "the driver's records, pauses left out: the referee for one kernel",
                clock="records",
                cache="cold",
            ),
            Method(
                "profiler-span",
                partial(ProfilerSampler, span=True),
                "the driver's records, from the first start to the last end",
                clock="records",
                cache="cold",
            ),
        )
    }
)


_METHOD = NameOf("timing method", METHODS)


def find_method(name: str) -> Method:
    """Return the timing method of this name.

    Raises
    ------
    UnknownNameError
        If there is none; the message names the nearest.
    """
    _METHOD.check(method=name)
    return METHODS[name]


def take_samples(
    method: str,
    work: Work,
    *,
    n_samples: int,
    inner_loops: int = 1,
    before: Work | None = None,
) -> list[float]:
    """Return bare samples by one method: no warm-up, no floor taken off, nothing judged.

    Parameters
    ----------
    method
        A name of :data:`METHODS`.
    work
        Enqueues the work to be timed.
    n_samples, inner_loops
        Timed intervals, and calls of ``work`` inside each; both at least 1.
    before
        Called ahead of each sample and not timed: a cache flush, a setup.

    Returns
    -------
    list[float]
        ``n_samples`` samples, in seconds per call of ``work``.

    Raises
    ------
    UnknownNameError
        If there is no such method.
    NotCapturableError
        If the method is ``"graph"`` and the work cannot be captured.
    ProfilerBusyError, ProfilerUnavailableError
        If the method reads the driver's records and there are none.
    """
    chosen = find_method(method)
    check_callable(
        "work", work, "pass a function: take_samples('events', lambda: a @ b, n_samples=9)"
    )
    COUNT.check(n_samples=n_samples, inner_loops=inner_loops)
    FUNCTION.or_none.check(before=before)
    refuse_endless(n_samples * inner_loops, n_samples=n_samples, inner_loops=inner_loops)
    sampler = chosen.sampler(work, inner_loops=inner_loops, before=before)
    return sampler(n_samples)
