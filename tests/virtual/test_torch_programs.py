"""Unmodified PyTorch programs run on the virtual GPU with CUDA's order, waits and values."""

import time
from collections.abc import Callable

import pytest
import torch

import gpulab
from gpulab.core.errors import VirtualGpuError
from gpulab.virtual import entered


def elapsed_s(work: Callable[[], object]) -> float:
    """Return the host time of a call."""
    start_s = time.perf_counter()
    work()
    return time.perf_counter() - start_s


MAPPED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "to the type of another": lambda row: (row > 0).sum().to(row),
    "to its own device": lambda row: row.to(row.device) * 2,
    "to the GPU": lambda row: row.cuda() * row.to("cuda"),
    "made on its device": lambda row: row + torch.arange(4, device=row.device),
    "asked for its device": lambda row: row * float(row.is_cuda and not row.is_meta),
    "its number": lambda row: row + row.get_device(),
    "mean loss": lambda row: torch.nn.functional.cross_entropy(row, row.argmax()),
}
ON_HOST = {"to the GPU", "asked for its device", "its number"}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", MAPPED)
def test_functions_inside_torch_func_see_the_gpu(name: str) -> None:
    """Inside ``vmap`` and ``grad`` a tensor is on the GPU, and has the values of a loop."""
    work, rows = MAPPED[name], torch.linspace(-1, 2, 12, device="cuda").view(3, 4)
    mapped = torch.func.vmap(work)(rows)
    assert mapped.device == torch.device("cuda:0")
    torch.testing.assert_close(mapped, torch.stack([work(row) for row in rows]))
    gradient = torch.func.vmap(torch.func.grad(lambda row: (work(row) * row).sum()))(rows)
    if name not in ON_HOST:
        on_host = torch.func.vmap(torch.func.grad(lambda row: (work(row) * row).sum()))(rows.cpu())
        torch.testing.assert_close(gradient.cpu(), on_host)


def test_ctc_loss_takes_lengths_of_the_host_or_the_gpu() -> None:
    """The lengths of ``ctc_loss`` may be on the host, as PyTorch's own examples have them."""
    torch.manual_seed(0)
    scores, targets = torch.randn(6, 2, 5).log_softmax(2), torch.tensor([[1, 2], [2, 3]])
    lengths = torch.tensor([6, 5]), torch.tensor([2, 1])
    expected = torch.nn.functional.ctc_loss(scores, targets, *lengths)
    with gpulab.virtual_gpu("H200"):
        on_gpu = scores.cuda(), targets.cuda()
        for some_lengths in (lengths, [item.cuda() for item in lengths]):
            loss = torch.nn.functional.ctc_loss(*on_gpu, *some_lengths)
            torch.testing.assert_close(loss.cpu(), expected)


@pytest.mark.usefixtures("gpu")
def test_a_copy_that_has_had_its_time_is_seen_without_a_wait() -> None:
    """A copy that ended while the host slept is visible without a wait."""
    on_host = torch.zeros(3).pin_memory()
    on_host.copy_(torch.ones(3, device="cuda"), non_blocking=True)
    time.sleep(1)
    assert (on_host + 0).tolist() == [1.0] * 3


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("is_pinned", "expected"), [(False, 1.0), (True, -7.0)])
def test_only_pinned_memory_must_not_be_overwritten_during_a_copy(
    *, is_pinned: bool, expected: float
) -> None:
    """A change of the source after a copy's call reaches the device only from pinned memory."""
    on_host = torch.ones(3, pin_memory=is_pinned)
    torch.cuda._sleep(1_000_000)
    on_device = torch.empty(3, device="cuda")
    on_device.copy_(on_host, non_blocking=True)
    on_host.fill_(-7)
    assert on_device.tolist() == [expected] * 3


def test_entering_twice_is_one_context() -> None:
    """Entering the same GPU twice is one context, which the outer exit ends."""
    device = gpulab.virtual_gpu("H200")
    with device, device:
        pass
    with device:
        with device:
            pass
        assert torch.cuda.is_available()
        assert entered() is device
    assert not device.entered


def test_a_second_virtual_gpu_inside_the_first_is_refused() -> None:
    """Entering a second virtual GPU inside the first raises an error."""
    with gpulab.virtual_gpu("H200"), pytest.raises(VirtualGpuError) as error:
        gpulab.virtual_gpu("A100").__enter__()
    assert entered() is None
    assert str(error.value) == (
        "the virtual H200 is entered already; leave it before entering the virtual A100"
    )


def test_a_tensor_outside_its_context_is_refused() -> None:
    """Using a tensor outside its context raises an error with advice."""
    with gpulab.virtual_gpu("H200"):
        x = torch.ones(3, device="cuda")
    with pytest.raises(VirtualGpuError) as error:
        x + 1
    assert str(error.value) == (
        "no virtual GPU is active, but a tensor, stream, event or graph of one is used; "
        "work with it inside `with gpu:` or after gpulab.use(...)"
    )
