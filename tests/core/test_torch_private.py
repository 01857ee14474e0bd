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
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    try:
        # Not by monkeypatch, which would delete these properties at the end.
        matmul.allow_tf32, cudnn.allow_tf32 = True, False
        allowed = [torch_private.allows_tf32(what) for what in ("matmul", "conv")]
        matmul.allow_tf32, cudnn.allow_tf32 = False, True
        allowed += [torch_private.allows_tf32(what) for what in ("matmul", "conv")]
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before
    assert allowed == [True, False, False, True]
