"""Coordinates of calls on the efficiency surfaces, and how reductions are launched."""

from math import log2

import pytest
import torch

from gpulab.virtual.kernels._coordinates import log2_alignment, log2_size, surface_point_of
from gpulab.virtual.kernels._operator_call import OperatorCall
from gpulab.virtual.kernels._reduction_launch import reduction_launch
from gpulab.virtual.tensors._storage import TensorLayout, layout


def dense(*sizes: int, dtype: torch.dtype = torch.float32) -> TensorLayout:
    """Return the layout of a contiguous tensor."""
    example = torch.empty(sizes, device="meta")
    return layout(tuple(sizes), example.stride(), dtype)


def call(name: str, reads: list[TensorLayout], write: TensorLayout, *args: object) -> OperatorCall:
    """Return a call in single precision."""
    return OperatorCall(name, args, {}, reads, [write], "float32", 0, is_in_place=False)


def test_an_alignment_is_the_power_of_two_in_a_size() -> None:
    """24 bytes have 8, 7 bytes one; 16 is the most that a load can use, and 0 fits all."""
    assert [log2_alignment(n) for n in (24, 7, 64, 0)] == [3.0, 0.0, 4.0, 4.0]
    assert log2_size(8) == 3.0
    assert log2_size(0) == 0.0


def test_kinds_of_calls_have_surfaces_of_their_own() -> None:
    """By name, by prefix, by arithmetic, and else by the family of the last kernel."""
    x = dense(64, 64)
    assert surface_point_of(call("_softmax", [x], x, None, -1), "softmax")[0] == "softmax"  # type: ignore[index] # it has one
    found = {
        ("mm", "gemm"): "single product",
        ("add", "elementwise"): "elementwise",
        ("_foreach_add", "foreach"): "foreach",
        ("sum", "reduction"): "reduction",
    }
    for (name, family), surface in found.items():
        surface_point = surface_point_of(call(name, [x, x], x), family)
        assert surface_point is not None
        assert surface_point.surface == surface


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (1024, (6.0, 1.0)),  # 64 tiles are less than half a wave of 132
        (1152, (log2(81), log2(132 / 81))),
        (2048, (8.0, log2(2 * 132 / 256))),  # nearly two waves
        (2176, (log2(289), log2(3 * 132 / 289))),  # a third one has begun
    ],
)
def test_a_product_says_how_its_tiles_fill_waves(n: int, expected: tuple[float, float]) -> None:
    """Tiles of 128 by 128, and how much longer whole waves of them take, as logarithms."""
    x = dense(n, n)
    surface_point = surface_point_of(call("mm", [x, x], x), "gemm")
    assert surface_point is not None
    assert surface_point.coordinates[-2:] == pytest.approx(expected)


def test_what_nothing_measured_is_like_has_no_place() -> None:
    """A family without a surface, and a call that writes nothing."""
    x = dense(64)
    assert surface_point_of(call("renorm", [x], x), "other") is None
    nothing = OperatorCall("add", (), {}, [x], [], "float32", 0, is_in_place=False)
    assert surface_point_of(nothing, "elementwise") is None


def test_a_depthwise_convolution_is_apart() -> None:
    """Its kernels are not those of a product."""
    x, weight = dense(2, 8, 16, 16), dense(8, 1, 3, 3)
    given = call("convolution", [x, weight], x, x, weight, None, [1, 1])
    surface_point = surface_point_of(given, "depthwise")
    assert surface_point is not None
    assert surface_point.surface == "depthwise"


@pytest.mark.parametrize(
    ("sizes", "dim", "expected"),
    [
        # All of 2**20: loads of four, 512 threads a block, blocks share the one result.
        ((1 << 20,), [], (1, 1 << 20, 1, 128, 16, 512, True)),
        # All of 160: loads of four leave work for 32 threads.
        ((160,), [], (1, 160, 1, 1, 5, 32, True)),
        # Few long columns: the threads of a block share each, though there are many threads.
        ((512, 8), [0], (8, 512, 1, 1, 8, 2, False)),
        # Rows of 4,096: a warp for each.
        ((1024, 4096), [1], (1024, 4096, 64, 1, 128, 32, True)),
        # Longer ones: a block for each, across its warps.
        ((16, 65_536), [1], (16, 65_536, 16, 1, 128, 32, True)),
        # Short rows: a warp for each, several in a block.
        ((4096, 32), [1], (4096, 32, 256, 1, 1, 32, True)),
        # Columns: four results a thread.
        ((64, 4096), [0], (4096, 64, 32, 1, 16, 32, False)),
    ],
)
def test_a_reduction_is_launched_by_its_sizes(
    sizes: tuple[int, ...], dim: list[int], expected: tuple[int, ...]
) -> None:
    """Results, length, blocks, blocks a result, elements a thread, width, direction."""
    source = dense(*sizes)
    out = dense(*[n for i, n in enumerate(sizes) if i not in (dim or range(len(sizes)))])
    found = reduction_launch(call("sum", [source], out, None, dim), source)
    assert (
        found.n_results,
        found.length,
        found.n_blocks,
        found.n_sharing,
        found.n_per_thread,
        found.width,
        found.is_along,
    ) == expected
