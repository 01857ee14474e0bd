"""Gradients of complex eigenvectors: PyTorch's, and its error for a loss that means nothing."""

from collections.abc import Callable

import pytest
import torch

import gpulab

Loss = Callable[[torch.Tensor], torch.Tensor]
MATRICES = {
    "eig": torch.tensor([[0.0, 1.0], [-1.0, 0.5]]),
    "eigh": torch.tensor([[2.0, 1.0j], [-1.0j, 3.0]]),
}


@pytest.mark.parametrize("name", MATRICES)
def test_a_gradient_that_means_something_is_that_of_the_cpu(name: str) -> None:
    """A loss of absolute values does not depend on the phase."""

    def gradient(matrix: torch.Tensor) -> torch.Tensor:
        matrix = matrix.detach().requires_grad_()
        vectors = getattr(torch.linalg, name)(matrix)[1]
        (found,) = torch.autograd.grad(vectors.abs()[0].sum(), matrix)
        return found

    expected = gradient(MATRICES[name])
    with gpulab.virtual_gpu("H200"):
        torch.testing.assert_close(gradient(MATRICES[name].cuda()).cpu(), expected)


@pytest.mark.parametrize("name", MATRICES)
def test_a_loss_of_the_phase_raises_in_backward(name: str) -> None:
    """Without values nothing can be checked, but the host waits."""
    for n_values in (1 << 20, 0):
        with gpulab.virtual_gpu("H200", max_value_elements=n_values) as gpu:
            matrix = MATRICES[name].cuda().requires_grad_()
            loss = getattr(torch.linalg, name)(matrix)[1].real.sum()
            torch.cuda._sleep(20_000_000)  # 10 ms at 1.98 GHz
            before_s = gpu.now_s
            if n_values:
                with pytest.raises(RuntimeError, match=f"^linalg_{name}_backward: The eigenvec"):
                    loss.backward()
            else:
                loss.backward()
            assert gpu.now_s - before_s > 0.009


def test_real_eigenvectors_are_left_alone() -> None:
    """The eigenvectors of a real symmetric matrix have no phase."""
    with gpulab.virtual_gpu("H200"):
        matrix = torch.tensor([[2.0, 1.0], [1.0, 3.0]], device="cuda", requires_grad=True)
        torch.linalg.eigh(matrix)[1].sum().backward()
        assert matrix.grad is not None
        with torch.no_grad():
            assert torch.linalg.eig(matrix)[1].grad_fn is None
