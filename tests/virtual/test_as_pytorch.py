"""The virtual GPU decides by shapes, devices and values as PyTorch does."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch.nn import functional

import gpulab


@pytest.fixture(autouse=True)
def gpus() -> Iterator[None]:
    """Enter two virtual GPUs."""
    with gpulab.virtual_gpu("H200", count=2):
        yield


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize(
    ("shape", "kernel"),
    [
        ((8, 1, 28, 28), (4, 1, 3, 3)),  # one channel: both layouts have the same strides
        ((8, 3, 8, 8), (4, 3, 1, 1)),  # 1x1 weights
        ((8, 64, 4, 4), (1, 64, 4, 4)),  # 1x1 results
        ((8, 1, 1, 1), (1, 1, 1, 1)),
        ((2, 3, 8, 8), (4, 3, 3, 3)),
        ((2, 1, 4, 4, 4), (4, 1, 2, 2, 2)),
        ((2, 3, 4, 4, 4), (4, 3, 2, 2, 2)),
    ],
)
def test_a_convolution_keeps_the_order_of_dimensions(
    shape: tuple[int, ...], kernel: tuple[int, ...], *, is_last: bool
) -> None:
    """The result of a convolution has the strides that it has on the CPU."""
    is_flat = len(shape) == 4
    convolve = functional.conv2d if is_flat else functional.conv3d
    images, weight = torch.ones(shape), torch.ones(kernel)
    if is_last:
        last = torch.channels_last if is_flat else torch.channels_last_3d
        images = images.to(memory_format=last)
    expected = convolve(images, weight).stride()
    assert convolve(images.cuda(), weight.cuda()).stride() == expected


def test_cuda_without_a_device_is_the_current_one() -> None:
    """``x.cuda()`` copies to the current GPU, and returns ``x`` if it is there."""
    x = torch.ones(2, device="cuda:0")
    with torch.cuda.device(1):
        assert x.cuda().device == torch.device("cuda:1")
    assert x.cuda() is x


ZEROS, NEGATIVE = torch.zeros(2, 2), -torch.eye(2)
FACTORIZATIONS: dict[str, tuple[Callable[[torch.Tensor], object], torch.Tensor]] = {
    "inv": (torch.linalg.inv, ZEROS),
    "inverse": (torch.inverse, ZEROS),
    "matrix_power": (lambda x: torch.linalg.matrix_power(x, -1), ZEROS),
    "solve": (lambda x: torch.linalg.solve(x, x), ZEROS),
    "cholesky": (torch.linalg.cholesky, NEGATIVE),
    "lu_factor": (torch.linalg.lu_factor, ZEROS),
}


@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_a_factorization_that_fails_says_so_at_its_line(name: str) -> None:
    """A factorization that fails raises the CPU's error at its own line."""
    factorize, matrix = FACTORIZATIONS[name]
    with pytest.raises(RuntimeError) as expected:
        factorize(matrix)
    with pytest.raises(type(expected.value)) as caught:
        factorize(matrix.cuda())
    assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_statistics_of_halves_may_be_asked_for_in_float32(dtype: torch.dtype) -> None:
    """``native_batch_norm`` of halves may write its statistics to float32, as on a GPU."""
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0]], dtype=dtype, device="cuda")
    ones, zeros = torch.ones_like(x[0]), torch.zeros_like(x[0])
    out = tuple(
        torch.empty(0, dtype=kind, device="cuda") for kind in (dtype, *(2 * [torch.float]))
    )
    options = {"training": True, "momentum": 0.1, "eps": 0.0, "out": out}
    torch.native_batch_norm(x, ones, zeros, None, None, **options)
    assert [item.tolist() for item in out] == [[[-1, -1], [1, 1]], [2, 4], [1, 0.5]]


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_gradients_at_positions_that_are_not_finite(mode: str, padding: str) -> None:
    """PyTorch's CPU code would end the process; a position that is no number has no gradient."""
    image = torch.rand(2, 3, 4, 4, device="cuda")
    places = torch.zeros(2, 5, 5, 2)
    places[0, 0, 0], places[0, 3, 3], places[1, 2, 2] = torch.inf, torch.nan, -1e30
    grid = places.cuda().requires_grad_()
    functional.grid_sample(image, grid, mode, padding, align_corners=False).sum().backward()
    assert grid.grad is not None
    assert (grid.grad.isnan() == grid.isnan()).all()
