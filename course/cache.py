"""The keys of the lab on the cache: they stay with the grader, and no package contains them."""

from collections.abc import Mapping
from math import inf, prod
from typing import Any

from gpulab.course import FunctionKey, LettersKey, NumbersKey, Part, Variant

_MIB = 2**20


def _fitting(variant: Variant) -> str:
    numbers: Any = variant.numbers
    return "".join(
        letter
        for letter, sizes in numbers["sizes"].items()
        if prod(sizes) < numbers["l2_mib"] * _MIB
    )


def _bandwidths(variant: Variant) -> Mapping[str, float]:
    numbers: Any = variant.numbers
    n_bytes = numbers["size_mib"] * _MIB
    return {
        name: round(n_bytes / numbers[f"{name}_us"] * 1e6 / 1e9, 1) for name in ("cold", "hot")
    }


_MAKE_FLUSH = """
import torch


def make_flush(l2_bytes):
    buffer = torch.zeros(2 * l2_bytes // 4, device="cuda")
    return lambda: buffer.sum()
"""

_COLD_SECONDS = """
import statistics
import torch


def cold_seconds(work, flush, n_samples):
    work()
    torch.cuda.synchronize()
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(n_samples)]
    torch.cuda._sleep(20_000_000)
    for start, end in pairs:
        flush()
        start.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in pairs) / 1000
"""

KEYS = {
    "from_cache": LettersKey(_fitting),
    "bandwidth": NumbersKey(_bandwidths),
    "make_flush": FunctionKey(
        _MAKE_FLUSH,
        (
            Part("cold", "The work still finds its numbers in the cache.", high=inf, fact="H200"),
            Part(
                "clean",
                "The work's time is not that of a cold and clean cache.",
                fact="H200",
            ),
            Part("another", "On a GPU with a larger cache it is not cold and clean."),
            Part("host", "It makes the host wait for the GPU.", low=1.0, high=99.0, after="cold"),
        ),
    ),
    "cold_seconds": FunctionKey(
        _COLD_SECONDS,
        (
            Part("cold", "The inputs are not cold in each sample, or more is in the interval."),
            Part("only the work", "More than the work is in the interval."),
            Part("short", "Launches or waits are in the times of short kernels.", high=0.1),
        ),
    ),
}
