"""Functions for which PyTorch's C++ would take another branch are those of a CUDA GPU."""

import pytest
import torch
from torch.nn import functional

import gpulab

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


@pytest.mark.parametrize("classes", [[2, 0, 1], [[1], [1]], 2, []])
@pytest.mark.parametrize("n_classes", [-1, 3, 5])
def test_vectors_are_those_of_the_cpu(classes: object, n_classes: int) -> None:
    """Each shape, with the number of classes given and found."""
    given = torch.tensor(classes, dtype=torch.int64)
    if not given.numel() and n_classes == -1:
        with gpulab.virtual_gpu("H200"), pytest.raises(RuntimeError, match="empty tensor"):
            functional.one_hot(given.cuda())
        return
    expected = functional.one_hot(given, n_classes)
    with gpulab.virtual_gpu("H200"):
        assert torch.equal(functional.one_hot(given.cuda(), num_classes=n_classes).cpu(), expected)


@pytest.mark.parametrize("n_classes", [0, -2])
def test_a_wrong_number_of_classes_raises_at_its_line(n_classes: int) -> None:
    """The message is PyTorch's for a CUDA GPU; a wrong type has that of the CPU, too."""
    with gpulab.virtual_gpu("H200"):
        classes = torch.tensor([0], device="cuda")
        with pytest.raises(RuntimeError, match=r"^num_classes should be positive$"):
            functional.one_hot(classes, n_classes)
        with pytest.raises(RuntimeError, match="only applicable to index tensor"):
            functional.one_hot(classes.float(), 3)
