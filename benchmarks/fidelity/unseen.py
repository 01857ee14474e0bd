"""Random workloads, of sizes that nobody chose, for the blind test of the model.

The bounds, the number of draws and the seed were written down before any of them was recorded.
Once somebody has looked at their errors and changed the model, they are not unseen any more: then
take another seed, and record again.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from benchmarks.fidelity import layers as layer
from benchmarks.fidelity import operators as op
from benchmarks.fidelity.workload import UNSEEN, Workload
from gpulab.device.work import Work

# In the order of the tests. The errors of all but the last have been seen, and the model changed.
SEEDS = (20_261_121, 67_732_589, 88_740_094, 78_474_977)
# 1 KiB to 512 MiB for all tensors of a workload, written down before the first draw.
SMALLEST_BYTES, LARGEST_BYTES = 1 << 10, 1 << 29
# Sizes are rounded to multiples of these: most programs use round sizes, and kernels depend on it.
_GRANULES = (1, 8, 64)

_KI, _MI = 1 << 10, 1 << 20
_HALF, _FLOAT = "float16 bfloat16", "float32"
_ANY = f"{_HALF} {_FLOAT}"

Sizes = dict[str, tuple[int, int]]
Parameters = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Draw:
    """How to draw the workloads of one operator.

    Attributes
    ----------
    n
        Number of workloads.
    dtypes, ops
        Names to choose from, separated by spaces and by commas; every op comes once before any
        comes twice.
    sizes
        Least and largest value of each size, drawn log-uniformly.
    n_elements
        Takes the parameters and returns roughly the number of elements read or written, to bound
        the memory.
    also
        Draws the parameters that are not sizes, and returns all of them.
    """

    n: int
    family: str
    make: Callable[..., Work]
    dtypes: str
    sizes: Sizes
    n_elements: Callable[[Parameters], int]
    ops: str = ""
    also: Callable[[random.Random, Parameters], Parameters] | None = None


def _product(times: int) -> Callable[[Parameters], int]:
    """Return a function that counts the elements of tensors that each have all the sizes."""
    return lambda p: times * math.prod(size for size in p.values() if isinstance(size, int))


def _matrices(p: Parameters) -> int:
    return int(p["m"] * p["k"] + p["k"] * p["n"] + p["m"] * p["n"])


def _arithmetic() -> Iterator[Draw]:
    side, small = (16, 8 * _KI), (16, _KI)
    square = {"m": side, "k": side, "n": side}
    for n, dtypes in ((5, _HALF), (3, _FLOAT), (1, "tf32"), (1, "float64")):
        yield Draw(n, "matmul", op.matmul, dtypes, square, _matrices)
    batched = {"batch": (2, 256), "m": small, "k": small, "n": small}
    yield Draw(4, "bmm", op.bmm, _ANY, batched, lambda p: p["batch"] * _matrices(p))
    yield Draw(
        5,
        "linear",
        layer.linear,
        _ANY,
        {"batch": (1, 8 * _KI), "n_in": (64, 8 * _KI), "n_out": (64, 16 * _KI)},
        lambda p: p["batch"] * (p["n_in"] + p["n_out"]) + p["n_in"] * p["n_out"],
    )


def _elementwise() -> Iterator[Draw]:
    line, matrix = {"n": (128, 128 * _MI)}, {"rows": (16, 64 * _KI), "columns": (16, 64 * _KI)}
    names = ",".join(name for name in op.ELEMENTWISE if not name.startswith("to "))
    yield Draw(14, "elementwise", op.elementwise, _ANY, line, _product(3), names)
    yield Draw(2, "elementwise", op.elementwise, _HALF, line, _product(3), "to float32")
    yield Draw(
        2, "elementwise", op.elementwise, _FLOAT, line, _product(2), "to float16,to bfloat16"
    )
    yield Draw(1, "elementwise", op.where, _ANY, line, _product(4))
    yield Draw(1, "elementwise", op.masked_fill, _ANY, line, _product(3))
    yield Draw(2, "elementwise", op.add_row, _ANY, matrix, _product(2))
    yield Draw(2, "elementwise", op.transposed_copy, _ANY, matrix, _product(2))
    yield Draw(3, "elementwise", op.cat, _ANY, {"n_parts": (2, 8), **matrix}, _product(2))


def _matrix(p: Parameters) -> int:
    return int(p["rows"] * p["columns"])


def _either_way(rng: random.Random, p: Parameters) -> Parameters:
    return {**p, "dim": rng.randrange(2)}


def _reductions() -> Iterator[Draw]:
    names = ",".join(op.REDUCTIONS)
    yield Draw(4, "reduction", op.reduce_all, _ANY, {"n": (256, 256 * _MI)}, _product(1), names)
    matrix = {"rows": (4, 256 * _KI), "columns": (4, 256 * _KI)}
    yield Draw(6, "reduction", op.reduce_dim, _ANY, matrix, _matrix, names, _either_way)


def _along_rows() -> Iterator[Draw]:
    matrix = {"rows": (1, 64 * _KI), "columns": (16, 128 * _KI)}
    for n, family, dtypes, names in (
        (4, "softmax", _ANY, "softmax,log_softmax"),
        (3, "scan", _FLOAT, "cumsum"),
        (3, "sort", _FLOAT, "sort,argsort"),
        (3, "fft", _FLOAT, "rfft,fft"),
    ):
        yield Draw(n, family, op.along_rows, dtypes, matrix, _product(3), names)
    long = {"rows": (1, 64 * _KI), "columns": (128, 128 * _KI)}
    yield Draw(3, "topk", op.along_rows, _FLOAT, long, _product(1), "topk 8,topk 64")
    yield Draw(2, "linalg", op.cholesky, _FLOAT, {"n": (64, 4 * _KI)}, lambda p: 2 * p["n"] ** 2)


def _norms() -> Iterator[Draw]:
    matrix = {"rows": (16, 64 * _KI), "columns": (64, 16 * _KI)}
    yield Draw(3, "norm", layer.layer_norm, _ANY, matrix, _product(2))
    yield Draw(2, "norm", layer.rms_norm, _ANY, matrix, _product(2))
    images = {"batch": (1, 128), "channels": (8, 512), "size": (7, 256)}
    yield Draw(2, "norm", layer.batch_norm, _ANY, images, _image_elements)
    # `_grouped` rounds the channels, so that the number of groups divides them.
    yield Draw(2, "norm", layer.group_norm, _ANY, images, _image_elements, also=_grouped)
    yield Draw(2, "dropout", layer.dropout, _ANY, {"n": (256, 128 * _MI)}, _product(3))


def _image_elements(p: Parameters) -> int:
    return int(2 * p["batch"] * p["channels"] * p["size"] ** 2)


def _grouped(rng: random.Random, p: Parameters) -> Parameters:
    n_groups = rng.choice((4, 8, 16, 32))
    return {**p, "channels": _round(p["channels"], n_groups), "groups": n_groups}


def _table(p: Parameters) -> int:
    return int((2 * p["n"] + 32_000) * p["columns"])


def _indexing() -> Iterator[Draw]:
    lookup = {"n": (64, 256 * _KI), "columns": (16, 4 * _KI)}
    yield Draw(3, "gather", layer.embedding, _ANY, lookup, _table)
    matrix = {"rows": (16, 64 * _KI), "columns": (16, 64 * _KI)}
    for make in (op.gather, op.index_select, op.scatter_add):
        yield Draw(2, "gather", make, f"{_FLOAT} float16", matrix, _product(6))


def _convolved_elements(p: Parameters) -> int:
    return int(p["batch"] * (p["channels"] + p["filters"]) * p["size"] ** 2)


def _enlarged(p: Parameters) -> int:
    return 3 * _image_elements(p)


def _images() -> Iterator[Draw]:
    shape = {"batch": (1, 128), "channels": (3, 512), "filters": (16, 512), "size": (7, 224)}
    dtypes = f"float16 {_FLOAT}"
    yield Draw(7, "conv", layer.conv, dtypes, shape, _convolved_elements, also=_convolved)
    yield Draw(3, "conv", layer.conv_backward, dtypes, shape, _convolved_elements, also=_convolved)
    images = {"batch": (1, 128), "channels": (3, 512), "size": (8, 224)}
    yield Draw(5, "images", layer.images, dtypes, images, _enlarged, ",".join(layer.IMAGES))


def _convolved(rng: random.Random, p: Parameters) -> Parameters:
    """Choose kernel, stride, layout, and now and then one filter for each channel."""
    kernel = rng.choice((1, 3, 3, 3, 5, 7))
    depthwise = kernel > 1 and rng.random() < 1 / 6
    return {
        **p,
        "filters": p["channels"] if depthwise else p["filters"],
        "kernel": kernel,
        "stride": rng.choice((1, 1, 2)),
        "groups": p["channels"] if depthwise else 1,
        "layout": rng.choice(("", "channels_last")),
    }


def _headed(rng: random.Random, p: Parameters) -> Parameters:
    return {**p, "dim": rng.choice((32, 64, 128))}


def _models() -> Iterator[Draw]:
    shape = {"batch": (1, 32), "heads": (1, 32), "length": (64, 4 * _KI)}
    masks = "full,causal"
    # Eight tensors also cover the gradients, and float32, for which fewer fused kernels exist.
    for n, dtypes in ((5, _HALF), (1, _FLOAT)):
        yield Draw(n, "attention", layer.attention, dtypes, shape, _product(8), masks, _headed)
    yield Draw(3, "attention", layer.attention_backward, _HALF, shape, _product(8), masks, _headed)
    scores = {"rows": (16, 16 * _KI), "classes": (10, 128 * _KI)}
    for make in (layer.cross_entropy, layer.cross_entropy_backward):
        yield Draw(2, "loss", make, _FLOAT, scores, _product(3))


def _training() -> Iterator[Draw]:
    names = ",".join(layer.OPTIMIZERS)
    sizes = {"n_tensors": (2, 200), "n": (_KI, 4 * _MI)}
    yield Draw(7, "optimizer", layer.optimizer, _FLOAT, sizes, _product(4), names)
    line = {"n": (256, 128 * _MI)}
    yield Draw(5, "creation", op.create, _FLOAT, line, _product(1), ",".join(op.CREATIONS))
    yield Draw(1, "creation", op.bernoulli, _FLOAT, line, _product(1))


def _round(size: int, granule: int) -> int:
    return max(granule, round(size / granule) * granule)


def unseen(
    known: Iterable[Workload], role: str, seed: int, some: Iterable[Draw] | None = None
) -> Iterator[Workload]:
    """Draw the workloads of a seed, always the same ones, with sizes that no known one has.

    Parameters
    ----------
    known
        Workloads whose sizes must not come again.
    role
        The role of the new ones.
    seed
        The seed.
    some
        The draw of each operator; by default those of the first catalogue.
    """
    rng = random.Random(seed)  # noqa: S311 # a draw that can be repeated, not a secret
    taken = {sizes_of(workload) for workload in known}
    for draw in draws() if some is None else some:
        names = draw.ops.split(",")
        order = rng.sample(names, len(names))
        for i in range(draw.n):
            workload = drawn(rng, draw, order[i % len(order)], taken)
            taken.add(sizes_of(workload))
            yield replace(workload, role=role)


def draws() -> Iterator[Draw]:
    """Return the draw of each operator."""
    groups = (_arithmetic, _elementwise, _reductions, _along_rows, _norms)
    for group in (*groups, _indexing, _images, _models, _training):
        yield from group()


def sizes_of(workload: Workload) -> tuple[object, ...]:
    """Return the key by which two workloads differ: their function and sizes."""
    sizes = (size for size in workload.parameters.values() if isinstance(size, int))
    return workload.make.__name__, *sizes


def drawn(rng: random.Random, draw: Draw, name: str, taken: set[tuple[object, ...]]) -> Workload:
    """Draw until the memory is within the bounds and the sizes are new."""
    while True:
        dtype = rng.choice(draw.dtypes.split())
        granule = rng.choice(_GRANULES)
        parameters = {"op": name} if name else {}
        for size, (least, most) in draw.sizes.items():
            value = math.exp(rng.uniform(math.log(least), math.log(most + 1)))
            # A size below the granule stays as it is: rounded, it would grow to the granule.
            parameters[size] = _round(int(value), granule if value >= granule else 1)
        if draw.also:
            parameters = draw.also(rng, parameters)
        torch_type = torch.float32 if dtype == "tf32" else getattr(torch, dtype)
        size_bytes = draw.n_elements(parameters) * torch_type.itemsize
        workload = Workload(UNSEEN, draw.family, draw.make, dtype, parameters)
        if SMALLEST_BYTES <= size_bytes <= LARGEST_BYTES and sizes_of(workload) not in taken:
            return workload
