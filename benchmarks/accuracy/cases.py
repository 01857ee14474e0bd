"""The cases to time: operations from the catalogue that take 1 µs to 10 ms on an H200.

A run that ends early has timed the first cases only, so the groups alternate, and each group
begins with its most informative cases.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import zip_longest

import torch

from gpulab.device.work import Work
from gpulab.workloads import workload

Part = tuple[str, int, str]

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


def _one(group: str, name: str, size: int, dtype: str = "float32") -> Case:
    listed = workload(name)
    return Case(listed.title(size, dtype), group, lambda: listed.make(size, dtype))


def _chain(name: str, parts: Iterable[Part]) -> Case:
    """Return a case of several operations, one after the other."""
    listed = tuple(parts)

    def build() -> Work:
        works = [workload(op).make(size, dtype) for op, size, dtype in listed]

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


_HALF, _BRAIN, _DOUBLE = "float16", "bfloat16", "float64"

_GROUPS = (
    (
        _one("elementwise", "add", 1 << 18),
        _one("elementwise", "add", 1 << 22),
        _one("elementwise", "gelu", 1 << 20, _BRAIN),
        _one("elementwise", "add", 1 << 26),
        _one("elementwise", "add", 1 << 10),
        _one("elementwise", "exp", 1 << 24, _HALF),
        _one("elementwise", "dropout", 1 << 22),
        _one("elementwise", "add", 1 << 28),
        _one("elementwise", "add", 1 << 20),
        _one("elementwise", "add", 1 << 24),
    ),
    (
        _one("products", "matmul", 1024, _HALF),
        _one("products", "matmul", 512),
        _one("products", "matmul", 4096, _BRAIN),
        _one("products", "matmul", 2048, _DOUBLE),
        _one("products", "matmul_odd", 1024, _HALF),
        _one("products", "matmul", 2048),
        _one("products", "matmul", 8192, _HALF),
        _one("products", "matmul_odd", 2048),
        _one("products", "matmul", 512, _HALF),
        _one("products", "matmul", 6144),
        _one("products", "matmul", 2048, _BRAIN),
        _one("products", "matmul", 4096),
    ),
    (
        _one("reductions", "sum", 1 << 22),
        _one("reductions", "sum", 1 << 16),
        _one("reductions", "argmax", 1 << 20),
        _one("reductions", "mean", 1 << 26, _HALF),
        _one("reductions", "cumsum", 1024),
        _one("reductions", "sum", 1 << 28),
    ),
    (
        _one("layers", "softmax", 1024),
        _one("layers", "layer_norm", 256, _HALF),
        _one("layers", "rms_norm", 4096, _BRAIN),
        _one("layers", "softmax", 16384),
        _one("layers", "cross_entropy", 1024),
        _one("layers", "layer_norm", 4096),
        _one("layers", "softmax", 16),
    ),
    (
        _one("batched", "linear", 1, _HALF),
        _one("batched", "bmm", 256, _HALF),
        _one("batched", "attention", 1024, _HALF),
        _one("batched", "linear", 128, _BRAIN),
        _one("batched", "bmm", 128),
        _one("batched", "attention", 4096, _BRAIN),
    ),
    (
        _one("convolutions", "conv3x3", 16, _HALF),
        _one("convolutions", "conv1x1", 16, _HALF),
        _one("convolutions", "conv_depthwise", 16, _HALF),
        _one("convolutions", "conv3x3", 64),
    ),
    (
        _one("copies", "copy", 1 << 22),
        Case("copy to the GPU, 4 MiB pinned", "copies", _upload),
        _one("copies", "transposed_copy", 4096),
        _one("copies", "copy", 1 << 26),
        Case("copy from the GPU, 4 MiB pinned", "copies", _download),
        _one("copies", "copy", 1 << 16),
    ),
    (
        _one("indexed", "embedding", 4096),
        _one("indexed", "sort", 64),
        _one("indexed", "gather", 4096),
        _one("indexed", "topk", 256),
        _one("indexed", "scatter_add", 1024),
        _one("indexed", "sort", 4096),
        _one("indexed", "fft", 4096),
    ),
    (
        _chain(
            "linear, gelu, linear",
            [("linear", 128, _HALF), ("gelu", 1 << 19, _HALF), ("linear", 128, _HALF)],
        ),
        _chain("ten adds", [("add", 1 << 18, "float32")] * 10),
        _one("chains", "adam", 1 << 20),
        _chain(
            "norm, product, softmax",
            [("rms_norm", 512, _BRAIN), ("matmul", 4096, _BRAIN), ("softmax", 512, _BRAIN)],
        ),
        _one("chains", "adam", 1 << 24),
    ),
)

# One case of each group in turn, so that a run that ends early has seen every group.
CASES = tuple(case for row in zip_longest(*_GROUPS) for case in row if case is not None)

# Kernels of about 10 to 16 µs (cold cache, H200), to compare the medians of fresh processes.
SHORT_CASES = (
    _one("batched", "linear", 1, _HALF),
    _one("elementwise", "add", 1 << 22),
    _one("reductions", "sum", 1 << 22),
    _one("layers", "softmax", 1024),
    _one("layers", "rms_norm", 1024),
    _one("products", "matmul", 512),
    _one("batched", "bmm", 128),
    _one("convolutions", "conv1x1", 16, _HALF),
)


def find(name: str) -> Case:
    """Return the case of this name."""
    return next(case for case in (*CASES, *SHORT_CASES) if case.name == name)
