"""The judge of a function that returns the least time of a matmul: the plain roofline."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isclose
from typing import NamedTuple

from gpulab.exercises._exercise import Verdict
from gpulab.exercises.answers import Diagnosis, read_number, run_on_cases

_TOLERANCE = 1e-3
_ITEM_BYTES = 2  # half precision


class Matmul(NamedTuple):
    """An (m, k) matrix times a (k, n) one in half precision, on a GPU."""

    m: int
    k: int
    n: int
    peak: float
    bandwidth: float

    @property
    def flops(self) -> float:
        """Multiplications and additions."""
        return 2 * self.m * self.k * self.n

    @property
    def read_bytes(self) -> float:
        """Bytes of both factors."""
        return (self.m * self.k + self.k * self.n) * _ITEM_BYTES

    @property
    def size_bytes(self) -> float:
        """Bytes of all three matrices."""
        return self.read_bytes + self.m * self.n * _ITEM_BYTES

    @property
    def compute_s(self) -> float:
        """Seconds of the arithmetic alone."""
        return self.flops / self.peak

    @property
    def memory_s(self) -> float:
        """Seconds of the bytes alone."""
        return self.size_bytes / self.bandwidth


# One that arithmetic limits and two that memory does, of which one writes most of its bytes.
CASES = (
    Matmul(4096, 4096, 4096, 312e12, 2e12),
    Matmul(1, 4096, 8192, 312e12, 2e12),
    Matmul(8192, 16, 4096, 989e12, 4.8e12),
)

_SUM = Diagnosis(
    "added",
    "You add the two times. Arithmetic and memory work at the same time, so the slower one hides "
    "the other: take the larger.",
)
_LEAST = Diagnosis(
    "smaller",
    "You take the smaller time. Both have to be done, so the work is not over before the slower "
    "of the two is.",
)
_ONE_FLOP = Diagnosis(
    "multiply-add-is-two",
    "Your arithmetic is half of what it should be: for each of the M N results there are K "
    "multiplications and K additions, so F = 2 M K N.",
)
_TWICE = Diagnosis(
    "bytes-twice",
    "You count the bytes twice. Each matrix crosses once: the factors are read, the result is "
    "written. Bytes of an element times elements is all there is.",
)
_NO_RESULT = Diagnosis(
    "result-forgotten", "You count what is read. The result has M N elements that must be written."
)
_ELEMENTS = Diagnosis(
    "elements-are-not-bytes",
    "You divide elements by bytes per second. An element of half precision has 2 bytes.",
)
_COMPUTE_ALONE = Diagnosis(
    "compute-alone",
    "That is the arithmetic alone. A product with one row has hardly any, and still its weights "
    "must come from memory.",
)
_MEMORY_ALONE = Diagnosis(
    "memory-alone", "Those are the bytes alone. A large square product is limited by its FLOPs."
)
_MILLISECONDS = Diagnosis(
    "milliseconds", "The number is 1,000 times too large. Return seconds, not milliseconds."
)

# In this order, because one that forgets a limit may agree with another on some matmul.
_MISTAKES: tuple[tuple[Callable[[Matmul], float], Diagnosis], ...] = (
    (lambda p: p.compute_s + p.memory_s, _SUM),
    (lambda p: min(p.compute_s, p.memory_s), _LEAST),
    (lambda p: max(p.compute_s / 2, p.memory_s), _ONE_FLOP),
    (lambda p: max(p.compute_s, 2 * p.memory_s), _TWICE),
    (lambda p: max(p.compute_s, p.read_bytes / p.bandwidth), _NO_RESULT),
    (lambda p: max(p.compute_s, p.memory_s / _ITEM_BYTES), _ELEMENTS),
    (lambda p: p.compute_s, _COMPUTE_ALONE),
    (lambda p: p.memory_s, _MEMORY_ALONE),
    (lambda p: 1e3 * max(p.compute_s, p.memory_s), _MILLISECONDS),
)


@dataclass(frozen=True, slots=True)
class LeastTime:
    """A function that returns the least seconds of a matmul.

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
            "Answer with the function: def least_time(m, k, n, peak, bandwidth), in FLOP/s and "
            "bytes/s; return seconds."
        )

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Try the function on three matmuls, and recognise what it computes."""
        found, verdict = run_on_cases(answer, CASES, self.how)
        if verdict is not None:
            return verdict
        return self._judge([read_number(value) for value in found])

    def _judge(self, seconds: list[float | None]) -> Verdict:
        if _are(seconds, lambda p: max(p.compute_s, p.memory_s)):
            return Verdict(ok=True, message=self.why)
        for mistake, diagnosis in _MISTAKES:
            if _are(seconds, mistake):
                return diagnosis.verdict()
        case, value = CASES[0], seconds[0]
        return Diagnosis(
            "unexplained",
            f"For m = k = n = {case.m}, 312 TFLOP/s and 2 TB/s your function returns {value!r}. "
            "Work it out by hand: FLOPs over the peak, bytes over the bandwidth, and the larger "
            "of the two.",
        ).verdict()


def _are(seconds: list[float | None], expected: Callable[[Matmul], float]) -> bool:
    return all(
        value is not None and isclose(value, expected(case), rel_tol=_TOLERANCE)
        for value, case in zip(seconds, CASES, strict=True)
    )
