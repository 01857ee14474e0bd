"""A profiler without hardware: a clock, launches, and the records that CUPTI would give."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.autograd import DeviceType

from gpulab.device import Device, _notebook_session
from gpulab.tracing.profiling import _kineto

if TYPE_CHECKING:
    from collections.abc import Callable

STREAM, THREAD = 7, 1514393920


@dataclass
class Event:
    """The profiler's record of a call on the host or of work on the device."""

    on: str
    shown: str
    began_ns: int
    lasted_ns: int
    resource: int
    number: int
    place: int = 0
    annotation: bool = False

    def name(self) -> str:
        """Return the name."""
        return self.shown

    def start_ns(self) -> int:
        """Return the start."""
        return self.began_ns

    def duration_ns(self) -> int:
        """Return the duration."""
        return self.lasted_ns

    def device_type(self) -> Any:  # noqa: ANN401 # an enumeration of torch's
        """Return whether the event is of the host or of the device."""
        return getattr(DeviceType, self.on)

    def device_index(self) -> int:
        """Return the device."""
        return self.place

    def device_resource_id(self) -> int:
        """Return the stream, or the thread of a call."""
        return self.resource

    def correlation_id(self) -> int:
        """Return the number that launch and work share."""
        return self.number

    def nbytes(self) -> int:
        """Return 0, as torch 2.11 does."""
        return 0

    def is_user_annotation(self) -> bool:
        """Return whether a program added it."""
        return self.annotation


@dataclass
class FakeGpu:
    """A host whose clock moves by 1 µs each time it is read, and a device with one stream.

    Attributes
    ----------
    lose
        Numbers of the launches, counted from 1, without a record of the device.
    hide
        Numbers of the launches without a record of the host.
    """

    now_ns: int = 1_000_000
    free_ns: int = 0
    n_launches: int = 0
    number: int = 0
    is_open: bool = False
    is_blind: bool = False
    is_done: bool = False
    sleeps: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    lose: set[int] = field(default_factory=set)
    hide: set[int] = field(default_factory=set)

    def time_ns(self) -> int:
        """Read the clock, which moves it."""
        self.now_ns += 1_000
        return self.now_ns

    def call(self, name: str, lasts_ns: int = 2_000) -> int:
        """Make a call on the host and return its number."""
        self.number += 3  # CUPTI numbers calls that it does not show, too
        self.add(Event("CPU", name, self.now_ns, lasts_ns, THREAD, self.number))
        self.now_ns += lasts_ns
        return self.number

    def replay(self, n_nodes: int) -> None:
        """Launch a graph of ``n_nodes`` kernels."""
        self.launch(called="cudaGraphLaunch", n=n_nodes)

    def launch(
        self, name: str = "kernel", lasts_ns: int = 5_000, *, called: str = "", n: int = 1
    ) -> None:
        """Launch ``n`` pieces of work with one call."""
        self.n_launches += 1
        usual = {"Memcpy": "cudaMemcpyAsync", "Memset": "cudaMemsetAsync"}
        number = self.call(called or usual.get(name[:6], "cudaLaunchKernel"))
        if self.n_launches in self.hide:
            self.events.pop()
        self.free_ns = max(self.free_ns, self.now_ns + 1_000)
        for _ in range(n):
            if self.n_launches not in self.lose:
                self.add(Event("CUDA", name, self.free_ns, lasts_ns, STREAM, number))
            self.free_ns += lasts_ns + 500

    def sleep(self, n_cycles: int) -> None:
        """Replace ``torch.cuda._sleep``."""
        self.sleeps.append(n_cycles)
        self.launch("spin_kernel", 1_000)

    def synchronize(self) -> None:
        """Wait for the device."""
        self.now_ns = max(self.now_ns, self.free_ns)
        self.call("cudaDeviceSynchronize", 3_000)

    def event(self, **_options: object) -> "Mark":
        """Replace ``torch.cuda.Event``."""
        return Mark(self)

    def add(self, event: Event) -> None:
        """Record an event, if a session is open and not blind."""
        if self.is_open and not self.is_blind:
            self.events.append(event)


@dataclass
class Mark:
    """A CUDA event, of which the profiler records only the host's calls."""

    gpu: FakeGpu

    def record(self, _stream: object = None) -> None:
        """Enqueue it."""
        self.gpu.call("cudaEventRecordWithFlags", 500)

    def query(self) -> bool:
        """Return whether the device has reached it."""
        self.gpu.call("cudaEventQuery", 500)
        return self.gpu.is_done

    def elapsed_time(self, _end: "Mark") -> float:
        """Return any number: the tests do not use it."""
        return 1.0


def install(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    """Replace torch's GPU and profiler by a fake, and choose it as the GPU in use."""
    gpu = FakeGpu()

    class Profile:
        """Replaces ``torch.autograd.profiler.profile``."""

        def __init__(self, *, use_cpu: bool, use_device: str, use_kineto: bool) -> None:
            assert (use_cpu, use_device, use_kineto) == (False, "cuda", True)
            self.use_device: str | None = use_device

        def __enter__(self) -> None:
            gpu.is_open = True
            gpu.events.clear()
            gpu.add(Event("CPU", "Activity Buffer Request", gpu.now_ns, 2_500_000, 0, 0, place=-1))

        def __exit__(self, *_error: object) -> None:
            if self.use_device is not None:
                gpu.synchronize()
            gpu.is_open = False

        @property
        def kineto_results(self) -> Any:  # noqa: ANN401 # a private class of torch's
            """Return an object with the method ``events``."""
            return SimpleNamespace(events=lambda: list(gpu.events))

    activity = torch.profiler.ProfilerActivity
    stand_ins: list[tuple[object, str, Callable[..., Any]]] = [
        (torch.autograd.profiler, "profile", Profile),
        (torch.profiler, "supported_activities", lambda: {activity.CPU, activity.CUDA}),
        (torch.cuda, "synchronize", gpu.synchronize),
        (torch.cuda, "_sleep", gpu.sleep),
        (torch.cuda, "current_stream", lambda: gpu),
        (torch.cuda, "Event", gpu.event),
        (_kineto.time, "time_ns", gpu.time_ns),
        (_kineto, "detach", lambda: None),
    ]
    for owner, name, stand_in in stand_ins:
        monkeypatch.setattr(owner, name, stand_in)
    monkeypatch.setattr(_kineto, "_complaints", [])
    _notebook_session.session.device = Device("NVIDIA H200", "measured", "a test made it")
    return gpu
