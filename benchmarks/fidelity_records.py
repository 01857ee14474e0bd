"""What a device did, by the records of its driver or, if it is virtual, of its simulation."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from gpulab.virtual.session import VirtualGpu

Work = Callable[[], object]

KINDS = ("kernel", "memcpy", "memset")
_NAME_LENGTH = 60
_NS_PER_US = 1e3


@dataclass(frozen=True, slots=True)
class Record:
    """One thing that the device did, as its driver (or the simulation) wrote it down.

    Attributes
    ----------
    kind
        ``"kernel"``, ``"memcpy"`` or ``"memset"``.
    """

    kind: str
    name: str
    start_ns: int
    end_ns: int

    @property
    def duration_us(self) -> float:
        """Duration in microseconds."""
        return (self.end_ns - self.start_ns) / _NS_PER_US


def virtual_kernels(gpu: "VirtualGpu") -> list[Record]:
    """Return the kernels and copies that a virtual GPU has finished, by start."""
    from gpulab.virtual.core.task import Kind

    kinds = {Kind.KERNEL: "kernel", Kind.COPY_IN: "memcpy", Kind.COPY_OUT: "memcpy"}
    found = [
        Record(kinds[task.kind], task.name, task.start_ns, task.end_ns)
        for task in gpu.machine.gpus[0].device.records()
        if task.kind in kinds and task.start_ns is not None and task.end_ns is not None
    ]
    return sorted(found, key=lambda record: record.start_ns)


def profiled(work: Work) -> list[Record]:
    """Run work under the profiler and return CUPTI's records."""
    torch.cuda.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some versions announce that they clear old events
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            work()
            torch.cuda.synchronize()
    # Its parsed events take a hundred times longer to make than to read.
    events: Any = seen.profiler.kineto_results.events()
    found = [
        Record(
            _kind(event.name()),
            event.name(),
            event.start_ns(),
            event.start_ns() + event.duration_ns(),
        )
        for event in events
        if event.device_type().name == "CUDA" and not _is_annotation(event)
    ]
    return sorted(found, key=lambda record: record.start_ns)


def _kind(name: str) -> str:
    return {"Memcpy": "memcpy", "Memset": "memset"}.get(name[:6], "kernel")


def _is_annotation(event: Any) -> bool:  # noqa: ANN401 # the profiler's class is private
    """Optimizers name their step, and the profiler then shows that name on the device too."""
    marked = getattr(event, "is_user_annotation", lambda: False)()
    return bool(marked) or event.name().startswith(("Optimizer.", "ProfilerStep"))


def short_name(name: str) -> str:
    """Return a kernel's name without what C++ puts round it."""
    for noise in ("void ", "at::native::", "(anonymous namespace)::", "at::", "cuda::"):
        name = name.replace(noise, "")
    return name[:_NAME_LENGTH]


def busy_us(records: list[Record]) -> float:
    """Return the durations of some records, added up, in microseconds."""
    return round(sum(record.duration_us for record in records), 3)
