"""The break-even number of operations on the GPU, and the judge of a function that returns it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from gpulab.exercises._exercise import Verdict
from gpulab.exercises.answers import Diagnosis, read_number, run_on_cases


def n_needed(cpu_s: float, gpu_s: float, transfers_s: float) -> int | None:
    """Return from how many operations in a row on the GPU the transfers pay.

    The data go there once, all operations run there, and the results come back once. Each
    operation saves the difference of the two sides.

    Parameters
    ----------
    cpu_s, gpu_s
        Seconds of one operation on each side, without transfers.
    transfers_s
        Seconds of both transfers together.

    Returns
    -------
    int | None
        The least number with which the GPU is faster; None if no number is enough.

    Examples
    --------
    >>> n_needed(cpu_s=1e-3, gpu_s=0.35e-3, transfers_s=5e-3)
    8
    >>> n_needed(cpu_s=1e-3, gpu_s=1e-3, transfers_s=5e-3)
    """
    saved_s = cpu_s - gpu_s
    return max(1, math.floor(transfers_s / saved_s) + 1) if saved_s > 0 else None


class Case(NamedTuple):
    """One operation on both sides, and the transfers of its data."""

    cpu_s: float
    gpu_s: float
    transfers_s: float


# None is an exact multiple, so that "pays" and "costs the same" give the same answer.
CASES = (
    Case(1.0e-3, 0.35e-3, 5.0e-3),
    Case(4.6e-3, 0.05e-3, 20.3e-3),
    Case(60e-6, 45e-6, 110e-6),
    Case(2.0e-3, 0.1e-3, 0.5e-3),
)
NEVER = Case(8e-6, 12e-6, 30e-6)

_DOWN = Diagnosis(
    "rounded-down",
    "Your number is one too small: with so many operations the transfers are not earned yet. A "
    "part of an operation cannot be run, so round up.",
)
_GPU_FREE = Diagnosis(
    "gpu-costs-nothing",
    "You divide the transfers by the CPU's time, as if the GPU took none. What each operation "
    "earns is the difference: cpu_s - gpu_s.",
)
_EVERY_TIME = Diagnosis(
    "transfers-every-time",
    "You have every operation pay for the transfers. Then it pays at once or never. The data stay "
    "on the GPU: they go there once and come back once, whatever is run in between.",
)
_TWICE = Diagnosis(
    "transfers-twice",
    "You count the transfers twice; transfers_s is both ways together already.",
)
_FRACTION = Diagnosis(
    "no-whole-number",
    "Your function returns {value}. Asked is a number of operations: round up to a whole one.",
)
_NEVER_RAISED = Diagnosis(
    "never-raised",
    "Your function raised {value} where the GPU is the slower one. No number is enough there: "
    "return None.",
)
_NEVER = Diagnosis(
    "never-has-no-number",
    "Where one operation takes 8 µs on the CPU and 12 µs on the GPU, your function returns "
    "{value}. Each one loses there, so no number is enough: return None.",
)
_OTHER = Diagnosis(
    "unexplained",
    "With {case} your function returns {value}; it should be {right}. Write down what k "
    "operations take on each side, and ask from which k on the GPU's side is less.",
)

_MISTAKES: tuple[tuple[Callable[[Case], float | None], Diagnosis], ...] = (
    (lambda c: math.floor(c.transfers_s / (c.cpu_s - c.gpu_s)), _DOWN),
    (lambda c: math.ceil(c.transfers_s / c.cpu_s), _GPU_FREE),
    (lambda c: 1 if c.gpu_s + c.transfers_s < c.cpu_s else None, _EVERY_TIME),
    (lambda c: n_needed(c.cpu_s, c.gpu_s, 2 * c.transfers_s), _TWICE),
)


@dataclass(frozen=True, slots=True)
class BreakEven:
    """A function that says from how many operations on the transfers pay.

    Attributes
    ----------
    why
        What to say when it is right.
    """

    why: str

    @property
    def how(self) -> str:
        """How to write the answer."""
        return (
            "Answer with the function: def n_needed(cpu_s, gpu_s, transfers_s), all in seconds; "
            "return a whole number, or None if no number is enough."
        )

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Try the function on four cases and on one without an answer."""
        returned, verdict = run_on_cases(answer, CASES, self.how)
        if verdict is not None:
            return verdict
        found = _explain(returned)
        if found is None and callable(answer):
            found = _explain_never(answer)
        return found.verdict() if found else Verdict(ok=True, message=self.why)


def _explain(returned: list[object]) -> Diagnosis | None:
    """Name what is wrong with the numbers, all four of them together."""
    numbers = [read_number(value) for value in returned]
    rights = [n_needed(*case) for case in CASES]
    if numbers == rights:
        return None
    # All four cases together, as a single one may be met by several formulas.
    for mistaken, diagnosis in _MISTAKES:
        if numbers == [mistaken(case) for case in CASES]:
            return diagnosis
    for number in numbers:
        if number is not None and number != round(number):
            return _filled(_FRACTION, value=f"{number:.4g}")
    wrong = next(index for index, number in enumerate(numbers) if number != rights[index])
    case = ", ".join(f"{1e6 * time_s:,.0f} µs" for time_s in CASES[wrong])
    return _filled(_OTHER, case=case, value=repr(returned[wrong]), right=rights[wrong])


def _explain_never(answer: Callable[..., object]) -> Diagnosis | None:
    try:
        value = answer(*NEVER)
    except Exception as error:  # noqa: BLE001  # as above
        return _filled(_NEVER_RAISED, value=type(error).__name__)
    return None if value is None else _filled(_NEVER, value=repr(value))


def _filled(diagnosis: Diagnosis, **values: object) -> Diagnosis:
    return Diagnosis(diagnosis.code, diagnosis.message.format(**values))
