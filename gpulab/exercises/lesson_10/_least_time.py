"""The least time of a matmul by the plain roofline, and the judge for a function that gives it."""

from collections.abc import Callable
from typing import NamedTuple

from gpulab.core.units import format_rate
from gpulab.exercises.answers import CaseFunction, Diagnosis

_ITEM_BYTES = 2  # half precision


class Matmul(NamedTuple):
    """A half-precision matmul of an (m, k) and a (k, n) matrix, with the GPU's two limits."""

    m: int
    k: int
    n: int
    peak: float
    bandwidth: float

    @property
    def read_bytes(self) -> float:
        """Bytes of the two inputs."""
        return (self.m * self.k + self.k * self.n) * _ITEM_BYTES

    @property
    def size_bytes(self) -> float:
        """Bytes of all three matrices."""
        return self.read_bytes + self.m * self.n * _ITEM_BYTES

    @property
    def compute_s(self) -> float:
        """Seconds of the arithmetic alone; a multiplication and an addition count as two FLOPs."""
        return 2 * self.m * self.k * self.n / self.peak

    @property
    def memory_s(self) -> float:
        """Seconds of the memory traffic alone."""
        return self.size_bytes / self.bandwidth

    @property
    def least_s(self) -> float:
        """The larger of the two times, because arithmetic and memory work at the same time."""
        return max(self.compute_s, self.memory_s)


# The first is limited by arithmetic, the others by memory. The last one writes most of its bytes,
# so that a formula without the result is wrong for it.
CASES = (
    Matmul(4096, 4096, 4096, 312e12, 2e12),
    Matmul(1, 4096, 8192, 312e12, 2e12),
    Matmul(8192, 16, 4096, 989e12, 4.8e12),
)


def _of_numbers(formula: Callable[[Matmul], float]) -> Callable[..., float]:
    """Return a function of the five numbers from a function of a `Matmul`."""
    return lambda *numbers: formula(Matmul(*numbers))


# The order matters: a formula without one limit agrees with other wrong ones on some matmuls, so
# the more special mistakes come first.
_MISTAKES = (
    (
        _of_numbers(lambda p: p.compute_s + p.memory_s),
        Diagnosis(
            "added",
            "You add the two times. Arithmetic and memory work at the same time, so the slower "
            "one hides the other: take the larger.",
        ),
    ),
    (
        _of_numbers(lambda p: min(p.compute_s, p.memory_s)),
        Diagnosis(
            "smaller",
            "You take the smaller time. Both parts must be done, so the work takes at least as "
            "long as the slower one.",
        ),
    ),
    (
        _of_numbers(lambda p: max(p.compute_s / 2, p.memory_s)),
        Diagnosis(
            "multiply-add-is-two",
            "Your arithmetic is half of what it should be: each of the M N results takes K "
            "multiplications and K additions, so F = 2 M K N.",
        ),
    ),
    (
        _of_numbers(lambda p: max(p.compute_s, 2 * p.memory_s)),
        Diagnosis(
            "bytes-twice",
            "Your bytes are twice what they should be. An element in half precision has 2 bytes, "
            "and each matrix moves once: the inputs are read, the result is written.",
        ),
    ),
    (
        _of_numbers(lambda p: max(p.compute_s, p.read_bytes / p.bandwidth)),
        Diagnosis(
            "result-forgotten",
            "You count only what is read. The result has M N elements, which must be written.",
        ),
    ),
    (
        _of_numbers(lambda p: max(p.compute_s, p.memory_s / _ITEM_BYTES)),
        Diagnosis(
            "elements-are-not-bytes",
            "You divide elements by bytes per second. An element of half precision has 2 bytes.",
        ),
    ),
    (
        _of_numbers(lambda p: p.compute_s),
        Diagnosis(
            "compute-alone",
            "That is the arithmetic alone. A matmul with one row computes hardly anything, and "
            "still its weights must come from memory.",
        ),
    ),
    (
        _of_numbers(lambda p: p.memory_s),
        Diagnosis(
            "memory-alone",
            "Those are the bytes alone. FLOPs limit a large square matmul.",
        ),
    ),
    (
        _of_numbers(lambda p: 1e3 * p.least_s),
        Diagnosis(
            "milliseconds",
            "The number is 1,000 times too large. Return seconds, not milliseconds.",
        ),
    ),
)


def _otherwise(case: Matmul) -> str:
    peak, bandwidth = format_rate(case.peak, "FLOP"), format_rate(case.bandwidth, "B")
    return (
        f"The matmul had m = {case.m}, k = {case.k}, n = {case.n}, on a GPU of {peak} and "
        f"{bandwidth}. Work it out by hand: FLOPs over the peak, bytes over the bandwidth, and "
        "the larger of the two."
    )


LEAST_TIME_JUDGE = CaseFunction(
    signature="least_time(m, k, n, peak, bandwidth), in FLOP/s and bytes/s",
    returns="seconds",
    why="Arithmetic and memory work side by side, so the whole takes at least as long as the "
    "longer of the two.",
    cases=CASES,
    right=_of_numbers(lambda p: p.least_s),
    mistakes=_MISTAKES,
    otherwise=_otherwise,
)
