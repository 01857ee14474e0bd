"""The cases to time: operations from the catalogue that take 1 µs to 10 ms on an H200.

A run that ends early has timed the first cases only, so the groups alternate, and each group
begins with its most informative cases.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

import torch

from gpulab.device.work import Work
from gpulab.workloads import Workload, workload

# 4 MiB of float32, as the names of the two copies between host and GPU say.
_N_UPLOADED = 1 << 20


@dataclass(frozen=True, slots=True)
class Case:
    """Some work to be timed.

    Attributes
    ----------
    name
        Its name in the results.
    group
        Its kind; the groups take turns in the list of cases.
    build
        Creates the inputs on the GPU in use and returns the work.
    """

    name: str
    group: str
    build: Callable[[], Work]


def _one(group: str, text: str) -> Case:
    """Return a case from its text, such as ``"add 262144"`` or ``"linear 1 float16"``."""
    listed, size, dtype = _parts(text)
    return Case(f"{listed.name} n={size} {dtype}", group, lambda: listed.make(size, dtype))


def _parts(text: str) -> tuple[Workload, int, str]:
    name, size, *dtype = text.split()
    return workload(name), int(size), dtype[0] if dtype else "float32"


def _chain(name: str, *texts: str) -> Case:
    """Return a case of several operations, one after the other."""

    def build() -> Work:
        works = [listed.make(size, dtype) for listed, size, dtype in map(_parts, texts)]

        def work() -> None:
            for part in works:
                part()

        return work

    return Case(f"chain: {name}", "chains", build)


def _upload() -> Work:
    source = torch.randn(_N_UPLOADED, pin_memory=True)
    target = torch.empty(_N_UPLOADED, device="cuda")
    return lambda: target.copy_(source, non_blocking=True)


def _download() -> Work:
    source = torch.randn(_N_UPLOADED, device="cuda")
    target = torch.empty(_N_UPLOADED, pin_memory=True)
    return lambda: target.copy_(source, non_blocking=True)


# Each operation of the catalogue with its size, and its type unless that is float32.
_GROUPS: dict[str, tuple[str | Case, ...]] = {
    "elementwise": (
        *("add 262144", "add 4194304", "gelu 1048576 bfloat16", "add 67108864", "add 1024"),
        *("exp 16777216 float16", "dropout 4194304", "add 268435456", "add 1048576"),
        *("add 16777216",),
    ),
    "products": (
        *("matmul 1024 float16", "matmul 512", "matmul 4096 bfloat16", "matmul 2048 float64"),
        *("matmul_odd 1024 float16", "matmul 2048", "matmul 8192 float16", "matmul_odd 2048"),
        *("matmul 512 float16", "matmul 6144", "matmul 2048 bfloat16", "matmul 4096"),
    ),
    "reductions": (
        *("sum 4194304", "sum 65536", "argmax 1048576", "mean 67108864 float16"),
        *("cumsum 1024", "sum 268435456"),
    ),
    "layers": (
        *("softmax 1024", "layer_norm 256 float16", "rms_norm 4096 bfloat16"),
        *("softmax 16384", "cross_entropy 1024", "layer_norm 4096", "softmax 16"),
    ),
    "batched": (
        *("linear 1 float16", "bmm 256 float16", "attention 1024 float16"),
        *("linear 128 bfloat16", "bmm 128", "attention 4096 bfloat16"),
    ),
    "convolutions": (
        *("conv3x3 16 float16", "conv1x1 16 float16", "conv_depthwise 16 float16"),
        *("conv3x3 64",),
    ),
    "copies": (
        *("copy 4194304",),
        Case("copy to the GPU, 4 MiB pinned", "copies", _upload),
        *("transposed_copy 4096", "copy 67108864"),
        Case("copy from the GPU, 4 MiB pinned", "copies", _download),
        *("copy 65536",),
    ),
    "indexed": (
        *("embedding 4096", "sort 64", "gather 4096", "topk 256", "scatter_add 1024"),
        *("sort 4096", "fft 4096"),
    ),
    "chains": (
        _chain(
            "linear, gelu, linear",
            "linear 128 float16",
            "gelu 524288 float16",
            "linear 128 float16",
        ),
        _chain("ten adds", *["add 262144"] * 10),
        *("adam 1048576",),
        _chain(
            "norm, product, softmax",
            "rms_norm 512 bfloat16",
            "matmul 4096 bfloat16",
            "softmax 512 bfloat16",
        ),
        *("adam 16777216",),
    ),
}


def _cases(group: str) -> Iterator[Case]:
    for each in _GROUPS[group]:
        yield _one(group, each) if isinstance(each, str) else each


# One case of each group in turn, so that a run that ends early has seen every group.
CASES = tuple(case for row in zip_longest(*map(_cases, _GROUPS)) for case in row if case)

# Kernels of about 10 to 16 µs (cold cache, H200), to compare the medians of fresh processes.
SHORT_CASES = tuple(
    _one("short", text)
    for text in (
        *("linear 1 float16", "add 4194304", "sum 4194304", "softmax 1024", "rms_norm 1024"),
        *("matmul 512", "bmm 128", "conv1x1 16 float16"),
    )
)


def find(name: str) -> Case:
    """Return the case of this name."""
    return next(case for case in (*CASES, *SHORT_CASES) if case.name == name)
