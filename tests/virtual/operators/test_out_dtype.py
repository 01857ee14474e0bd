"""Matmuls of half precision with a float32 result are computed, timed and refused as on CUDA."""

from collections.abc import Callable

import pytest
import torch

import gpulab

Work = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
FLOAT32 = torch.float32
PRODUCTS: dict[str, tuple[Work, Work]] = {
    "mm": (lambda a, _c: torch.mm(a, a, out_dtype=FLOAT32), lambda a, _c: a @ a),
    "bmm": (
        lambda a, _c: torch.bmm(a[None], a[None], out_dtype=FLOAT32),
        lambda a, _c: a[None] @ a[None],
    ),
    "addmm": (
        lambda a, c: torch.addmm(c, a, a, out_dtype=FLOAT32, beta=2),
        lambda a, c: 2 * c + a @ a,
    ),
    "baddbmm": (
        lambda a, c: torch.baddbmm(c[None], a[None], a[None], out_dtype=FLOAT32, alpha=3),
        lambda a, c: c[None] + 3 * (a[None] @ a[None]),
    ),
    "out=": (
        lambda a, c: torch.mm(a, a, out_dtype=FLOAT32, out=torch.empty_like(c)),
        lambda a, _c: a @ a,
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_product_is_added_up_in_float32(name: str, dtype: torch.dtype) -> None:
    """The values are those of float32 factors, which a result in half precision would round."""
    work, exact = PRODUCTS[name]
    a = (torch.arange(64.0).reshape(8, 8) / 7).to(dtype)
    c = torch.arange(64.0).reshape(8, 8).t()
    with gpulab.virtual_gpu("H200", first_use=False):
        found = work(a.cuda(), c.cuda()).cpu()
    torch.testing.assert_close(found, exact(a.float(), c))


@pytest.mark.parametrize(
    ("given", "wanted"), [(torch.float32, torch.float16), (torch.bfloat16, torch.float64)]
)
def test_other_types_are_refused(given: torch.dtype, wanted: torch.dtype) -> None:
    """As on CUDA only float32 for half precision differs from the type of the factors."""
    with gpulab.virtual_gpu("H200", first_use=False):
        a = torch.ones(8, 8, device="cuda", dtype=given)
        with pytest.raises(RuntimeError, match="out_dtype must be the same as input dtype or"):
            torch.mm(a, a, out_dtype=wanted)
