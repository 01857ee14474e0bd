"""Run programs, and read the host's clock and the GPU's events between their steps."""

import gc
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

import torch

import gpulab
from benchmarks.laws.programs import PRELUDE, Program

# Two ticks of the virtual GPU's events, because half a tick is rounded to the even one.
_TICKS_NS = 64
_REST_S = 1e-3
# More than an L2 cache holds, and on the virtual GPU more than what has values.
_FLUSH_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that runs programs.

    Attributes
    ----------
    new
        Returns the context of a new GPU; with options of ``gpulab.virtual_gpu``.
    constant_s
        How far a time may exceed its bound: what waking up, recording events and reading clocks
        take together.
    noise
        How far it may exceed it besides, as a part of the bound.
    outlives_failed_captures
        Whether random numbers still work after the capture of a graph has failed.
    """

    new: Callable[..., AbstractContextManager[Any]]
    constant_s: float
    noise: float
    outlives_failed_captures: bool = False

    def exceeds(self, time_s: float, bound_s: float) -> bool:
        """Return whether ``time_s`` is above ``bound_s`` by more than the margin."""
        return time_s > bound_s * (1 + self.noise) + self.constant_s


# A wait for the device takes 7.2 us with the wake-up, and an event on an idle device 5.5 us.
VIRTUAL = Gpu(
    lambda **options: gpulab.virtual_gpu("H200", **options),
    20e-6,
    0.0,
    outlives_failed_captures=True,
)
CUDA = Gpu(nullcontext, 300e-6, 0.1)


class Reading(NamedTuple):
    """The readings around one step, since the program's start.

    Attributes
    ----------
    begin_ns, end_ns
        The host's clock before and after it.
    device_ms
        The times of events that were recorded before it, on the default stream and on the two
        side streams.
    """

    begin_ns: int
    end_ns: int
    device_ms: tuple[float, ...]


class ProgramError(Exception):
    """A step of a program raised an error that the program does not catch."""


class Session:
    """Runs programs on the GPU in use; their streams and their event stay the same.

    Make one with :func:`session`.
    """

    def __init__(self) -> None:
        self._prelude: dict[str, Any] = {}
        run_step(PRELUDE, self._prelude)
        self._streams = [torch.cuda.default_stream(), *self._prelude["side"]]
        self._flush = torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device="cuda")

    def run(self, program: Program) -> list[Reading]:
        """Run a program, wait for the GPU, and return the readings around its steps.

        The last reading is of its end, which waits for nothing.

        Raises
        ------
        ProgramError
            If a step raises an error.
        """
        names = self.names()
        host: list[tuple[int, int]] = []
        device: list[list[torch.cuda.Event]] = []
        start_ns = self._begin()
        base = recorded()
        for text in (*(step.text for step in program.steps), ""):
            device.append([recorded(stream) for stream in self._streams])
            begin_ns = time.perf_counter_ns()
            run_step(text, names)
            host.append((begin_ns - start_ns, time.perf_counter_ns() - start_ns))
        torch.cuda.synchronize()
        return [
            Reading(*clock, tuple(base.elapsed_time(event) for event in events))
            for clock, events in zip(host, device, strict=True)
        ]

    def names(self) -> dict[str, Any]:
        """Return the names that a program has at its start, and drop those of earlier programs."""
        # What they left behind in reference cycles would keep memory of the GPU.
        gc.collect()
        return dict(self._prelude)

    def _begin(self) -> int:
        """Prepare the GPU so that equal programs take as long, and return the host's time."""
        # Random numbers decide how many elements a mask selects.
        torch.manual_seed(0)
        # This flushes the cache of the GPU. And the host is quicker with operators that it has run
        # lately, so before each program these are the last ones.
        flush = self._flush
        flush.zero_(), flush.fill_(1), flush.add_(1), flush.mul_(1), flush.neg_()
        rest()
        return time.perf_counter_ns()


def recorded(stream: torch.cuda.Stream | None = None) -> torch.cuda.Event:
    """Record a new event with a time, on the current stream if none is given."""
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call] # torch's is untyped
    event.record(stream)
    return event


def rest() -> None:
    """Wait for the GPU, and let it rest for a moment."""
    torch.cuda.synchronize()
    # Events count in ticks, so programs that begin at the same part of a tick can be compared.
    time.sleep(_REST_S + -time.perf_counter_ns() % _TICKS_NS / 1e9)


def run_step(text: str, names: dict[str, Any]) -> None:
    """Run the source of a step with the program's names.

    Raises
    ------
    ProgramError
        If it raises an error.
    """
    try:
        exec(_compiled(text), names)  # noqa: S102 # a program is text, which can be printed
    except Exception as error:
        raise ProgramError(f"{text!r} raised {type(error).__name__}: {error}") from error


@cache
def _compiled(text: str) -> CodeType:
    return compile(text, "step", "exec")


@contextmanager
def session(gpu: AbstractContextManager[Any]) -> Iterator[Session]:
    """Use ``gpu``, and yield a session in which the garbage collector runs only when it is asked.

    When it runs by itself depends on all that the process has done, so it would make two equal
    runs differ.
    """
    # Frozen objects are not looked at, so that a collection takes microseconds.
    gc.freeze()
    gc.disable()
    try:
        with gpu, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield Session()
    finally:
        gc.enable()
        gc.unfreeze()
