"""Calls that meta tensors accept are refused at their line, as on a CUDA GPU."""

import re
from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

import gpulab


def _of_a_layer(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, (8,), weight)


def _of_a_batch(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.batch_norm(x, None, None, weight, training=True)


@pytest.mark.parametrize("has_values", [True, False])
@pytest.mark.parametrize(
    ("norm", "message"),
    [
        (_of_a_layer, "expected scalar type Float but found Double"),
        (_of_a_batch, r"type torch\.cuda\.FloatTensor does not equal torch\.cuda\.DoubleTensor"),
    ],
)
def test_a_weight_of_another_type_is_refused(
    norm: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], message: str, *, has_values: bool
) -> None:
    """A weight in double precision beside an input in single precision raises an error."""
    with gpulab.virtual_gpu("H200", max_value_elements=100 if has_values else 0):
        x = torch.ones(4, 8, device="cuda")
        weight = torch.ones(8, device="cuda", dtype=torch.float64)
        with pytest.raises(RuntimeError, match=message):
            norm(x, weight)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: torch.multinomial(x, 9), "cannot sample n_sample > prob_dist.size"),
        (lambda x: torch.multinomial(x.new_ones((1 << 24) + 1), 1), "cannot exceed 2^24"),
        (lambda x: torch.linalg.lstsq(x, x, driver="gelsd"), "`driver` other than `gels`"),
        (lambda x: torch.linalg.svd(x, driver="fast"), "unknown svd driver fast"),
        (lambda x: x.bool().median(0), "\"median_out_impl\" not implemented for 'Bool'"),
    ],
)
def test_an_argument_that_cuda_does_not_take_is_refused(
    call: Callable[[torch.Tensor], object], message: str
) -> None:
    """The words are PyTorch's; a median of all elements is taken of any type."""
    with gpulab.virtual_gpu("H200", max_value_elements=100):
        with pytest.raises(RuntimeError, match=re.escape(message)):
            call(torch.ones(8, 8, device="cuda"))
        torch.ones(8, 8, device="cuda").bool().median()
