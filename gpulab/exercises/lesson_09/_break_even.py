"""The break-even number of operations on the GPU, and the judge for a function that returns it."""

import math
from typing import NamedTuple

from gpulab.exercises.answers import CaseFunction, Diagnosis


def n_needed(cpu_s: float, gpu_s: float, transfers_s: float) -> int | None:
    """Return from how many operations in a row on the GPU is faster, transfers included, or None.

    The data are copied to the GPU once, all operations run there, and the result is copied back
    once: ``transfers_s`` together. Each operation saves the difference of the two sides.

    >>> n_needed(cpu_s=1e-3, gpu_s=0.35e-3, transfers_s=5e-3)
    8
    """
    saved_s = cpu_s - gpu_s
    return max(1, math.floor(transfers_s / saved_s) + 1) if saved_s > 0 else None


class Case(NamedTuple):
    """The seconds of an operation on CPU and GPU, and of its transfers."""

    cpu_s: float
    gpu_s: float
    transfers_s: float


CASES = (
    Case(1.0e-3, 0.35e-3, 5.0e-3),
    Case(4.6e-3, 0.05e-3, 20.3e-3),
    Case(60e-6, 45e-6, 110e-6),
    Case(2.0e-3, 0.1e-3, 0.5e-3),
)
NEVER = Case(8e-6, 12e-6, 30e-6)
EQUAL = Case(9e-6, 9e-6, 30e-6)
# A tie: with two operations both sides take 1/64 s. Powers of two, so that floats are exact.
TIE = Case(2**-7, 2**-8, 2**-7)

_MISTAKES = (
    (
        lambda cpu_s, gpu_s, transfers_s: math.floor(transfers_s / (cpu_s - gpu_s)),
        Diagnosis(
            "rounded-down",
            "Your number is one too small: after that many operations you haven't saved enough "
            "to pay for the transfers. You can't run a part of an operation, so round up.",
        ),
    ),
    (
        lambda cpu_s, _gpu_s, transfers_s: math.ceil(transfers_s / cpu_s),
        Diagnosis(
            "gpu-costs-nothing",
            "You divide the transfers by the CPU's time, as if the GPU took no time at all. Each "
            "operation saves the difference: cpu_s - gpu_s.",
        ),
    ),
    (
        lambda cpu_s, gpu_s, transfers_s: 1 if gpu_s + transfers_s < cpu_s else None,
        Diagnosis(
            "transfers-every-time",
            "You pay for the transfers with every operation. Then the GPU wins at once or never. "
            "But the data stay on the GPU: you copy them in once and back once, however many "
            "operations run in between.",
        ),
    ),
    (
        lambda cpu_s, gpu_s, transfers_s: n_needed(cpu_s, gpu_s, 2 * transfers_s),
        Diagnosis(
            "transfers-twice",
            "You count the transfers twice. transfers_s already includes both directions.",
        ),
    ),
    (
        lambda cpu_s, gpu_s, transfers_s: transfers_s / (cpu_s - gpu_s),
        Diagnosis(
            "no-whole-number",
            "Your function returns a fraction. You can't run a part of an operation: return a "
            "whole number.",
        ),
    ),
)
_SPECIAL = (
    (
        NEVER,
        Diagnosis(
            "never-has-no-number",
            "For an operation that takes 8 µs on the CPU and 12 µs on the GPU your function "
            "{did}. Each operation loses time there, so no number is enough: return None.",
        ),
    ),
    (
        EQUAL,
        Diagnosis(
            "equal-has-no-number",
            "For an operation that takes 9 µs on both sides your function {did}. Nothing is saved "
            "there, so no number pays for the transfers: return None.",
        ),
    ),
    (
        TIE,
        Diagnosis(
            "a-tie-is-not-faster",
            "For 1/128 s on the CPU, 1/256 s on the GPU and 1/128 s of transfers your function "
            "{did}. With 2 operations both sides take 1/64 s: that is a tie, and the question "
            "asks when the GPU is faster.",
        ),
    ),
)


def _otherwise(case: Case) -> str:
    cpu, gpu, transfers = (f"{1e6 * time_s:,.0f} µs" for time_s in case)
    return (
        f"One operation takes {cpu} on the CPU and {gpu} on the GPU, the transfers take "
        f"{transfers}: the answer is {n_needed(*case)}. Write down what k operations take on each "
        "side, and ask for which k the GPU's side is smaller."
    )


BREAK_EVEN = CaseFunction(
    signature="n_needed(cpu_s, gpu_s, transfers_s), all in seconds",
    returns="a whole number, or None if no number is enough",
    why="Each operation on the GPU saves cpu_s - gpu_s, and you pay for the transfers once. So "
    "the answer is the first whole number above transfers_s / (cpu_s - gpu_s). If an operation "
    "saves nothing, no number is enough.",
    cases=CASES,
    right=n_needed,
    mistakes=_MISTAKES,
    otherwise=_otherwise,
    special=_SPECIAL,
)
