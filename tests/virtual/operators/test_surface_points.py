"""Coordinates of calls on the efficiency surfaces, and how reductions are launched."""

from math import log2
from typing import Any

import pytest
import torch

from gpulab.virtual.operators._lowering import lower_call
from gpulab.virtual.operators._models import model_of
from gpulab.virtual.operators._operator_call import OperatorCall
from gpulab.virtual.operators._reduction_launch import reduction_launch
from gpulab.virtual.tensors._storage import TensorLayout, layout


def dense(*sizes: int, dtype: torch.dtype = torch.float32) -> TensorLayout:
    """Return the layout of a contiguous tensor."""
    example = torch.empty(sizes, device="meta")
    return layout(tuple(sizes), example.stride(), dtype)


def call(
    name: str, reads: list[TensorLayout], write: TensorLayout, *args: object, dim: object = None
) -> OperatorCall:
    """Return a call in single precision."""
    return OperatorCall(name, args, {}, reads, [write], "float32", 0, is_in_place=False, dim=dim)


def surface_point_of(call: OperatorCall) -> Any:  # noqa: ANN401 # a point or None
    """Return the point of a call on its surface, by the model of its operator."""
    return lower_call(call, model_of(call.name)).surface_point


def test_kinds_of_calls_have_surfaces_of_their_own() -> None:
    """A call finds its surface by its name, its prefix or type, else by the kernel family."""
    x = dense(64, 64)
    assert surface_point_of(call("_softmax", [x], x, dim=-1))[0] == "softmax"
    surfaces = {
        "mm": "single product",
        "add": "elementwise",
        "_foreach_add": "foreach",
        "sum": "reduction",
    }
    for name, surface in surfaces.items():
        surface_point = surface_point_of(call(name, [x, x], x))
        assert surface_point is not None
        assert surface_point.surface == surface


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (1024, (6.0, 1.0)),  # 64 tiles are less than half a wave of 132
        (1152, (log2(81), log2(132 / 81))),
        (2048, (8.0, log2(2 * 132 / 256))),  # 256 tiles nearly fill two waves
        (2176, (log2(289), log2(3 * 132 / 289))),  # 289 tiles need a third wave
    ],
)
def test_a_matmul_has_its_tiles_and_waves_as_coordinates(
    n: int, expected: tuple[float, float]
) -> None:
    """A matmul's last coordinates are the logarithms of its tiles and of its wave rounding."""
    x = dense(n, n)
    surface_point = surface_point_of(call("mm", [x, x], x))
    assert surface_point is not None
    assert surface_point.coordinates[-2:] == pytest.approx(expected)


def test_a_call_unlike_all_measured_ones_has_no_surface_point() -> None:
    """A family without a surface, and a call that writes nothing, have no surface point."""
    x = dense(64)
    assert surface_point_of(call("renorm", [x], dense(8))) is None
    nothing = OperatorCall("add", (), {}, [x], [], "float32", 0, is_in_place=False)
    assert surface_point_of(nothing) is None


@pytest.mark.parametrize(
    ("sizes", "dim", "expected"),
    [
        # A sum of all 2**20: loads of four, 512 threads a block, and blocks share the one result.
        ((1 << 20,), [], (1, 1 << 20, 1, 128, 16, 512, True)),
        # A sum of all 160: loads of four leave work for only 32 threads.
        ((160,), [], (1, 160, 1, 1, 5, 32, True)),
        # From 128 elements on, rows are read in loads of four as well.
        ((4, 160), [1], (4, 160, 1, 1, 5, 32, True)),
        ((128,), [], (1, 128, 1, 1, 4, 32, True)),
        # Few long columns: the threads of a block share one column.
        ((512, 8), [0], (8, 512, 1, 1, 8, 2, False)),
        # Rows of 4,096: one warp reduces each row.
        ((1024, 4096), [1], (1024, 4096, 64, 1, 128, 32, True)),
        # Longer rows: one block reduces each row with all its warps.
        ((16, 65_536), [1], (16, 65_536, 16, 1, 128, 32, True)),
        # Short rows: one warp reduces each row, and a block has several.
        ((4096, 32), [1], (4096, 32, 256, 1, 1, 32, True)),
        # Columns: each thread reduces four of them.
        ((64, 4096), [0], (4096, 64, 32, 1, 16, 32, False)),
    ],
)
def test_a_reduction_is_launched_by_its_sizes(
    sizes: tuple[int, ...], dim: list[int], expected: tuple[int, ...]
) -> None:
    """The sizes of a reduction decide its blocks, its threads and the work of each."""
    source = dense(*sizes)
    out = dense(*[n for i, n in enumerate(sizes) if i not in (dim or range(len(sizes)))])
    assert reduction_launch(call("sum", [source], out, dim=dim), source) == expected


def test_a_strided_copy_is_described_by_its_common_dimensions() -> None:
    """Dimensions that follow one another in source and result count as one."""
    out = dense(4, 8, 16, 32)
    # Heads and positions change places: positions stay together with nothing.
    heads = layout((4, 8, 16, 32), (4096, 32, 256, 1), torch.float32)
    found = surface_point_of(call("clone", [heads], out, None))
    assert found is not None
    assert found.surface == "strided"
    n_dims, inner, step, following, step_next = found.coordinates[1:6]
    assert (n_dims, inner, step) == (4.0, log2(32), 0.0)
    assert (following, step_next) == (log2(16), log2(256))
    row = layout((4, 8, 16, 32), (0, 0, 0, 1), torch.float32)
    repeated = surface_point_of(call("clone", [row], out, None))
    assert repeated is not None
    # All rows are the same one: two dimensions, and the second has no step in the source.
    assert repeated.coordinates[1:6] == (2.0, log2(32), 0.0, log2(512), -1.0)


def test_an_index_is_described_by_its_pieces_and_its_table() -> None:
    """Calls with an index have what they move, in which pieces, and what they do with it."""
    table, index = dense(1024, 16), dense(256, dtype=torch.int64)
    values, accumulate = dense(256, 16), True
    added = call("index_put", [table, index, values], table, table, [index], values, accumulate)
    found = surface_point_of(added)
    assert found is not None
    assert found.surface == "index add"
    assert found.coordinates[:4] == (12.0, 4.0, 4.0, 14.0)
    assert found.coordinates[-3:] == ("add", "whole", "")
    filled = call("index_fill", [table, index], table, table, 0, index, 1.0)
    rows = surface_point_of(filled)
    assert rows is not None
    assert rows.surface == "index write"
    assert rows.coordinates[:4] == found.coordinates[:4]
    mask = dense(1024, dtype=torch.bool)
    by_mask = call("index", [table, mask], dense(500, 16), table, [mask])
    assert surface_point_of(by_mask)[0] == "selection"
