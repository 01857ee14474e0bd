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


@pytest.mark.parametrize("wrong", [3, -1, 100])
def test_a_class_out_of_range_raises_at_the_next_wait(wrong: int) -> None:
    """No vector of zeros stands for a class that does not exist."""
    with gpulab.virtual_gpu("H200"):
        functional.one_hot(torch.tensor([0, wrong], device="cuda"), 3)
        with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
            torch.cuda.synchronize()


@pytest.mark.parametrize("n_classes", [0, -2])
def test_a_wrong_number_of_classes_raises_at_its_line(n_classes: int) -> None:
    """The message is PyTorch's for a CUDA GPU; a wrong type has that of the CPU, too."""
    with gpulab.virtual_gpu("H200"):
        classes = torch.tensor([0], device="cuda")
        with pytest.raises(RuntimeError, match=r"^num_classes should be positive$"):
            functional.one_hot(classes, n_classes)
        with pytest.raises(RuntimeError, match="only applicable to index tensor"):
            functional.one_hot(classes.float(), 3)


def test_only_an_unknown_number_of_classes_waits() -> None:
    """With ``num_classes`` the host goes on; without, it reads the largest class."""
    with gpulab.virtual_gpu("H200") as gpu:
        classes = torch.tensor([0, 1], device="cuda")
        for n_classes, waits in ((2, False), (-1, True)):
            torch.cuda.synchronize()
            torch.cuda._sleep(20_000_000)  # 10 ms at 1.98 GHz
            before_s = gpu.now_s
            functional.one_hot(classes, n_classes)
            assert (gpu.now_s - before_s > 0.009) is waits
