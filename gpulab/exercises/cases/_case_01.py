"""Case 01: a stopwatch reads thousands of TFLOP/s, because it times the launch."""

import time

from gpulab.exercises._claims import Claim
from gpulab.exercises._exercise import Exercise
from gpulab.exercises.answers import Choice, Diagnosis, HiddenWork, Mended, like
from gpulab.exercises.cases._device_time import device_s


def _right(n: int) -> float:
    import torch

    a, b = torch.randn(2, n, n, device="cuda", dtype=torch.float16)
    return 2 * n**3 / device_s(lambda: a @ b) / 1e12


def _with_a_stopwatch(n: int, *, wait_before: bool, wait_after: bool, warm_up: bool) -> float:
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


def as_posted(n: int) -> float:
    """Time only the launch, as the published program does."""
    return _with_a_stopwatch(n, wait_before=False, wait_after=False, warm_up=True)


def wait_before_only(n: int) -> float:
    """Wait before the launch, and still time only the launch."""
    return _with_a_stopwatch(n, wait_before=True, wait_after=False, warm_up=True)


def wait_after_only(n: int) -> float:
    """Time the warm-up and the random numbers too, because they are still in the queue."""
    return _with_a_stopwatch(n, wait_before=False, wait_after=True, warm_up=True)


def no_warm_up(n: int) -> float:
    """Time the first matmul, which also loads the library."""
    return _with_a_stopwatch(n, wait_before=True, wait_after=True, warm_up=False)


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
                (like(as_posted), _ONLY_THE_LAUNCH),
                (like(wait_before_only), _ONLY_THE_LAUNCH),
                (
                    lambda trial: trial.may_start_busy and trial.is_like(wait_after_only),
                    Diagnosis(
                        "backlog",
                        "The number is too small now. When your clock starts, the random numbers "
                        "and the warm-up are still in the queue. Wait before you start it, too.",
                    ),
                ),
                (
                    like(no_warm_up),
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
