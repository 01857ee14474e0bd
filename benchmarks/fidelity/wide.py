"""Draw workloads of the families that the first catalogue lacked, between the same bounds.

Each draw comes with the number of workloads that the dense recording has of it. The dense ones
have a seed of their own, and no blind draw repeats their sizes.
"""

import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from benchmarks.fidelity import accumulation as acc
from benchmarks.fidelity import layers as layer
from benchmarks.fidelity import more_operators as more
from benchmarks.fidelity import movement as move
from benchmarks.fidelity import selection as select
from benchmarks.fidelity import statistics_of_rows as stat
from benchmarks.fidelity.dense import conv_gradient, dense, focused, repeated_draw
from benchmarks.fidelity.unseen import Draw, draws, sizes_of
from benchmarks.fidelity.workload import Workload

SEED = 7_033
_KI, _MI = 1 << 10, 1 << 20
_HALF, _FLOAT = "float16 bfloat16", "float32"
_ANY = f"{_HALF} {_FLOAT}"
_WHOLE = "int64 int32 uint8"
_LINE = {"n": (128, 128 * _MI)}
# The virtual GPU needs the values of what it selects by them, and of larger tensors it has none.
_SHORT_LINE = {"n": (128, 4 * _MI)}
_MATRIX = {"rows": (4, 64 * _KI), "columns": (4, 64 * _KI)}
_CUBE = {"outer": (1, 4 * _KI), "length": (4, 8 * _KI), "inner": (2, 4 * _KI)}
_IMAGES = {"batch": (1, 128), "channels": (3, 512), "size": (8, 224)}
_SIDE, _SMALL = (16, 8 * _KI), (16, _KI)
# Draws of the first catalogue of which the dense recording gets more.
_MORE_OF = {"conv": 1_500, "conv_backward": 700}

Counted = tuple[int, Draw]


def _times(n: int) -> Callable[[dict[str, Any]], int]:
    """Return a function that counts the elements of tensors that each have all the sizes."""
    return lambda p: n * math.prod(size for size in p.values() if isinstance(size, int))


def _area(p: dict[str, Any]) -> int:
    return int(p["rows"] * p["columns"])


def _pixels(n: int) -> Callable[[dict[str, Any]], int]:
    return lambda p: n * int(p["batch"] * p["channels"] * p["size"] ** 2)


def _either_way(rng: random.Random, p: dict[str, Any]) -> dict[str, Any]:
    return {**p, "dim": rng.randrange(2)}


def _statistics() -> Iterator[Counted]:
    names, matrix = ",".join(stat.STATISTICS), {"rows": (4, 256 * _KI), "columns": (4, 256 * _KI)}
    middle = "sum,mean,max,argmax,var,norm,logsumexp,amax"
    cube, images = _CUBE, _IMAGES
    yield 1_100, Draw(16, "statistic", stat.statistic, _ANY, matrix, _area, names, _either_way)
    yield 450, Draw(8, "statistic", stat.statistic_of_all, _ANY, _LINE, _times(1), names)
    yield 300, Draw(6, "statistic", stat.reduce_middle, _ANY, cube, _times(1), middle)
    names = ",".join(stat.OPS_ON_IMAGES)
    yield 280, Draw(5, "statistic", stat.reduce_images, _ANY, images, _pixels(1), names)
    names = ",".join(stat.SCANS)
    yield 450, Draw(6, "scan", stat.scan, _ANY, _MATRIX, _area, names, _either_way)
    names = ",".join(stat.ACROSS)
    yield 200, Draw(2, "softmax", stat.softmax_across, _ANY, cube, _times(2), names)


def _accumulation() -> Iterator[Counted]:
    def rows(p: dict[str, Any]) -> int:
        return int((p["targets"] + 2 * p["n"]) * p["columns"])

    many = (16, 256 * _KI)
    table, names = {"targets": many, "n": many, "columns": (1, 2 * _KI)}, ",".join(acc.ROWS)
    yield 1_100, Draw(14, "accumulation", acc.indexed_rows, _ANY, table, rows, names)
    line, names = {"targets": (16, 16 * _MI), "n": (16, 16 * _MI)}, ",".join(acc.PLACES)
    yield (
        550,
        Draw(
            8,
            "accumulation",
            acc.indexed_places,
            _ANY,
            line,
            lambda p: p["targets"] + 4 * p["n"],
            names,
        ),
    )
    bins, names = {"bins": (2, 64 * _KI), "n": (16, 4 * _MI)}, ",".join(acc.COUNTED)
    yield (
        180,
        Draw(
            2, "accumulation", acc.counted, "int64", bins, lambda p: p["bins"] + 17 * p["n"], names
        ),
    )
    matrix = {**_MATRIX, "n": (16, 4 * _MI)}
    yield (
        180,
        Draw(
            2,
            "accumulation",
            acc.pairs,
            _ANY,
            matrix,
            lambda p: _area(p) + 5 * p["n"],
            "read,write,add",
        ),
    )


def _movement() -> Iterator[Counted]:
    names = ",".join(move.MATRICES)
    yield 1_300, Draw(18, "movement", move.moved, _ANY, _MATRIX, lambda p: 3 * _area(p), names)
    four = {"a": (1, 512), "b": (2, _KI), "c": (2, _KI), "d": (2, _KI)}
    names = ",".join(move.PERMUTATIONS)
    yield 450, Draw(6, "movement", move.permuted, _ANY, four, _times(2), names)
    names = ",".join(move.IMAGES)
    images = {"batch": (1, 64), "channels": (4, 256), "size": (8, 224)}
    yield 550, Draw(8, "movement", move.moved_images, _ANY, images, _pixels(4), names, _rounded)


