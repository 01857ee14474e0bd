"""A test bench for double buffers: it checks values, finds data races and measures overlap."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch

from gpulab import device
from gpulab.core.torch_private import spin
from gpulab.core.units import counted, format_time
from gpulab.exercises._gpu_work import device_s, stopwatch_s
from gpulab.gpus.provenance import device_label
from gpulab.tracing.trials import Trial, WatchedWork, tried

_N_STEPS = 40
_N_STEPS_FOR_RACES = 8  # each of the two slots is used again three times
# A batch has 8 MiB, which take 0.15 ms over a link of 55 GB/s. The host writes only the head of a
# batch: filling all of it would take longer than the copy and hide the overlap.
_N_ELEMENTS, _N_HEAD = 1 << 20, 1 << 12
_COMPUTE_CYCLES = 500_000

PipelineFunction = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Slot:
    """One of the two slots of a double buffer: a pinned buffer, and one of its size on the GPU.

    Its two events were not recorded yet. Waiting for such an event returns at once.
    """

    pinned: torch.Tensor
    on_device: torch.Tensor
    copied: torch.cuda.Event
    computed: torch.cuda.Event


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """The result of one run of a pipeline: of its steps, how many computed on wrong data.

    ``n_filled`` and ``n_computed`` count its calls of ``fill`` and ``compute``. ``duration_s``
    goes from an idle GPU to the end of all work, by the host's clock; ``copies_s`` and
    ``computes_s`` are those of all copies and all computing alone. The trial has what the pipeline
    raised and did, and ``place`` is name and source of the GPU.
    """

    n_steps: int
    n_wrong: int
    n_filled: int
    n_computed: int
    duration_s: float
    copies_s: float
    computes_s: float
    trial: Trial
    place: str

    @property
    def n_device_waits(self) -> int:
        """How often it waited for the whole device."""
        return self.trial.asked["synchronize"]

    @property
    def n_queue_waits(self) -> int:
        """How often it, or a stream of it, waited for a whole stream."""
        return self.trial.asked["Stream.synchronize"] + self.trial.asked["Stream.wait_stream"]

    @property
    def possible_s(self) -> float:
        """Seconds that perfect overlap saves: the shorter part, except for its first step."""
        return min(self.copies_s, self.computes_s) * (1 - 1 / self.n_steps)

    @property
    def hidden_s(self) -> float:
        """Seconds that overlap saved, from 0 to what is possible, even if values are wrong."""
        saved_s = self.copies_s + self.computes_s - self.duration_s
        return min(max(saved_s, 0.0), self.possible_s)

    @property
    def overlap(self) -> float:
        """Share of the possible saving that the pipeline reached, from 0 to 1."""
        return self.hidden_s / self.possible_s

    @property
    def words(self) -> str:
        """How many steps were wrong, the time and the overlap, without the place."""
        wrong = f"{self.n_wrong} of {counted(self.n_steps, 'step')} computed on wrong data"
        shares = f"overlap {100 * self.overlap:.0f} % of what is possible"
        return f"{wrong}; {format_time(self.duration_s)}, {shares}"

    def __str__(self) -> str:
        return f"{self.words} ({self.place})"

    __repr__ = __str__


def run(pipeline: PipelineFunction, n_steps: int = _N_STEPS) -> PipelineRun:
    """Run a pipeline on the GPU in use, check its values and measure its overlap.

    It is called as ``pipeline(slots, copying, fill, compute, n_steps)``, with two slots, a side
    stream for the copies, ``fill(pinned, step)``, which lets the host write a batch, and
    ``compute(on_device, step)``, which launches work on the current stream. If it raised an error,
    the result contains it.

    The copies of this one block the host, so nothing overlaps:

    >>> import gpulab
    >>> def pipeline(slots, copying, fill, compute, n_steps):
    ...     for step in range(n_steps):
    ...         fill(slots[0].pinned, step)
    ...         slots[0].on_device.copy_(slots[0].pinned)
    ...         compute(slots[0].on_device, step)
    >>> with gpulab.virtual_gpu("H200"):
    ...     finished = run(pipeline, n_steps=2)
    >>> finished.n_wrong, finished.overlap
    (0, 0.0)
    """
    return _run(pipeline, n_steps, races=False)


def run_for_races(pipeline: PipelineFunction) -> PipelineRun:
    """Run a pipeline as `run` does, for few steps, with its data races in the trial.

    Looking for races slows each launch, so its ``duration_s`` and ``overlap`` are of no use.
    """
    return _run(pipeline, _N_STEPS_FOR_RACES, races=True)


def _run(pipeline: PipelineFunction, n_steps: int, *, races: bool) -> PipelineRun:
    with device.active():
        bench = _Bench(n_steps)
        copies_s, computes_s = bench.apart_s()
        trials: list[Trial] = []
        fill, compute = bench.works()
        duration_s = stopwatch_s(
            lambda: trials.append(tried(bench.run, pipeline, fill, compute, races=races))
        )
        in_use = device.current()
        return PipelineRun(
            n_steps,
            bench.n_wrong(),
            sum(call.work is fill for call in trials[0].calls),
            sum(call.work is compute for call in trials[0].calls),
            duration_s,
            copies_s,
            computes_s,
            # Not the calls of the works: they would keep the tensors as long as the result.
            replace(trials[0], calls=()),
            device_label(in_use.name, in_use.source),
        )


class _Bench:
    """Two slots, a stream for the copies, and work whose results show which batch it read."""

    def __init__(self, n_steps: int) -> None:
        self.n_steps = n_steps
        self.slots = [_slot() for _ in range(2)]
        self.copying = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's gap
        # float64, so that the mean of equal whole numbers is exact and says which batch was read.
        self.results = torch.zeros(n_steps, dtype=torch.float64, device="cuda")
        torch.cuda.synchronize()

    def fill(self, pinned: torch.Tensor, step: int) -> None:
        pinned[:_N_HEAD] = step + 1

    def compute(self, on_device: torch.Tensor, step: int) -> None:
        spin(_COMPUTE_CYCLES)
        self.results[step] = on_device[:_N_HEAD].mean()

    def run(self, pipeline: PipelineFunction, fill: WatchedWork, compute: WatchedWork) -> None:
        pipeline(self.slots, self.copying, fill, compute, self.n_steps)

    # New ones for each trial: the bench must not refer to what refers to it, or its tensors would
    # stay until the garbage collector runs.
    def works(self) -> tuple[WatchedWork, WatchedWork]:
        return WatchedWork(self.fill), WatchedWork(self.compute)

    def apart_s(self) -> tuple[float, float]:
        """Return the seconds of all copies alone and of all computing alone; then reset."""
        slot = self.slots[0]
        copy = partial(slot.on_device.copy_, slot.pinned, non_blocking=True)
        compute = partial(self.compute, slot.on_device, 0)
        copies_s, computes_s = (
            self.n_steps * device_s(work, self.n_steps, n_warmup=2) for work in (copy, compute)
        )
        self.results.zero_()
        torch.cuda.synchronize()
        return copies_s, computes_s

    def n_wrong(self) -> int:
        expected = torch.arange(1.0, self.n_steps + 1, dtype=torch.float64)
        return int((self.results.cpu() != expected).sum())


def _slot() -> Slot:
    pinned = torch.zeros(_N_ELEMENTS, dtype=torch.float64).pin_memory()
    on_device = torch.zeros(_N_ELEMENTS, dtype=torch.float64, device="cuda")
    copied, computed = (torch.cuda.Event() for _ in range(2))  # type: ignore[no-untyped-call]  # torch's gap
    return Slot(pinned, on_device, copied, computed)
