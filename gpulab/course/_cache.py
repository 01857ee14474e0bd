"""The lab "cache": which data stay in the L2, a cache flush, and a timer for cold work."""

from gpulab.course._question import Lab, LabQuestion, Variant
from gpulab.course._seeded_random import SeededDraw

_LETTERS = "kmnprstu"  # other letters than those of the lessons
_MIB = 2**20
_L2_MIB = (40, 48, 50, 60, 72)
_OPERATIONS = ("`x.sum()`", "`torch.neg(x, out=y)`", "`torch.add(x, y, out=z)`")
_BYTES = {"float16": 2, "float32": 4, "float64": 8}


def _from_cache(draw: SeededDraw) -> Variant:
    l2_mib = draw.pick(_L2_MIB)
    half = len(_LETTERS) // 2
    # Percent of the L2: either well inside it or more than twice its size, so that no choice
    # depends on the details of a cache.
    shares = [draw.number(20, 45) for _ in range(half)]
    shares += [draw.number(220, 290) for _ in range(half)]
    choices, sizes = {}, {}
    for letter, percent in zip(_LETTERS, draw.shuffled(shares), strict=True):
        n_tensors, kind = draw.number(1, 3), draw.pick(sorted(_BYTES))
        n = percent * l2_mib * _MIB // 100 // (n_tensors * _BYTES[kind]) // 1000 * 1000
        choices[letter] = f"{_OPERATIONS[n_tensors - 1]}, each tensor {n:,} elements of {kind}"
        sizes[letter] = (n_tensors, _BYTES[kind], n)
    return Variant(
        f"A GPU has an L2 of {l2_mib} MiB. Each line below runs many times in a row, with nothing "
        "in between. For which of them does the second run find most of its data in the L2?",
        choices,
        {"l2_mib": l2_mib, "sizes": sizes},
    )


def _bandwidth(draw: SeededDraw) -> Variant:
    size_mib = draw.number(12, 28)
    # So the right answer is between 2.6 and 3.5 TB/s, as of a GPU with HBM.
    cold_us = draw.number(3 * size_mib // 10, 4 * size_mib // 10) / 1
    hot_us = cold_us * draw.number(40, 60) / 100
    return Variant(
        f"A linear layer on one row reads weights of {size_mib} MiB, and hardly anything else. "
        f"With a cold cache it takes {cold_us:g} µs, with a hot cache {hot_us:g} µs. How many "
        "GB/s (10^9 bytes) does it read in each case?",
        numbers={"size_mib": size_mib, "cold_us": cold_us, "hot_us": hot_us},
    )


def _make_flush(_draw: SeededDraw) -> Variant:
    return Variant(
        "Write make_flush(l2_bytes). It returns a function without arguments that empties an L2 "
        "of that size: after it, work finds its inputs in memory, and nothing is left to be "
        "written back. The function that you return only puts work into the queue, and runs on "
        "any GPU."
    )


def _cold_seconds(_draw: SeededDraw) -> Variant:
    return Variant(
        "Write cold_seconds(work, flush, n_samples). It returns the median of the seconds that "
        "work takes on the GPU with a cold cache. work and flush are functions without arguments "
        "that put work into the queue. Neither the flush nor launches are in the number; some "
        "kernels take only 20 µs."
    )


CACHE = Lab(
    "cache",
    "Lab: hot and cold caches",
    "This lab belongs to lesson 06. Try on the GPU whatever you like before you answer.",
    (
        LabQuestion(
            "from_cache",
            "What stays in the cache?",
            2,
            'Answer with a text of letters, such as `from_cache = "km"`.',
            _from_cache,
        ),
        LabQuestion(
            "bandwidth",
            "Bytes over time",
            2,
            'Answer with two numbers in GB/s: `bandwidth = {"cold": 1.0, "hot": 1.0}`.',
            _bandwidth,
        ),
        LabQuestion(
            "make_flush",
            "A flush for any GPU",
            4,
            "Answer with the function `def make_flush(l2_bytes):`. You may import torch.",
            _make_flush,
            trial="make_flush",
        ),
        LabQuestion(
            "cold_seconds",
            "A timer for cold work",
            3,
            "Answer with the function `def cold_seconds(work, flush, n_samples):`. You may import "
            "torch, time and statistics; write the timer yourself.",
            _cold_seconds,
            trial="cold_seconds",
        ),
    ),
)
