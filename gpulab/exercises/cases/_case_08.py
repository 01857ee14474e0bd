"""Case 08: a CPU that wins because only the GPU copies its data, in every step."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpulab.core.units import format_time
from gpulab.exercises._claims import Claim
from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import (
    Choice,
    Diagnosis,
    HiddenWork,
    Mended,
    MendedTrial,
    copies_less,
    like,
)
from gpulab.tracing.trials import WatchedWork

if TYPE_CHECKING:
    from torch import Tensor

StateStep = Callable[["Tensor"], "Tensor"]


def host_data(n: int = 1 << 20) -> "Tensor":
    """Return ``n`` numbers in ordinary host memory."""
    import torch

    return torch.ones(n)


def smooth(x: "Tensor") -> "Tensor":
    """Return the result of one simulation step: the mean of each number and its neighbour."""
    return (x + x.roll(1)) * 0.5


def _stages_s(step: StateStep, data: "Tensor", n_steps: int) -> dict[str, float]:
    """Copy the data in once and out once; return when each stage was over."""
    import torch

    step(data.to("cuda"))  # so that no stage contains the loading of a kernel
    torch.cuda.synchronize()
    at_s = {"begin": time.perf_counter()}
    x = data.to("cuda")
    at_s["copied in"] = time.perf_counter()
    for _ in range(n_steps):
        x = step(x)
    torch.cuda.synchronize()
    at_s["computed"] = time.perf_counter()
    x.cpu()
    at_s["copied out"] = time.perf_counter()
    return at_s


def _timed(first: str, last: str) -> Callable[..., float]:
    """Return a program whose clock runs from the end of one stage to that of another."""

    def program(step: StateStep, data: "Tensor", n_steps: int) -> float:
        at_s = _stages_s(step, data, n_steps)
        return (at_s[last] - at_s[first]) / n_steps

    return program


def as_posted(step: StateStep, data: "Tensor", n_steps: int) -> float:
    """Copy in and out in every step, as the published program does."""
    start = time.perf_counter()
    for _ in range(n_steps):
        data = step(data.to("cuda")).cpu()
    return (time.perf_counter() - start) / n_steps


def one_way(step: StateStep, data: "Tensor", n_steps: int) -> float:
    """Keep the data on the GPU, but copy a result out in every step."""
    start = time.perf_counter()
    x = data.to("cuda")
    for _ in range(n_steps):
        x = step(x)
        x.cpu()
    return (time.perf_counter() - start) / n_steps


_N_STEPS = (20, 10)  # of the hidden works


def _is_of_all_steps(trial: MendedTrial) -> bool:
    # Without a warm-up they take up to a sixth longer: the caches of the host are cold at first.
    shares = (ratio / n for ratio, n in zip(trial.ratios, _N_STEPS, strict=True))
    return all(0.88 < share < 1.3 for share in shares)  # noqa: PLR2004 # of the right time


def _skips_steps(mended: MendedTrial) -> bool:
    """Return whether it calls the step too few times; a graph replays it without a call."""
    return any(
        trial.n_calls < n_steps and not any(call.is_captured for call in trial.calls)
        for trial, n_steps in zip(mended.trials, _N_STEPS, strict=True)
    )


EXERCISES = (
    Exercise(
        "case-08.flaw",
        "What does the GPU do in the posted program that the CPU does not?",
        Choice(
            right="b",
            why="The CPU's data stay where they are. The GPU's data travel in and out in each "
            "step, and the copies take far longer than the step.",
            wrong={
                "a": Diagnosis(
                    "same-step",
                    "Both call the same function on as many numbers. What stands around it?",
                ),
                "c": Diagnosis(
                    "it-waits-anyway",
                    ".cpu() waits for the GPU, and it has to: the result must be there. But it "
                    "also moves the data.",
                ),
                "d": Diagnosis(
                    "launches-are-short",
                    "Three launches take some tens of microseconds. The step in the post takes "
                    "far longer. Look at the timeline.",
                ),
            },
        ),
        hints=(
            "Look at the timeline: what fills it?",
            "How many bytes does a step move over the bus, on the CPU's side and on the GPU's?",
        ),
        choices={
            "a": "it computes more",
            "b": "it copies the data in and out in every step",
            "c": "it waits for the GPU in every step, and nothing else",
            "d": "it launches kernels",
        },
    ),
    Exercise(
        "case-08.mend",
        "Mend the program: write mended(step, data, n_steps). The data are on the host at the "
        "beginning, and the result must be on the host at the end. It is tried with other steps.",
        Mended(
            signature="mended(step, data, n_steps)",
            returns="seconds for each step, with all copies that the whole run needs",
            why="Your time is that of the steps, one copy in and one copy out. This is what a "
            "user of the simulation waits for.",
            works=(
                HiddenWork(
                    "20 steps on 4 MiB",
                    lambda: (WatchedWork(smooth), host_data(), _N_STEPS[0]),
                ),
                HiddenWork(
                    "10 longer steps on 2 MiB",
                    lambda: (
                        WatchedWork(lambda x: smooth(smooth(x))),
                        host_data(1 << 19),
                        _N_STEPS[1],
                    ),
                ),
            ),
            right=_timed("begin", "copied out"),
            mistakes=(
                (
                    like(as_posted),
                    Diagnosis(
                        "copies-in-each-step",
                        "The data still travel in and out in every step. Copy in before the loop "
                        "and out after it.",
                    ),
                ),
                (
                    like(one_way),
                    Diagnosis(
                        "copies-out-in-each-step",
                        "The data stay on the GPU now, but each step still copies its result "
                        "out. Only the last one is needed.",
                    ),
                ),
                # Before the next one, which would take its times, too: they lie less than the
                # allowance for a cold start above those of the next one.
                (
                    like(_timed("begin", "computed")),
                    Diagnosis(
                        "no-copy-out",
                        "The copy of the result is outside the clock. The result must be on the "
                        "host at the end.",
                    ),
                ),
                (
                    like(_timed("copied in", "computed")),
                    Diagnosis(
                        "copies-left-out",
                        "Now both copies are outside the clock. That is the other trick: without "
                        "them nobody has a result. Time one copy in and one copy out.",
                    ),
                ),
                (
                    _is_of_all_steps,
                    Diagnosis("not-divided", "That is the time of all steps. Divide by n_steps."),
                ),
            ),
            hidden_mistakes=(
                (
                    _skips_steps,
                    Diagnosis("steps-missing", "It calls step fewer times than n_steps."),
                ),
                (
                    copies_less("copy out", 2**22, 2**21),
                    Diagnosis(
                        "no-result",
                        "The result never comes to the host, where it is wanted. Copy it out "
                        "after the last step, within the time.",
                    ),
                ),
            ),
            show=lambda value: f"{format_time(value)} for each step",
            # Without the copy of the result one work reads 16 % too little, so not more than this.
            tolerance=0.12,
            # The first step of a program without a warm-up finds the host's caches cold.
            floor=12e-6,
        ),
        hints=(
            "x = data.to('cuda') before the loop, x.cpu() after it.",
            "Start the clock before the copy in, and stop it after the copy out.",
        ),
    ),
)

CLAIMS = (
    Claim(
        "case-08.mostly-copies",
        "The mended program takes less than a third of the posted one's time",
        unit="times",
        holds=lambda ratio: ratio < 1 / 3,
        because="the launches of the step may take longer here than the copies",
    ),
)
