"""Workloads listed by hand: some for fitting the model's constants, the others held out."""

from collections.abc import Callable, Iterator

from benchmarks.fidelity import layers as layer
from benchmarks.fidelity import operators as op
from benchmarks.fidelity.workload import FIT, HELD_OUT, Workload
from gpulab.device.work import Work

_KI, _MI = 1 << 10, 1 << 20


def _group(family: str, make: Callable[..., Work], names: str, rows: str) -> Iterator[Workload]:
    """Read workloads from lines of role (F or H), dtype and values of the named parameters."""
    for line in rows.strip().splitlines():
        role, dtype, *values = (cell.strip() for cell in line.split(","))
        given = [int(value) if value.lstrip("-").isdigit() else value for value in values]
        parameters = dict(zip(names.split(), given, strict=False))
        yield Workload({"F": FIT, "H": HELD_OUT}[role], family, make, dtype, parameters)


# Half of the workloads of each family are held out: the constants that were set by hand never saw
# them (docs/fidelity.md).
def _arithmetic() -> Iterator[Workload]:
    """Yield matmuls: square and odd shapes, from one tile to a full GPU."""
    yield from _group("matmul", op.matmul, "m k n", """
        F, float16, 128, 128, 128
        H, float16, 64, 64, 64
        H, float16, 256, 256, 256
        F, float16, 512, 512, 512
        H, float16, 1024, 1024, 1024
        F, float16, 2048, 2048, 2048
        F, float16, 4096, 4096, 4096
        H, float16, 8192, 8192, 8192
        F, bfloat16, 1024, 1024, 1024
        H, bfloat16, 4096, 4096, 4096
        F, bfloat16, 8192, 8192, 8192
        F, float32, 64, 64, 64
        F, float32, 256, 256, 256
        H, float32, 512, 512, 512
        F, float32, 1024, 1024, 1024
        H, float32, 2048, 2048, 2048
        F, float32, 4096, 4096, 4096
        H, float32, 8192, 8192, 8192
        F, tf32, 1024, 1024, 1024
        F, tf32, 4096, 4096, 4096
        H, tf32, 2048, 2048, 2048
        F, float64, 512, 512, 512
        F, float64, 2048, 2048, 2048
        H, float64, 1024, 1024, 1024
        F, float16, 1000, 777, 333
        H, float16, 3000, 500, 1777
        F, bfloat16, 16, 4096, 4096
        H, bfloat16, 32, 8192, 1024
        F, float32, 4096, 64, 4096
        H, float32, 64, 8192, 64
    """)  # fmt: skip
    yield from _group("bmm", op.bmm, "batch m k n", """
        F, float16, 64, 512, 64, 512
        F, float32, 16, 256, 256, 256
        H, float16, 128, 256, 256, 256
        H, float32, 64, 128, 64, 128
    """)  # fmt: skip
    yield from _group("linear", layer.linear, "batch n_in n_out", """
        F, float32, 64, 1024, 1024
        F, float16, 256, 1024, 1024
        F, float16, 4096, 4096, 4096
        F, bfloat16, 1, 4096, 4096
        H, float32, 1, 1024, 1024
        H, float32, 512, 1024, 4096
        H, bfloat16, 32, 4096, 11008
        H, float16, 1024, 1024, 4096
    """)  # fmt: skip


