"""Case 04: a double buffer that is fast and wrong, because nothing orders copies and steps."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gpulab.core.units import format_time
from gpulab.exercises._claims import Claim
from gpulab.exercises._exercise import Exercise
from gpulab.exercises._gpu_work import spinning
from gpulab.exercises.answers import ANY_RACE, Diagnosis, HiddenWork, Letters, Mended

# A batch has 8 MiB, so that its copy takes time; the step reads only its head, so that the time of
# the step is that of the spinning kernel.
_N_ELEMENTS, _N_HEAD = 1 << 20, 1 << 10
_READ_BEFORE, _OVERWRITTEN = "read before the write is done", "write while it is read"


def pinned_batches(n_batches: int) -> list[Any]:
    """Return batches in pinned memory; the first numbers of batch k are k + 1."""
    import torch

    made = [torch.zeros(_N_ELEMENTS, dtype=torch.float64).pin_memory() for _ in range(n_batches)]
    for number, batch in enumerate(made):
        batch[:_N_HEAD] = number + 1
    return made


def training_step(buffer: Any, length_ms: float = 0.25) -> Any:  # noqa: ANN401  # tensors
    """Run a kernel that takes as long as a training step; the result shows which batch it read."""
    spinning(length_ms)()
    return buffer[:_N_HEAD].mean()


def _right(batches: Sequence[Any], step: Callable[[Any], Any]) -> tuple[Any, Any]:
    import torch

    buffers = [torch.empty_like(batches[0], device="cuda") for _ in range(2)]
    done = [torch.cuda.Event() for _ in range(2)]  # type: ignore[no-untyped-call]  # torch's gap
    copying, results = torch.cuda.Stream(), []  # type: ignore[no-untyped-call]  # torch's gap
    torch.cuda.synchronize()
    start = time.perf_counter()
    for number, batch in enumerate(batches):
        slot = number % 2
        copying.wait_event(done[slot])
        with torch.cuda.stream(copying):
            buffers[slot].copy_(batch, non_blocking=True)
        torch.cuda.current_stream().wait_stream(copying)
        results.append(step(buffers[slot]))
        done[slot].record()
    torch.cuda.synchronize()
    return time.perf_counter() - start, torch.stack(results)


EXERCISES = (
    Exercise(
        "case-04.flaw",
        "Which waits are missing?",
        Letters(
            right=frozenset("ad"),
            why="The step must wait until its batch has arrived, and the copy must wait until "
            "the step that reads the buffer is done. Both are waits of one stream for another.",
            wrongly_in={
                "b": Diagnosis(
                    "host-does-not-write",
                    "The host never writes to these pinned batches again, so it may run ahead.",
                ),
                "c": Diagnosis(
                    "copies-are-in-order",
                    "All copies are in one stream, so they are in order already.",
                ),
            },
            missing={
                "a": Diagnosis(
                    "arrival",
                    "The copies are in a stream of their own. What makes the step wait for its "
                    "batch?",
                ),
                "d": Diagnosis(
                    "overwritten",
                    "Batch k + 2 goes into the buffer of batch k. What if step k still reads it?",
                ),
            },
            all_chosen=Diagnosis(
                "all", "With all four it would be right and slow. Which two does it need?"
            ),
            none_chosen=Diagnosis("none", "The results are wrong, so an order is missing."),
        ),
        hints=(
            "Follow one buffer: who writes to it, who reads it, and what orders the two?",
            "There are two orders: write before read, and read before the next write.",
        ),
        choices={
            "a": "a step waits for the copy of its batch",
            "b": "the host waits for each copy",
            "c": "a copy waits for the copy before it",
            "d": "a copy waits for the last step that read its buffer",
        },
    ),
    Exercise(
        "case-04.mend",
        "Mend the program: write mended(batches, step). Every step must read its own batch, and "
        "the copies must still overlap with the steps. It is tried with other batches and steps.",
        Mended(
            signature="mended(batches, step)",
            returns="a pair: the seconds for all batches, and the results as one tensor",
            why="Every step read its own batch, gpulab.hazards() finds no race, and the copies "
            "still overlap with the steps. This is the number to publish.",
            works=tuple(
                HiddenWork(name, make)
                for name, make in (
                    ("8 batches and a longer step", lambda: (pinned_batches(8), training_step)),
                    (
                        "6 batches and a shorter step",
                        lambda: (pinned_batches(6), partial(training_step, length_ms=0.12)),
                    ),
                )
            ),
            right=_right,
            mistakes=(
                (
                    lambda trial: (
                        trial.part_is_right(1)
                        and trial.is_slower_in(0, 1.15)
                        and not trial.is_in_unit(1e3)
                    ),
                    Diagnosis(
                        "no-overlap",
                        "All results are right, but nothing overlaps: it takes as long as one "
                        "after the other. Give the next copy another buffer, and let it wait "
                        "only for the step that read this buffer before.",
                    ),
                ),
                (
                    lambda trial: trial.part_is_right(1) and not trial.is_slower_in(0, 1),
                    Diagnosis(
                        "stops-early",
                        "All results are right, but the clock stops before the last step is done: "
                        "wait, then read the clock.",
                    ),
                ),
            ),
            hidden_mistakes=(
                (
                    lambda trial: trial.has_race(_READ_BEFORE) and trial.has_race(_OVERWRITTEN),
                    Diagnosis(
                        "both-races",
                        "Both orders are missing, and a pause is none: steps may read buffers "
                        "before their batch has arrived, and copies may overwrite buffers that a "
                        "step still reads.",
                    ),
                ),
                (
                    lambda trial: trial.has_race(_READ_BEFORE),
                    Diagnosis(
                        "not-arrived",
                        "A step may read its buffer before the copy is done. Let the current "
                        "stream wait for the stream of the copies.",
                    ),
                ),
                (
                    lambda trial: trial.has_race(_OVERWRITTEN),
                    Diagnosis(
                        "overwritten",
                        "A copy may overwrite a buffer that a step still reads. Record an event "
                        "after each step, and let the copy into the same buffer wait for it.",
                    ),
                ),
                ANY_RACE,
            ),
            show=lambda value: f"{format_time(value[0])} and the results {value[1].tolist()}",
            # The host's clock also reads launches. Without overlap the time is 1.5 times as long.
            tolerance=0.15,
            floor=0.12e-3,  # with half of the overlap the shorter run takes so much longer
        ),
        hints=(
            "torch.cuda.current_stream().wait_stream(copying) orders the step after the copy.",
            (
                "done[slot].record() after the step, copying.wait_event(done[slot]) before the "
                "copy. Waiting for an event that was never recorded returns at once."
            ),
        ),
    ),
)

CLAIMS = (
    Claim(
        "case-04.wrong-results",
        "The posted program computes on wrong data",
        unit="wrong steps",
        holds=lambda n_wrong: n_wrong > 0,
        because="the race may go well by chance, which proves nothing",
    ),
)
