"""Operators are lowered to the kernels that CUDA would launch, with their sizes and bytes."""

from collections.abc import Callable

import pytest
import torch

from gpulab.virtual import KernelWork, Kind, VirtualGpu
from gpulab.virtual.operators import lower, operator_of
from gpulab.virtual.tensors._storage import layout_of

aten = torch.ops.aten
META = torch.device("meta")
PLAIN = (False,)  # a softmax that keeps its type


def names(gpu: VirtualGpu, call: Callable[[], object]) -> list[str]:
    """Return the names of the kernels that a call launches."""
    torch.cuda.synchronize()
    gpu.machine.gpu.device.forget_records()
    call()
    torch.cuda.synchronize()
    return [item.name for item in gpu.machine.gpu.device.records() if item.kind is Kind.KERNEL]


def work(func: object, *args: object, **kwargs: object) -> KernelWork:
    """Return the work of an operator on tensors without values."""
    tensors = [item for item in args if isinstance(item, torch.Tensor)]
    out = func(*args, **kwargs)  # type: ignore[operator] # an operator of PyTorch
    results = out if isinstance(out, tuple) else (out,)
    layouts = ([layout_of(item) for item in tensors], [layout_of(item) for item in results])
    return lower(operator_of(func), args, kwargs, out, layouts)


HALF = torch.float16


def empty(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return a tensor without values."""
    return torch.empty(sizes, dtype=dtype, device=META)


@pytest.mark.parametrize(
    ("found", "family"),
    [
        (lambda: work(aten.add.Tensor, empty(64, 64), empty(64, 64)), "elementwise"),
        (lambda: work(aten.add.Tensor, empty(64, 64), empty(64)), "broadcast"),
        (lambda: work(aten.clone.default, empty(64, 64)), "copy"),
        (lambda: work(aten.add.Tensor, empty(64, 64).t(), empty(64, 64)), "strided"),
        (lambda: work(aten.gelu.default, empty(64)), "error function"),
        (lambda: work(aten.sum.dim_IntList, empty(64, 64), [1]), "reduction"),
        (lambda: work(aten.sum.dim_IntList, empty(64, 64), [0]), "first axis"),
        (lambda: work(aten._softmax.default, empty(64, 512), -1, *PLAIN), "softmax"),
        (
            lambda: work(aten._softmax.default, empty(64, 4096), -1, *PLAIN),
            "softmax in shared memory",
        ),
        (
            lambda: work(aten._softmax.default, empty(2, 1 << 16), -1, *PLAIN),
            "softmax of long rows",
        ),
        # A row of halves needs half the shared memory, and whole vectors of 16 bytes. The last
        # two lengths were recorded on an H200.
        (
            lambda: work(aten._softmax.default, empty(2, 16_384, dtype=HALF), -1, *PLAIN),
            "softmax in shared memory",
        ),
        (
            lambda: work(aten._softmax.default, empty(88, 17_097, dtype=HALF), -1, *PLAIN),
            "softmax of long rows",
        ),
        (
            lambda: work(aten._softmax.default, empty(205, 11_846), -1, *PLAIN),
            "softmax of long rows",
        ),
        (lambda: work(aten.cumsum.default, empty(64, 64), 1), "scan"),
        (lambda: work(aten.cumsum.default, empty(1, 64), 1), "scan of one row"),
        (lambda: work(aten.index_select.default, empty(9, 4), 0, indices(2)), "rows"),
        (lambda: work(aten.frac.default, empty(64)), "elementwise"),
    ],
)
def test_each_operator_has_its_family(found: Callable[[], KernelWork], family: str) -> None:
    """An operator's name, layouts and dimension decide its kernel family."""
    assert found().family == family


def indices(n: int) -> torch.Tensor:
    """Return indices without values."""
    return empty(n, dtype=torch.int64)


def test_a_cast_from_half_to_float_uses_no_vectors() -> None:
    """A cast from half to float has its own family; the opposite cast uses vectors."""
    half = empty(64, dtype=torch.float16)
    assert work(aten._to_copy.default, half, dtype=torch.float32).family == "cast"
    assert work(aten._to_copy.default, empty(64), dtype=torch.float16).family == "elementwise"


def test_an_embedding_reads_only_the_rows_it_takes() -> None:
    """The bytes of an embedding come from the rows it takes, not from the whole table."""
    assert work(aten.embedding.default, empty(1_000, 4), indices(2)).most_bytes == 32
    # Its indices of 8 bytes are longer than rows of one number.
    assert work(aten.embedding.default, empty(1_000, 1), indices(2)).most_bytes == 16


def test_products_know_their_sizes() -> None:
    """A batched matmul has its batch, m, n, k and FLOPs."""
    found = work(aten.bmm.default, empty(2, 8, 16), empty(2, 16, 32)).matmul
    assert found is not None
    assert (found.batch, found.m, found.n, found.k) == (2, 8, 32, 16)
    assert found.flops == 2 * 2 * 8 * 16 * 32


def test_a_matrix_and_a_vector_only_move_bytes() -> None:
    """A float32 product of a matrix and a vector is not a matmul kernel, as it fills no tile."""
    assert work(aten.mm.default, empty(1, 64), empty(64, 64)).matmul is None


def test_tf32_is_used_where_it_is_allowed() -> None:
    """A matmul uses TF32 only after the program has allowed it."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        assert work(aten.mm.default, empty(64, 64), empty(64, 64)).arithmetic == "tf32"
        assert work(aten.add.Tensor, empty(64), empty(64)).arithmetic == "float32"
    finally:
        torch.set_float32_matmul_precision(before)
    assert work(aten.mm.default, empty(64, 64), empty(64, 64)).arithmetic == "float32"


def test_lists_of_tensors_are_split_into_launches(gpu: VirtualGpu) -> None:
    """One launch takes at most 110 tensors, or 64 pairs, which is what its arguments can hold."""
    tensors = [torch.ones(4, device="cuda") for _ in range(129)]
    assert names(gpu, lambda: torch._foreach_mul_(tensors, 2.0)) == ["_foreach_mul"] * 2
    assert names(gpu, lambda: torch._foreach_mul(tensors, 2.0)) == ["_foreach_mul"] * 3
    pairs = tensors[:65]
    assert names(gpu, lambda: torch._foreach_add_(pairs, pairs)) == ["_foreach_add"] * 2
    norms = names(gpu, lambda: torch._foreach_norm(pairs))
    assert norms == ["fill", "_foreach_norm", "sums of chunks"]


def test_a_write_by_an_index_touches_only_its_places() -> None:
    """A table of any size costs the same, because a kernel writes only the rows of the index."""
    index, values = empty(256, dtype=torch.int64), empty(256, 16)
    for rows in (1 << 10, 1 << 20):
        found = work(aten.index_add.default, empty(rows, 16), 0, index, values)
        assert (found.n_elements, found.most_bytes) == (256 * 16, 256 * 16 * 8)


@pytest.mark.parametrize(
    ("pool", "n_dims"),
    [
        (aten.max_pool2d_with_indices.default, 2),
        (aten.avg_pool2d.default, 2),
        (aten.max_pool3d_with_indices.default, 3),
        (aten.avg_pool3d.default, 3),
    ],
)
def test_one_number_is_the_window_in_each_dimension(pool: object, n_dims: int) -> None:
    """PyTorch accepts a list of one number; the work and its place on the surface are the same."""
    images = empty(2, 4, *[16] * n_dims)
    short, long = (work(pool, images, [4] * n, [4] * n) for n in (1, n_dims))
    assert (short.n_elements, short.surface_point) == (long.n_elements, long.surface_point)
