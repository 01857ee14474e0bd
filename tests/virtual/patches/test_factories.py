"""Factories put their tensors on the device that is asked for, or on the default device."""

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

import gpulab


@pytest.fixture
def gpu() -> Iterator[None]:
    """Enter a virtual H200 without first-use costs, and leave no default device behind."""
    with gpulab.virtual_gpu("H200", first_use=False):
        yield
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)


ON_DEFAULT: dict[str, Callable[[], torch.Tensor]] = {
    "tensor": lambda: torch.tensor([1.0]),
    "tensor of the host": lambda: torch.as_tensor(torch.ones(2, device="cpu")),
    "as_tensor": lambda: torch.as_tensor([1.0]),
    "asarray": lambda: torch.asarray([1.0]),
    "asarray of numpy": lambda: torch.asarray(np.ones(2)),
    "scalar_tensor": lambda: torch.scalar_tensor(2.0),
    "ones": lambda: torch.ones(2),
    "module": lambda: torch.nn.Linear(2, 2).weight,
}
ON_HOST: dict[str, Callable[[], torch.Tensor]] = {
    "from_numpy": lambda: torch.from_numpy(np.ones(2)),
    "frombuffer": lambda: torch.frombuffer(bytearray(b"1234"), dtype=torch.uint8),
    "asked for": lambda: torch.tensor([1.0], device="cpu"),
    "empty": lambda: torch.empty(2, device="cpu"),
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("device", ["cuda", "cuda:0", torch.device("cuda")])
def test_a_default_device_is_where_tensors_are_made(device: str | torch.device) -> None:
    """A default device applies to all factories except those that read host memory."""
    torch.set_default_device(device)
    assert torch.get_default_device() == torch.device("cuda:0")
    assert {name: str(make().device) for name, make in ON_DEFAULT.items()} == dict.fromkeys(
        ON_DEFAULT, "cuda:0"
    )
    torch.set_default_device(None)
    with torch.device(device):
        assert {str(make().device) for make in ON_DEFAULT.values()} == {"cuda:0"}
        assert {str(make().device) for make in ON_HOST.values()} == {"cpu"}
        with torch.device("cpu"):
            assert torch.tensor([1.0]).device == torch.device("cpu")
    assert torch.tensor([1.0]).device == torch.device("cpu")


@pytest.mark.usefixtures("gpu")
def test_a_tensor_of_a_tensor_is_a_copy() -> None:
    """``torch.tensor`` of a tensor copies it and warns as PyTorch does."""
    x = torch.ones(2, device="cuda")
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        copied = torch.tensor(x)
    assert (copied.is_cuda, copied.data_ptr() == x.data_ptr()) == (True, False)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        assert torch.tensor(x, device="cpu").device == torch.device("cpu")


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", ["tensor", "as_tensor", "asarray"])
def test_numbers_of_the_device_have_the_types_that_they_have_on_the_host(name: str) -> None:
    """In a list, tensors of one element and plain numbers are promoted as on the CPU."""
    make = getattr(torch, name)
    kinds = (torch.float16, torch.float64, torch.int32, torch.bool)
    for first, second in itertools.product(kinds, [*kinds, None]):
        other: list[object] = [2.5, 2] if second is None else [torch.ones((), dtype=second)]
        for number in other:
            one = torch.ones((), dtype=first)
            expected = make([[one], [number]], device="cpu")
            moved = number.cuda() if isinstance(number, torch.Tensor) else number
            on_device = make([[one.cuda()], [moved]], device="cuda")
            torch.testing.assert_close(on_device.cpu(), expected, rtol=0, atol=0)


@pytest.mark.usefixtures("gpu")
def test_asarray_shares_unless_it_is_told_to_copy() -> None:
    """``asarray`` shares memory unless told to copy, and cannot share across devices."""
    x = torch.ones(2, device="cuda")
    assert torch.asarray(x).data_ptr() == x.data_ptr()
    assert torch.asarray(x, copy=True).data_ptr() != x.data_ptr()
    assert torch.asarray([1.0], device="cuda", requires_grad=True).requires_grad
    host = np.ones(2)
    host_tensor = torch.asarray(host)
    host[0] = 5
    assert host_tensor[0].item() == 5
    with pytest.raises(ValueError, match="can't alias") as error:
        torch.asarray(np.ones(2), device="cuda", copy=False)
    assert str(error.value) == "can't alias tensor from device 'cpu' to 'cuda'."


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type:UserWarning")
def test_the_older_default_sets_type_and_device() -> None:
    """``set_default_tensor_type`` sets the type and, by its name, the GPU or the host."""
    torch.set_default_tensor_type("torch.cuda.DoubleTensor")
    assert (torch.ones(1).dtype, torch.tensor([1.0]).is_cuda) == (torch.float64, True)
    torch.set_default_tensor_type(torch.FloatTensor)
    assert (torch.ones(1).dtype, torch.tensor([1.0]).is_cuda) == (torch.float32, False)
