"""Case 01: a stopwatch reads thousands of TFLOP/s, because it times the launch."""

import time
from functools import partial

from gpulab.exercises._claims import Claim
from gpulab.exercises._exercise import Exercise
from gpulab.exercises._gpu_work import device_s
from gpulab.exercises.answers import Choice, Diagnosis, HiddenWork, Mended, like


def _right(n: int) -> float:
    import torch

    a, b = torch.randn(2, n, n, device="cuda", dtype=torch.float16)
    return 2 * n**3 / device_s(lambda: a @ b) / 1e12


def _with_a_stopwatch(
    n: int, *, wait_before: bool = True, wait_after: bool = True, warm_up: bool = True
) -> float:
    import torch

    a, b = torch.randn(2, n, n, device="cuda", dtype=torch.float16)
    if warm_up:
        a @ b
    if wait_before:
        torch.cuda.synchronize()
    start = time.perf_counter()
    a @ b
    if wait_after:
        torch.cuda.synchronize()
    return 2 * n**3 / (time.perf_counter() - start) / 1e12


_FROM_A_BUSY_QUEUE = partial(_with_a_stopwatch, wait_before=False)
_ONLY_THE_LAUNCH = Diagnosis(
    "launch",
    "Your clock still stops when the launch has returned, and the matmul runs after that. Wait "
    "for the GPU before you read the clock for the second time.",
)

EXERCISES = (
    Exercise(
        "case-01.flaw",
        "What does the program in the post divide by?",
        Choice(
            right="b",
            why="a @ b puts the matmul into the queue and returns. The clock is read again before "
            "the GPU has done any of it.",
            wrong={
                "a": Diagnosis(
                    "not-the-kernel",
                    "If it were the time of the matmul, the GPU would be faster than its own "
                    "multiprocessors can be. When does a @ b return?",
                ),
                "c": Diagnosis(
                    "not-the-warm-up",
                    "The warm-up is a line above the start of the clock, and it is not waited "
                    "for either. It cannot make the time shorter.",
                ),
                "d": Diagnosis(
                    "clock-is-fine",
                    "perf_counter resolves far less than a microsecond. The clock is right about "
                    "what lies between its two readings. What does?",
                ),
            },
        ),
        hints=(
            "Make n twice as large. Does the reading of the clock change?",
            "Host and GPU work side by side. Which of them does the clock time?",
        ),
        choices={
            "a": "the time of the matmul on the GPU",
            "b": "the time of the launch on the host",
            "c": "the time of the warm-up and of the matmul",
            "d": "the resolution of the clock",
        },
    ),
    Exercise(
        "case-01.mend",
        "Mend the program: write mended(n). It is tried for sizes that you have not seen, on a "
        "virtual H200 that is new: its first matmul loads a library.",
        Mended(
            signature="mended(n)",
            returns="TFLOP/s of a matmul of n x n in half precision",
            why="For three sizes that you had not seen, your number is that of the GPU's own "
            "records. It is below what the data sheet promises, as it must be.",
            works=tuple(
                HiddenWork(f"n = {n:,}", lambda n=n: (n,))  # type: ignore[misc]  # n is bound here
                for n in (4096, 5120, 7168)
            ),
            right=_right,
            mistakes=(
                (
                    like(partial(_with_a_stopwatch, wait_before=False, wait_after=False)),
                    _ONLY_THE_LAUNCH,
                ),
                (like(partial(_with_a_stopwatch, wait_after=False)), _ONLY_THE_LAUNCH),
                (
                    lambda trial: trial.may_start_busy and trial.is_like(_FROM_A_BUSY_QUEUE),
                    Diagnosis(
                        "backlog",
                        "The number is too small now. When your clock starts, the random numbers "
                        "and the warm-up are still in the queue. Wait before you start it, too.",
                    ),
                ),
                (
                    like(partial(_with_a_stopwatch, warm_up=False)),
                    Diagnosis(
                        "first-use",
                        "The first matmul loads its library, and you time that. Run it once, "
                        "and wait, before you start the clock.",
                    ),
                ),
                (
                    like(lambda n: _right(n) / 1e3),
                    Diagnosis(
                        "milliseconds",
                        "Your number is 1,000 times too small: elapsed_time returns milliseconds. "
                        "Divide them by 1,000.",
                    ),
                ),
                (
                    like(lambda n: _right(n) * 1e12),
                    Diagnosis("flop", "That is FLOP/s. Divide by 1e12 for TFLOP/s."),
                ),
            ),
            show=lambda value: f"{value:,.4g} TFLOP/s",
            tolerance=0.15,  # a stopwatch with two waits is right, too, and reads the launch
            first_use=True,  # so that a program without a warm-up shows
        ),
        hints=(
            "torch.cuda.synchronize() waits for everything in the queue. You need it twice.",
            "Warm up, wait, start the clock, launch, wait, stop the clock.",
        ),
    ),
)

CLAIMS = (
    Claim(
        "case-01.too-much",
        "The posted program reads at least twice the right number",
        unit="times",
        holds=lambda ratio: ratio >= 2,  # noqa: PLR2004  # as the sentence says
        because="a launch takes longer here, compared with the matmul",
    ),
)
