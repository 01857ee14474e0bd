"""Factories that take Python's numbers: where their tensors are, and default devices."""

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
    """By set_default_device and by ``with``, and not what reads host memory."""
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
def test_values_are_computed_under_a_default_device() -> None:
    """The simulation's own tensors stay on the host."""
    with torch.device("cuda"):
        x = torch.arange(4.0)
        assert (x * 2).tolist() == [0.0, 2.0, 4.0, 6.0]


@pytest.mark.usefixtures("gpu")
def test_numbers_of_the_device_make_a_tensor() -> None:
    """They are read; the tensor is where it is asked to be, and has their type."""
    x = torch.ones(2, dtype=torch.float16, device="cuda")
    made = torch.tensor([x[0], x[1]])
    assert (made.tolist(), made.dtype, made.device.type) == ([1, 1], torch.float16, "cpu")
    assert torch.tensor([x[0], 2.0], device="cuda").tolist() == [1.0, 2.0]


@pytest.mark.usefixtures("gpu")
def test_what_is_no_number_is_torchs_own_error() -> None:
    """Nothing of the virtual GPU is in the message."""
    with pytest.raises(RuntimeError, match="Could not infer dtype of object"):
        torch.tensor([object()], device="cuda")


@pytest.mark.usefixtures("gpu")
def test_a_tensor_of_a_tensor_is_a_copy() -> None:
    """With PyTorch's advice, on the device of the source or where it is asked for."""
    x = torch.ones(2, device="cuda")
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        copied = torch.tensor(x)
    assert (copied.is_cuda, copied.data_ptr() == x.data_ptr()) == (True, False)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        assert torch.tensor(x, device="cpu").device == torch.device("cpu")


@pytest.mark.usefixtures("gpu")
def test_options_are_kept() -> None:
    """Type, gradient and pinned memory, which means nothing on the device."""
    made = torch.tensor([1.0], device="cuda", dtype=torch.float64, requires_grad=True)
    assert (made.dtype, made.requires_grad, made.is_leaf) == (torch.float64, True, True)
    assert torch.tensor([1.0], pin_memory=True).is_pinned()
    assert torch.tensor([1.0], device="cuda", pin_memory=True).is_cuda


@pytest.mark.usefixtures("gpu")
def test_as_tensor_shares_what_fits() -> None:
    """The same object, unless another type or place is asked for."""
    x = torch.ones(2, device="cuda")
    assert torch.as_tensor(x) is x
    assert torch.as_tensor(x, device="cuda") is x
    assert torch.as_tensor(x, dtype=torch.float16).dtype is torch.float16
    assert torch.as_tensor(x, device="cpu").device == torch.device("cpu")


@pytest.mark.usefixtures("gpu")
def test_asarray_shares_unless_it_is_told_to_copy() -> None:
    """And refuses, in PyTorch's words, to share across devices."""
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
@pytest.mark.parametrize("make", [torch.tensor, torch.as_tensor, torch.asarray])
def test_a_missing_device_is_refused_as_on_hardware(make: Callable[..., object]) -> None:
    """In CUDA's words."""
    name = make.__name__
    with pytest.raises(torch.AcceleratorError, match=r"^CUDA error: invalid device ordinal"):
        getattr(torch, name)([1.0], device="cuda:7")


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings("ignore:torch.set_default_tensor_type:UserWarning")
def test_the_older_default_sets_type_and_device() -> None:
    """With CUDA in its name the device too, without it the host."""
    torch.set_default_tensor_type("torch.cuda.DoubleTensor")
    assert (torch.ones(1).dtype, torch.tensor([1.0]).is_cuda) == (torch.float64, True)
    torch.set_default_tensor_type(torch.FloatTensor)
    assert (torch.ones(1).dtype, torch.tensor([1.0]).is_cuda) == (torch.float32, False)


def test_default_devices_work_after_the_context() -> None:
    """What PyTorch remembers of its factories is its own."""
    with gpulab.virtual_gpu("H200"), torch.device("cuda"):
        torch.ones(1)
    with torch.device("meta"):
        assert torch.ones(1).device == torch.device("meta")


ON_META: dict[str, Callable[[], torch.Tensor]] = {
    "named": lambda: torch.ones(3, device="meta"),
    "by its device": lambda: torch.empty(3, device=torch.device("meta")),
    "like a tensor of the GPU": lambda: torch.zeros_like(
        torch.ones(3, device="cuda"), device="meta"
    ),
    "from numbers": lambda: torch.tensor([1.0, 2.0], device="meta"),
    "moved from the host": lambda: torch.ones(3).to("meta"),
    "moved from the GPU": lambda: torch.ones(3, device="cuda").to("meta"),
    "parameters": lambda: torch.nn.Linear(2, 2, device="meta").weight,
    "what is computed with it": lambda: torch.ones(3, device="meta") * 2 + 1,
}


@pytest.mark.parametrize("name", ON_META)
def test_what_is_asked_for_on_meta_is_on_meta(name: str) -> None:
    """A program's own meta tensors are PyTorch's, and take no memory of the virtual GPU."""
    with gpulab.virtual_gpu("H200") as gpu:
        made = ON_META[name]()
        assert made.is_meta
        assert made.device.type == "meta"
        torch.cuda.synchronize()
        assert gpu.machine.gpu.memory.allocated_bytes == 0


def test_a_default_of_meta_leaves_tensors_like_others_where_those_are() -> None:
    """``with torch.device("meta")`` is for what says nothing of its device, as in PyTorch."""
    with gpulab.virtual_gpu("H200"):
        x = torch.ones(3, device="cuda")
        with torch.device("meta"):
            assert (torch.ones(3).is_meta, torch.zeros_like(x).is_cuda) == (True, True)


def test_what_has_no_data_cannot_be_copied_to_the_gpu() -> None:
    """PyTorch's own words say so."""
    with gpulab.virtual_gpu("H200"), pytest.raises(NotImplementedError) as raised:
        torch.ones(3, device="meta").to("cuda")
    assert str(raised.value) == "Cannot copy out of meta tensor; no data!"
