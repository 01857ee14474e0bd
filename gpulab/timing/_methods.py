"""The timing methods by name: what each one times, with which clock, on which cache.

To add a method, write a class like those in :mod:`gpulab.timing._samplers`, one entry here and
one exact test.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from gpulab.timing._cuda_graph import GraphSampler
from gpulab.timing._profiler import ProfilerSampler
from gpulab.timing._samplers import EventSampler, NaiveSampler, Sampler, SynchronizedSampler
from gpulab.timing._saturated import SaturatedSampler

__all__ = ["METHODS", "Method"]


@dataclass(frozen=True, slots=True)
class Method:
    """A timing method: its name, its sampler, and what it times.

    ``sampler`` takes the arguments of :class:`~gpulab.timing._samplers.Sampler`.
    ``clock`` is the one that it reads: ``"host"``, ``"events"`` or the driver's ``"records"``.
    ``cache`` is the state before each sample, ``"hot"`` or ``"cold"``, unless the user chooses.
    ``floor_of`` says which :func:`gpulab.timing.floor` :func:`gpulab.measure` subtracts; None for
    no floor. If the host must be ahead of the GPU, the method cannot time work that waits.
    """

    name: str
    sampler: Callable[..., Sampler]
    summary: str
    clock: str = "events"
    cache: str = "hot"
    floor_of: str | None = None
    needs_host_ahead: bool = False


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        method.name: method
        for method in (
            Method(
                "naive",
                NaiveSampler,
                "the host's clock around the call, without waiting: the launch alone",
                clock="host",
            ),
            Method(
                "synchronized",
                SynchronizedSampler,
                "the host's clock, from an idle device until it is idle again",
                clock="host",
            ),
            Method("events", EventSampler, "the device's clock, between two events in the stream"),
            Method(
                "saturated",
                SaturatedSampler,
                "events after a sleep of the GPU, so that the host is ahead",
                cache="cold",
                needs_host_ahead=True,
            ),
            Method(
                "calibrated",
                SaturatedSampler,
                "the same, minus what events read without any work: the time on the GPU",
                cache="cold",
                floor_of="launches",
                needs_host_ahead=True,
            ),
            Method(
                "graph",
                GraphSampler,
                "events inside a CUDA graph, minus their floor: no launch by Python in between",
                floor_of="graph",
            ),
            Method(
                "profiler",
                ProfilerSampler,
                "the driver's records, without pauses: the referee for one kernel",
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
