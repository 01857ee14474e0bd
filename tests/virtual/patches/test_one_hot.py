"""One-hot vectors: a class out of range is an error, as on a CUDA GPU."""

import pytest
import torch
from torch.nn import functional

import gpulab


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