def _elementwise() -> Iterator[Workload]:
    """Yield elementwise operators, from 1 KB to 256 MB."""
    rows = [
        *[(FIT, "add", "float32", n) for n in (256, 64 * _KI, _MI, 16 * _MI, 64 * _MI)],
        (FIT, "mul", "float16", 16 * _MI),
        (FIT, "exp", "float32", 4 * _MI),
        (FIT, "gelu", "float16", 4 * _MI),
        (FIT, "relu", "float32", 256 * _KI),
        (FIT, "copy", "float32", 16 * _MI),
        (FIT, "eq", "float32", 16 * _MI),
        (FIT, "to float32", "float16", 16 * _MI),
        (FIT, "fill", "float32", 16 * _MI),
        (HELD_OUT, "add", "float16", 4 * _MI),
        (HELD_OUT, "add in place", "float32", 8 * _MI),
        (HELD_OUT, "mul", "float32", 16 * _KI),
        (HELD_OUT, "mul", "float32", 32 * _MI),
        (HELD_OUT, "addcmul", "float32", 4 * _MI),
        (HELD_OUT, "exp", "float16", _MI),
        (HELD_OUT, "gelu", "float32", 16 * _MI),
        (HELD_OUT, "tanh", "float32", 2 * _MI),
        (HELD_OUT, "relu", "float16", 128 * _MI),
        (HELD_OUT, "copy", "float32", _MI),
        (HELD_OUT, "clamp", "bfloat16", 8 * _MI),
        (HELD_OUT, "gt", "float16", _MI),
        (HELD_OUT, "to bfloat16", "float32", 4 * _MI),
        (HELD_OUT, "to float16", "float32", 64 * _MI),
        (HELD_OUT, "zero", "float32", 4 * _MI),
    ]
    for role, name, dtype, n in rows:
        yield Workload(role, "elementwise", op.elementwise, dtype, {"op": name, "n": n})
    for make in (op.where, op.masked_fill):
        yield Workload(FIT, "elementwise", make, "float32", {"n": 4 * _MI})
        yield Workload(HELD_OUT, "elementwise", make, "float16", {"n": 16 * _MI})
    yield from _group("elementwise", op.add_row, "rows columns", """
        F, float32, 4096, 1024
        H, float16, 8192, 4096
    """)  # fmt: skip
    yield from _group("elementwise", op.transposed_copy, "rows columns", """
        F, float32, 4096, 4096
        H, float16, 2048, 8192
    """)  # fmt: skip
    yield from _group("elementwise", op.cat, "n_parts rows columns", """
        F, float32, 4, 1024, 1024
        H, float16, 2, 8192, 2048
    """)  # fmt: skip


def _reductions() -> Iterator[Workload]:
    """Yield reductions over everything, the last dimension or the first."""
    yield from _group("reduction", op.reduce_all, "op n", f"""
        F, float32, sum, {16 * _MI}
        F, float32, max, {4 * _MI}
        F, float32, sum, {_KI}
        H, float32, sum, {256 * _KI}
        H, float16, mean, {64 * _MI}
        H, float32, argmax, {_MI}
    """)  # fmt: skip
    yield from _group("reduction", op.reduce_dim, "op rows columns dim", """
        F, float32, sum, 4096, 4096, 1
        F, float32, sum, 4096, 4096, 0
        F, float32, argmax, 8192, 1024, 1
        F, float16, amax, 2048, 2048, 1
        H, float32, mean, 16384, 1024, 1
        H, float16, sum, 8192, 2048, 0
        H, float32, max, 1024, 32000, 1
        H, float32, var, 4096, 2048, 1
    """)  # fmt: skip


def _normalizations() -> Iterator[Workload]:
    """Yield softmax, norms and dropout."""
    yield from _group("softmax", op.along_rows, "op rows columns", """
        F, float32, softmax, 4096, 1024
        F, float16, softmax, 256, 256
        F, float32, softmax, 1024, 32768
        H, float16, softmax, 8192, 2048
        H, float32, log_softmax, 2048, 4096
    """)  # fmt: skip
    for make, shapes in (
        (layer.layer_norm, "F, float32, 4096, 1024\nH, float16, 16384, 768\nH, float32, 256, 512"),
        (layer.rms_norm, "F, float16, 4096, 4096\nH, float32, 2048, 1024"),
    ):
        yield from _group("norm", make, "rows columns", shapes)
    yield from _group("norm", layer.batch_norm, "batch channels size", """
        F, float32, 64, 64, 56
        H, float16, 32, 256, 28
    """)  # fmt: skip
    yield from _group("norm", layer.group_norm, "batch channels size groups", """
        F, float32, 16, 64, 64, 8
        H, float16, 8, 320, 64, 32
    """)  # fmt: skip
    yield from _group("dropout", layer.dropout, "n", f"""
        F, float32, {4 * _MI}
        H, float16, {16 * _MI}
    """)  # fmt: skip


def _indexing() -> Iterator[Workload]:
    """Yield reads and writes at random indices."""
    yield from _group("gather", layer.embedding, "n columns", """
        F, float32, 8192, 512
        H, float16, 4096, 1024
    """)  # fmt: skip
    for make in (op.gather, op.index_select, op.scatter_add):
        yield from _group("gather", make, "rows columns", """
            F, float32, 8192, 1024
            H, float32, 2048, 2048
        """)  # fmt: skip