def _rounded(_rng: random.Random, p: dict[str, Any]) -> dict[str, Any]:
    """Round the sizes so that pixels can be shuffled."""
    return {**p, "channels": -(-p["channels"] // 4) * 4, "size": -(-p["size"] // 2) * 2}


def _selection() -> Iterator[Counted]:
    names = ",".join(select.BY_VALUE)
    yield 420, Draw(7, "selection", select.selected, _ANY, _SHORT_LINE, _times(3), names)
    line, names = {"n": (128, 16 * _MI), "few": (2, 16 * _KI)}, ",".join(select.LINES)
    yield (
        500,
        Draw(
            8, "selection", select.ordered, f"{_FLOAT} float16", line, lambda p: 12 * p["n"], names
        ),
    )
    names = ",".join(select.ROWS)
    yield (
        600,
        Draw(
            8,
            "selection",
            select.ordered_rows,
            f"{_FLOAT} float16",
            {"rows": (1, 64 * _KI), "columns": (16, 64 * _KI)},
            lambda p: 12 * _area(p),
            names,
        ),
    )
    names = ",".join(select.DRAWN)
    matrix = {"rows": (1, 64 * _KI), "columns": (8, 64 * _KI)}
    yield (
        330,
        Draw(4, "selection", select.drawn_rows, _FLOAT, matrix, lambda p: 8 * _area(p), names),
    )


def _elementwise() -> Iterator[Counted]:
    yield 850, Draw(12, "pointwise", more.unary, _ANY, _LINE, _times(3), ",".join(more.UNARY))
    yield 450, Draw(8, "pointwise", more.binary, _ANY, _LINE, _times(3), ",".join(more.BINARY))
    names = ",".join(more.WHOLE[:-4])
    yield 250, Draw(4, "pointwise", more.whole, _WHOLE, _LINE, _times(3), names)
    names = ",".join(more.WHOLE[-4:])
    yield 120, Draw(2, "pointwise", more.whole, "int64 int32", _SHORT_LINE, _times(3), names)
    names = ",".join(more.BROADCAST)
    yield 450, Draw(6, "pointwise", more.broadcast, _ANY, _MATRIX, lambda p: 2 * _area(p), names)
    names = ",".join(more.COMPARED)
    yield 300, Draw(5, "pairwise loss", more.compared, _ANY, _LINE, _times(4), names)
    yield 150, Draw(5, "pairwise loss", more.compared_backward, _ANY, _LINE, _times(6), names)


def _products() -> Iterator[Counted]:
    def matrices(p: dict[str, Any]) -> int:
        return int(p["m"] * p["k"] + p["k"] * p["n"] + p["m"] * p["n"])

    square, names = {"m": _SIDE, "k": _SIDE, "n": _SIDE}, ",".join(more.TURNS)
    yield 700, Draw(6, "matmul", more.turned_matmul, f"{_ANY} tf32", square, matrices, names)
    batched = {"batch": (2, 256), "m": _SMALL, "k": _SMALL, "n": _SMALL}
    yield (
        450,
        Draw(4, "bmm", more.turned_bmm, _ANY, batched, lambda p: p["batch"] * matrices(p), names),
    )
    names = ",".join(more.VECTORS)
    yield 300, Draw(4, "vectors", more.with_vector, _ANY, _MATRIX, _area, names)
    square, names = {"batch": (1, 32), "n": (4, 256)}, ",".join(more.FACTORED)
    yield (
        170,
        Draw(
            3,
            "linalg",
            more.factored,
            _FLOAT,
            square,
            lambda p: 4 * p["batch"] * p["n"] ** 2,
            names,
        ),
    )


def _layers() -> Iterator[Counted]:
    names, dtypes = ",".join(more.RESIZED), f"float16 {_FLOAT}"
    yield 450, Draw(5, "images", more.resized, dtypes, _IMAGES, _pixels(6), names)
    yield 400, Draw(5, "images", more.resized_gradient, dtypes, _IMAGES, _pixels(6), names)
    names = ",".join(more.NORMS)
    yield 200, Draw(3, "norm", more.normalized, _ANY, _IMAGES, _pixels(2), names)
    yield 200, Draw(3, "norm", more.normalized_gradient, _ANY, _IMAGES, _pixels(4), names)
    shape = {"batch": (1, 64), "channels": (3, 256), "filters": (16, 256), "size": (8, 112)}
    names = ",".join(more.CONVOLUTIONS)
    yield 550, Draw(6, "other conv", more.other_conv, dtypes, shape, _pixels(8), names)
    lists, names = {"n_tensors": (1, 200), "n": (16, 4 * _MI)}, ",".join(more.LISTS)
    yield (
        800,
        Draw(8, "foreach", more.lists, f"bfloat16 {_FLOAT} {_FLOAT}", lists, _times(3), names),
    )


def wide_draws() -> Iterator[Counted]:
    """Return the draw of each operator, each with its number of dense workloads."""
    groups = (_statistics, _accumulation, _movement, _selection, _elementwise, _products, _layers)
    for group in groups:
        yield from group()


def wide(seed: int = SEED) -> Iterator[Workload]:
    """Draw the dense workloads of the new families, and more convolutions."""
    taken = {sizes_of(workload) for workload in itertools.chain(dense(), focused())}
    again = [
        replace(draw, n=_MORE_OF[draw.make.__name__]) for draw in draws() if draw.family == "conv"
    ]
    gradients = {layer.conv_backward: conv_gradient}
    again = [replace(draw, make=gradients.get(draw.make, draw.make)) for draw in again]
    counted = [replace(draw, n=n) for n, draw in wide_draws()]
    yield from repeated_draw(seed, [*again, *counted], taken)
