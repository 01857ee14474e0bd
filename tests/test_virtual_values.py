"""Values that appear when a kernel ends: what is said of those that cannot be computed."""

import pytest
import torch

import gpulab


def test_an_error_that_comes_late_names_the_operator_it_is_of() -> None:
    """The line that waits is told which launch before it was at fault, and later work goes on."""
    with gpulab.virtual_gpu("H200"):
        x = torch.ones(4, device="cuda")
        x[torch.tensor([7], device="cuda")]
        y = x + 1
        with pytest.raises(IndexError, match="index 7 is out of bounds") as raised:
            torch.cuda.synchronize()
        told = "This is of aten.index.Tensor, which was launched earlier."
        assert raised.value.__notes__ == [told]
        assert y.tolist() == [2.0] * 4