def _orderings() -> Iterator[Workload]:
    """Yield scans, sorts, Fourier transforms and a factorization."""
    for family, rows in (
        ("scan", "F, float32, cumsum, 4096, 1024\nH, float32, cumsum, 1, 4194304"),
        ("sort", "F, float32, sort, 1, 1048576\nF, float32, sort, 4096, 1024"),
        ("sort", "H, float32, argsort, 1, 8388608\nH, float32, sort, 1024, 4096"),
        ("topk", "F, float32, topk 8, 1024, 4096\nH, float32, topk 64, 256, 32000"),
        ("fft", "F, float32, rfft, 1024, 4096\nH, float32, fft, 4096, 1024"),
    ):
        yield from _group(family, op.along_rows, "op rows columns", rows)
    yield from _group("linalg", op.cholesky, "n", "F, float32, 512\nH, float32, 1024")


def _images() -> Iterator[Workload]:
    """Yield convolutions, pooling and scaling."""
    names = "batch channels filters size kernel stride groups layout"
    yield from _group("conv", layer.conv, names, """
        F, float16, 32, 256, 256, 28, 1, 1, 1
        F, float16, 32, 128, 128, 28, 3, 1, 1
        F, float16, 64, 64, 64, 56, 3, 1, 1, channels_last
        F, float32, 32, 64, 64, 56, 3, 1, 1
        F, float32, 32, 128, 128, 28, 3, 1, 128
        H, float32, 32, 256, 512, 14, 1, 1, 1
        H, float32, 8, 128, 256, 56, 3, 2, 1
        H, float16, 32, 256, 256, 14, 3, 1, 1, channels_last
        H, float16, 32, 3, 64, 224, 7, 2, 1
        H, float16, 32, 256, 256, 28, 3, 1, 256
    """)  # fmt: skip
    yield from _group("conv", layer.conv_backward, names, """
        F, float32, 32, 64, 64, 56, 3, 1, 1
        H, float16, 32, 128, 128, 28, 3, 1, 1
    """)  # fmt: skip
    yield from _group("images", layer.images, "op batch channels size", """
        F, float32, max_pool, 32, 64, 112
        H, float16, avg_pool, 32, 128, 56
        F, float32, nearest, 8, 64, 128
        H, float32, bilinear, 8, 64, 64
    """)  # fmt: skip


def _models() -> Iterator[Workload]:
    """Yield attention and losses."""
    yield from _group("attention", layer.attention, "op batch heads length dim", """
        F, float16, full, 8, 16, 1024, 64
        F, bfloat16, causal, 4, 32, 2048, 128
        F, float32, full, 4, 8, 512, 64
        H, bfloat16, causal, 2, 16, 4096, 64
        H, float16, full, 16, 12, 512, 64
        H, float16, causal, 16, 4, 128, 64
    """)  # fmt: skip
    yield from _group("attention", layer.attention_backward, "op batch heads length dim", """
        F, float16, full, 8, 16, 512, 64
        H, bfloat16, causal, 4, 16, 1024, 128
    """)  # fmt: skip
    for make, rows in (
        (layer.cross_entropy, "F, float32, 4096, 32000\nH, float32, 256, 1000"),
        (layer.cross_entropy_backward, "F, float32, 2048, 10000\nH, float32, 8192, 32000"),
    ):
        yield from _group("loss", make, "rows classes", rows)


def _training() -> Iterator[Workload]:
    """Yield optimizers and random numbers."""
    yield from _group("optimizer", layer.optimizer, "op n_tensors n", f"""
        F, float32, Adam foreach, 20, {_MI}
        F, float32, Adam fused, 20, {_MI}
        F, float32, SGD momentum foreach, 20, {_MI}
        F, float32, clip_grad_norm, 20, {_MI}
        H, float32, Adam foreach, 200, {16 * _KI}
        H, float32, AdamW fused, 100, {64 * _KI}
        H, float32, AdamW foreach, 10, {4 * _MI}
        H, float32, SGD foreach, 50, {256 * _KI}
        H, float32, clip_grad_norm, 100, {64 * _KI}
    """)  # fmt: skip
    yield from _group("creation", op.create, "op n", f"""
        F, int64, arange, {_MI}
        F, float32, randn, {4 * _MI}
        F, float32, zeros, {16 * _MI}
        H, float32, arange, {16 * _MI}
        H, float32, randn, {64 * _MI}
        H, float32, rand, {16 * _MI}
        H, float32, ones, {_MI}
    """)  # fmt: skip
    yield from _group("creation", op.bernoulli, "n", f"""
        F, float32, {4 * _MI}
        H, float32, {16 * _MI}
    """)  # fmt: skip


def listed() -> Iterator[Workload]:
    """Yield all listed workloads."""
    groups = (_arithmetic, _elementwise, _reductions, _normalizations, _indexing)
    more = (_orderings, _images, _models, _training)
    for group in (*groups, *more):
        yield from group()
