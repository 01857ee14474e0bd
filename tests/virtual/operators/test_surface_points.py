"""How reductions are launched, which is their point on the surface of measured efficiencies."""

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


def test_a_call_unlike_all_measured_ones_has_no_surface_point() -> None:
    """A family without a surface, and a call that writes nothing, have no surface point."""
    x = dense(64)
    nothing = OperatorCall("add", (), {}, [x], [], "float32", 0, is_in_place=False)
    for unlike in (call("renorm", [x], dense(8)), nothing):
        assert lower_call(unlike, model_of(unlike.name)).surface_point is None


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
