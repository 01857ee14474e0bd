"""What older versions of torch lack is answered by what they have."""

import pytest
import torch

from gpulab.core import torch_private


@pytest.mark.parametrize("has_getter", [True, False])
def test_tf32_is_read_with_and_without_the_new_switches(
    monkeypatch: pytest.MonkeyPatch, *, has_getter: bool
) -> None:
    """Torch 2.8 has `allow_tf32` alone; the answer is the same."""
    if not has_getter:
        monkeypatch.setattr(torch_private, "_float32_precision", None)
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", True)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    assert torch_private.allows_tf32("matmul")
    assert not torch_private.allows_tf32("conv")
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)
    assert not torch_private.allows_tf32("matmul")
