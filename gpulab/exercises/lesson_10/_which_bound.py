"""Find what limits a kernel (compute, memory, launch), and judge a function that names it."""

from collections.abc import Callable
from typing import NamedTuple

from gpulab.exercises.answers import CaseFunction, Diagnosis
from gpulab.gpus import data_sheet, gpu
from gpulab.workloads import workload

FLOOR_S = 1e-6  # the shortest kernel of an H200, rounded, as the question states it
_SHEET = data_sheet(gpu("H200"))
_PEAK, _BANDWIDTH = _SHEET.peak("float16"), _SHEET.bandwidth_bytes_per_s


class CountedWork(NamedTuple):
    """The FLOPs and the bytes of a kernel."""

    flops: float
    size_bytes: float

    @property
    def compute_s(self) -> float:
        """Seconds of the arithmetic alone."""
        return self.flops / _PEAK

    @property
    def memory_s(self) -> float:
        """Seconds of the memory traffic alone."""
        return self.size_bytes / _BANDWIDTH


def _work(name: str, size: int, dtype: str) -> CountedWork:
    known = workload(name)
    return CountedWork(known.flops(size), known.bytes(size, dtype))


# The works of the exercise, with the words that describe them in a verdict.
WORKS = {
    _work("matmul", 8192, "float16"): "a matmul of half-precision matrices of side 8192",
    _work("add", 2**28, "float32"): "the sum of two vectors of 2**28 elements",
    _work("add", 1000, "float32"): "the sum of two vectors of 1,000 elements",
    _work("linear", 1, "float16"): "a linear layer, 4096 wide, half precision, on one row",
    _work("softmax", 8192, "float32"): "the softmax of 8192 rows",
    _work("matmul", 256, "float16"): "a matmul of half-precision matrices of side 256",
    CountedWork(5e9, 1e5): "100,000 multiplications and additions for each of 25,000 numbers",
}


def bound_of(flops: float, size_bytes: float) -> str:
    """Return what limits a kernel on an H200: ``"compute"``, ``"memory"`` or ``"launch"``.

    >>> bound_of(flops=2 * 8192**3, size_bytes=3 * 2 * 8192**2)
    'compute'
    """
    work = CountedWork(flops, size_bytes)
    times_s = {"compute": work.compute_s, "memory": work.memory_s, "launch": FLOOR_S}
    return max(times_s, key=lambda bound: times_s[bound])


def _of_numbers(formula: Callable[[CountedWork], str]) -> Callable[..., str]:
    """Return a function of the two numbers from a function of a `CountedWork`."""
    return lambda *numbers: formula(CountedWork(*numbers))


def _without_floor(work: CountedWork) -> str:
    return "compute" if work.compute_s > work.memory_s else "memory"


def _shortest(work: CountedWork) -> str:
    times_s = {"compute": work.compute_s, "memory": work.memory_s, "launch": FLOOR_S}
    return min(times_s, key=lambda bound: times_s[bound])


def _floor_under_sum(work: CountedWork) -> str:
    """Return the answer of a learner who calls work "launch" if either of its times is short."""
    is_short = min(work.compute_s, work.memory_s) < FLOOR_S
    return "launch" if is_short else _without_floor(work)


_MISTAKES = (
    (
        _of_numbers(_without_floor),
        Diagnosis(
            "floor-forgotten",
            "You compare compute and memory, and leave out the third bound. The sum of two "
            "vectors of 1,000 elements moves 12 kB, which take 2.5 ns. No kernel is that short.",
        ),
    ),
    (
        _of_numbers(lambda w: "memory" if w.compute_s > w.memory_s else "compute"),
        Diagnosis(
            "ridge-reversed",
            "Compute and memory are exchanged. Above the ridge, with many FLOPs per byte, the "
            "arithmetic takes longer.",
        ),
    ),
    (
        _of_numbers(_shortest),
        Diagnosis(
            "the-shortest-hides",
            "You return what takes the least time. That hides behind the others: the bound is "
            "what takes longest.",
        ),
    ),
    (
        _of_numbers(_floor_under_sum),
        Diagnosis(
            "either-is-short",
            "You return “launch” as soon as one of the two times is below the floor. The addition "
            "of 2**28 elements computes for less than a microsecond, and moves bytes for 671 µs.",
        ),
    ),
)


def _otherwise(case: CountedWork) -> str:
    return (
        f"The work was {WORKS[case]}: {case.flops:,.0f} FLOP and {case.size_bytes:,.0f} bytes. "
        "Work out two times, FLOPs over the peak and bytes over the bandwidth, and compare the "
        "larger one with a microsecond."
    )


WHICH_BOUND_JUDGE = CaseFunction(
    signature="bound(flops, size_bytes)",
    returns='"compute", "memory" or "launch"',
    why="Three limits, and the longest one is the bound: above the ridge of 206 FLOP/byte it is "
    "compute, below it memory, and where both are shorter than the shortest kernel it is the "
    "launch.",
    cases=tuple(WORKS),
    right=bound_of,
    mistakes=_MISTAKES,
    otherwise=_otherwise,
)
