"""A bench that runs a double buffer: which values, which hazards, how much overlap."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

import torch

from gpulab import device
from gpulab.exercises._gpu_work import stopwatch_s
from gpulab.happens_before import Hazard
from gpulab.provenance import device_label
from gpulab.sanitizer import hazards
from gpulab.torch_private import spin
from gpulab.tracing import Timeline, timeline
from gpulab.units import counted, format_time

N_STEPS = 40
# 8 MiB a batch, 0.15 ms over a link of 55 GB/s; the host writes only its head, in microseconds.
N_ELEMENTS, N_HEAD = 1 << 20, 1 << 12
_HEAD_START_CYCLES = 20_000_000  # 10 ms at 1,980 MHz; Python launches the steps in a fifth of it
COMPUTE_CYCLES = 500_000

PipelineFunction = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Slot:
    """One of the two places of a double buffer.

    Attributes
    ----------
    pinned
        The host's buffer, in pinned memory.
    on_device
        The buffer on the GPU, of the same size.
    copied, computed
        Events that are not recorded yet; until then, waiting for one returns at once.
    """

    pinned: torch.Tensor
    on_device: torch.Tensor
    copied: torch.cuda.Event
    computed: torch.cuda.Event


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """What one run of a pipeline gave.

    Attributes
    ----------
    n_steps, n_wrong
        Steps, and those that computed on other data than their own.
    n_filled, n_computed
        How often the pipeline called ``fill`` and ``compute``.
    duration_s
        From an idle GPU to the end of all work, by the host's clock.
    copies_s, computes_s
        What all copies take with nothing beside them, and all computing.
    error
        What the pipeline raised, or None.
    n_device_waits, n_queue_waits
        How often it called ``torch.cuda.synchronize``, which waits for everything, and how often
        it waited for all that stands in one queue: ``stream.synchronize``, ``wait_stream``.
    place
        Whose times these are.
    """

    n_steps: int
    n_wrong: int
    n_filled: int
    n_computed: int
    duration_s: float
    copies_s: float
    computes_s: float
    error: Exception | None
    n_device_waits: int
    n_queue_waits: int
    place: str

    @property
    def possible_s(self) -> float:
        """Seconds that perfect overlap saves: the shorter of the two, but for its first step."""
        return min(self.copies_s, self.computes_s) * (1 - 1 / self.n_steps)

    @property
    def hidden_s(self) -> float:
        """Seconds that overlap did save, from 0 to what is possible; also if values are wrong."""
        saved_s = self.copies_s + self.computes_s - self.duration_s
        return min(max(saved_s, 0.0), self.possible_s)

    @property
    def overlap(self) -> float:
        """Share of the possible saving that was reached, from 0 to 1."""
        return self.hidden_s / self.possible_s

    def __str__(self) -> str:
        wrong = f"{self.n_wrong} of {counted(self.n_steps, 'step')} computed on wrong data"
        shares = f"overlap {100 * self.overlap:.0f} % of what is possible"
        return f"{wrong}; {format_time(self.duration_s)}, {shares} ({self.place})"

    __repr__ = __str__


def run(pipeline: PipelineFunction, n_steps: int = N_STEPS) -> PipelineRun:
    """Run a pipeline on the GPU in use, and compare every result with the one it should give.

    Parameters
    ----------
    pipeline
        Called as ``pipeline(slots, copying, fill, compute, n_steps)``: two slots, a side stream
        for the copies, ``fill(pinned, step)`` by which the host writes a batch, and
        ``compute(on_device, step)``, which launches the work on the current stream.
    n_steps
        Number of batches.

    Returns
    -------
    PipelineRun
        An error of the pipeline is in it, not raised.
    """
    with device.active():
        bench = _Bench(n_steps)
        copies_s, computes_s = bench.apart_s()
        with _wide_waits(type(bench.copying)) as waits:
            duration_s = stopwatch_s(partial(bench.call, pipeline))
        in_use = device.current()
        return PipelineRun(
            n_steps,
            bench.n_wrong(),
            len(bench.filled),
            len(bench.computed),
            duration_s,
            copies_s,
            computes_s,
            bench.error,
            waits["device"] - 2,  # the stopwatch waits before and after
            waits["queue"],
            device_label(in_use.name, in_use.source),
        )


def timeline_of(pipeline: PipelineFunction, n_steps: int = 4) -> Timeline:
    """Return the timeline of the second of two runs of a pipeline.

    Raises
    ------
    Exception
        What the pipeline raises.
    """
    with device.active():
        bench = _Bench(n_steps)
        return timeline(lambda: bench.run(pipeline))


def hazards_of(pipeline: PipelineFunction, n_steps: int = 8) -> tuple[Hazard, ...]:
    """Return the hazards of a pipeline: pairs of accesses in no order."""
    with device.active():
        bench = _Bench(n_steps)
        with hazards() as found:
            bench.call(pipeline)
            torch.cuda.synchronize()
    return found.found


class _Bench:
    """Two slots, a stream for the copies, and work whose results tell which data it saw."""

    def __init__(self, n_steps: int) -> None:
        self.n_steps = n_steps
        self.slots = [_slot() for _ in range(2)]
        self.copying = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's gap
        self.results = torch.zeros(n_steps, dtype=torch.float64, device="cuda")
        self.filled: list[int] = []
        self.computed: list[int] = []
        self.error: Exception | None = None
        torch.cuda.synchronize()

    def fill(self, pinned: torch.Tensor, step: int) -> None:
        self.filled.append(step)
        pinned[:N_HEAD] = step + 1

    def compute(self, on_device: torch.Tensor, step: int) -> None:
        self.computed.append(step)
        spin(COMPUTE_CYCLES)
        self.results[step] = on_device[:N_HEAD].mean()

    def run(self, pipeline: PipelineFunction) -> None:
        pipeline(self.slots, self.copying, self.fill, self.compute, self.n_steps)

    def call(self, pipeline: PipelineFunction) -> None:
        try:
            self.run(pipeline)
        except Exception as error:  # noqa: BLE001  # a learner's function may raise anything
            self.error = error

    def apart_s(self) -> tuple[float, float]:
        """Time all copies with nothing beside them, and all computing; then begin anew."""
        slot = self.slots[0]

        def copy(_step: int) -> None:
            slot.on_device.copy_(slot.pinned, non_blocking=True)

        def compute(step: int) -> None:
            self.compute(slot.on_device, step)

        for step in range(2):  # the first calls are slow
            copy(step)
            compute(step)
        copies_s, computes_s = (self.on_device_s(work) for work in (copy, compute))
        self.results.zero_()
        torch.cuda.synchronize()
        self.computed.clear()
        return copies_s, computes_s

    def on_device_s(self, work: Callable[[int], None]) -> float:
        """Time each step's work between two events, with the host ahead: no launch is in it."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]  # torch's gap
        spin(_HEAD_START_CYCLES)
        start.record()
        for step in range(self.n_steps):
            work(step)
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3

    def n_wrong(self) -> int:
        expected = torch.arange(1.0, self.n_steps + 1, dtype=torch.float64)
        return int((self.results.cpu() != expected).sum())


@contextmanager
def _wide_waits(stream_type: Any) -> Iterator[Counter[str]]:  # noqa: ANN401  # a class of torch, or its stand-in
    """Count the calls that wait for a whole device or a whole queue; the methods are put back."""
    counted: Counter[str] = Counter()
    places = (
        (torch.cuda, "synchronize", "device"),
        (stream_type, "synchronize", "queue"),
        (stream_type, "wait_stream", "queue"),
    )
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    for (owner, name, kind), (*_, original) in zip(places, originals, strict=True):
        setattr(owner, name, _counting(original, counted, kind))
    try:
        yield counted
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def _counting(
    original: Callable[..., object], counted: Counter[str], kind: str
) -> Callable[..., object]:
    @wraps(original)
    def counting(*given: object, **named: object) -> object:
        counted[kind] += 1
        return original(*given, **named)

    return counting


def _slot() -> Slot:
    pinned = torch.zeros(N_ELEMENTS, dtype=torch.float64).pin_memory()
    on_device = torch.zeros(N_ELEMENTS, dtype=torch.float64, device="cuda")
    copied, computed = (torch.cuda.Event() for _ in range(2))  # type: ignore[no-untyped-call]  # torch's gap
    return Slot(pinned, on_device, copied, computed)
