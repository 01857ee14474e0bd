"""Case 05: a benchmark with its events in one stream and the kernel in another."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import filterfalse
from math import isnan
from typing import Any
from unittest.mock import patch

from gpulab.core.interrupts import contextmanager
from gpulab.core.torch_private import spin
from gpulab.core.units import format_time
from gpulab.exercises._claims import Claim
from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Choice, Diagnosis, HiddenWork, Mended, MendedTrial

_BACKLOG_S = 2e-3
_FAR_LESS = 0.3
_FLOOR_S = 15e-6  # on an idle stream, the time between two events also contains a launch


@dataclass(frozen=True, slots=True)
class OwnStreamKernel:
    """A kernel of a library, which launches it into its own stream, of a length in cycles."""

    stream: Any
    n_cycles: int

    def launch(self) -> None:
        """Put the kernel into the library's stream, also if another stream is current."""
        import torch

        with torch.cuda.stream(self.stream):
            spin(self.n_cycles)


def library_kernel(length_ms: float = 0.25) -> OwnStreamKernel:
    """Return a kernel in its own stream that sleeps about ``length_ms`` at the boost clock."""
    import torch

    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's gap
    return OwnStreamKernel(stream, round(length_ms * 1_980_000))


def _busy_kernel() -> OwnStreamKernel:
    """Return a kernel whose stream still has other work to do."""
    kernel = library_kernel(0.1)
    OwnStreamKernel(kernel.stream, round(_BACKLOG_S * 1.98e9)).launch()
    return kernel


@contextmanager
def _without_pauses() -> Iterator[None]:
    """Let ``time.sleep`` return at once: only a wait makes sure that the other work is done."""
    with patch.object(time, "sleep", lambda _seconds: None):
        yield


def _right(op: OwnStreamKernel) -> float:
    return op.n_cycles / 1.98e9  # a spinning kernel draws little power, so the clock stays highest


def _is_charged_for_other_work(trial: MendedTrial) -> bool:
    """Return whether a program also times the work that was there before."""
    *idle, busy = trial.ratios
    return busy > 2 * max(filterfalse(isnan, idle), default=0.0)


EXERCISES = (
    Exercise(
        "case-05.flaw",
        "Why does the program read almost nothing?",
        Choice(
            right="a",
            why="An event is a mark in one stream. Both marks are in the current stream, which "
            "is empty, and the kernel runs in the library's stream at its own time.",
            wrong={
                "b": Diagnosis(
                    "it-does-wait",
                    "end.synchronize() does wait: for the event, which is in an empty stream. So "
                    "it returns at once, and rightly so.",
                ),
                "c": Diagnosis(
                    "it-does-run",
                    "The kernel runs, as the timeline shows. Where are the two events?",
                ),
                "d": Diagnosis(
                    "resolution",
                    "Events resolve about half a microsecond. The kernel takes hundreds.",
                ),
            },
        ),
        hints=(
            "Draw the two streams as two lines, and mark where each event is.",
            "start.record() without an argument records in the current stream.",
        ),
        choices={
            "a": "the events are in another stream than the kernel",
            "b": "the host does not wait for the end event",
            "c": "the library does not run the kernel at all",
            "d": "the kernel is shorter than events can resolve",
        },
    ),
    Exercise(
        "case-05.mend",
        "Mend the program: write mended(op). op.launch() puts the kernel into op.stream. It is "
        "tried with a short kernel, a long one, and one whose stream still has other work in it.",
        Mended(
            signature="mended(op)",
            returns="seconds of the kernel that op.launch() launches",
            why="For a short kernel, a long one and one after other work, you return the time of "
            "the kernel alone.",
            works=(
                HiddenWork("a short kernel", lambda: (library_kernel(0.06),)),
                HiddenWork("a long kernel", lambda: (library_kernel(1.0),)),
                HiddenWork(
                    "a kernel after other work in its stream",
                    lambda: (_busy_kernel(),),
                    _without_pauses,
                ),
            ),
            right=_right,
            mistakes=(
                (
                    # Not by the first work: two events in an idle stream read a third of its time.
                    lambda trial: all(ratio < _FAR_LESS for ratio in trial.ratios[1:]),
                    Diagnosis(
                        "other-stream",
                        "Your clock still stops before the kernel has run. Record both events in "
                        "the stream of the kernel: start.record(op.stream).",
                    ),
                ),
                (
                    _is_charged_for_other_work,
                    Diagnosis(
                        "backlog",
                        "Your clock starts while other work is still in the library's stream. "
                        "Wait for that work first, or record both events in this stream.",
                    ),
                ),
            ),
            errors=(
                (
                    "Both events must be completed",
                    Diagnosis(
                        "pause",
                        "The GPU has not passed the second event: nothing waits for it, and a "
                        "pause may be too short. Let the host wait: end.synchronize().",
                    ),
                ),
            ),
            show=format_time,
            floor=_FLOOR_S,
        ),
        hints=(
            "Event.record takes a stream.",
            "start.record(op.stream), op.launch(), end.record(op.stream), end.synchronize().",
        ),
    ),
)

CLAIMS = (
    Claim(
        "case-05.too-little",
        "The posted program reads less than a tenth of the kernel's time",
        unit="times",
        holds=lambda ratio: ratio < 0.1,  # noqa: PLR2004  # as the sentence says
        because="the launch takes long here, compared with the kernel",
    ),
)
