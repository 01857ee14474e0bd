"""Old programs work: types such as ``torch.cuda.FloatTensor``, ``type``, ``new``, storages."""

import numpy as np
import pytest
import torch

from gpulab.core.errors import NotModelledError

TYPES = {
    "BFloat16": torch.bfloat16,
    "Bool": torch.bool,
    "Byte": torch.uint8,
    "Char": torch.int8,
    "Double": torch.float64,
    "Float": torch.float32,
    "Half": torch.float16,
    "Int": torch.int32,
    "Long": torch.int64,
    "Short": torch.int16,
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", TYPES)
def test_a_legacy_type_makes_and_recognises_its_tensors(name: str) -> None:
    """A legacy type makes tensors of its type on the GPU, and only these are its instances."""
    made = getattr(torch.cuda, f"{name}Tensor")
    tensor = made([1, 0])
    assert tensor.dtype is TYPES[name]
    assert tensor.device == torch.device("cuda:0")
    assert tensor.cpu().tolist() == [1, 0]
    assert made(2, 3).shape == made(torch.Size([2, 3])).shape == (2, 3)
    assert made().shape == (0,)
    assert isinstance(tensor, made)
    assert not isinstance(tensor.cpu(), made)
    assert not isinstance(tensor.to(torch.complex64), made)
    assert not isinstance(tensor, getattr(torch, f"{name}Tensor"))
    assert tensor.type() == f"torch.cuda.{name}Tensor"
    assert (made.dtype, made.is_cuda, made.__module__) == (TYPES[name], True, "torch.cuda")


@pytest.mark.usefixtures("gpu")
def test_a_legacy_type_takes_tensors_storages_and_data() -> None:
    """A legacy type shares a tensor or storage, and copies an array or a tuple."""
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    assert torch.cuda.FloatTensor(x).data_ptr() == x.data_ptr()
    assert torch.cuda.FloatTensor(x.untyped_storage()).tolist() == [0, 1, 2, 3, 4, 5]
    assert torch.cuda.FloatTensor(np.ones(2)).tolist() == [1, 1]
    assert torch.cuda.FloatTensor((2, 3)).tolist() == [2, 3]
    assert isinstance(torch.nn.Parameter(x), torch.cuda.FloatTensor)


@pytest.mark.usefixtures("gpu")
def test_type_and_type_as_copy_between_host_and_device() -> None:
    """``type`` and ``type_as`` copy to the device of the type that is asked for."""
    x = torch.ones(2, device="cuda")
    assert x.type("torch.cuda.FloatTensor") is x
    assert x.type(torch.DoubleTensor).type() == "torch.DoubleTensor"
    assert x.type("torch.FloatTensor").device == torch.device("cpu")
    assert x.type_as(torch.ones(1).half()).type() == "torch.HalfTensor"
    assert torch.ones(1).type_as(x).type() == "torch.cuda.FloatTensor"
    assert x.to(torch.complex64).type() == "torch.cuda.ComplexFloatTensor"
    assert x.to(torch.float8_e4m3fn).type() == "torch.cuda.Float8_e4m3fnTensor"


@pytest.mark.usefixtures("gpu")
def test_a_storage_has_the_address_and_length_of_the_memory() -> None:
    """Views share one storage with the device's address, length and bytes."""
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    storage = x.untyped_storage()
    assert x[1].untyped_storage() is storage
    assert x[1].storage_offset() == 3
    assert storage.data_ptr() == x.data_ptr()
    assert (storage.nbytes(), storage.size(), len(storage)) == (24, 24, 24)
    assert (storage.device, storage.is_cuda) == (torch.device("cuda:0"), True)
    assert (storage.is_pinned(), storage.is_shared()) == (False, True)
    assert (storage[6], storage.tolist()[6:8]) == (128, [128, 63])
    assert repr(storage).endswith("\n[torch.storage.UntypedStorage(device=cuda:0) of size 24]")
    assert torch.empty(0, device="cuda").untyped_storage().data_ptr() == 0
    assert torch.is_storage(storage)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", ["resize_", "copy_", "fill_", "clone"])
def test_methods_that_change_a_storage_are_refused(name: str) -> None:
    """A method that would change a storage is refused, with advice."""
    storage = torch.ones(2, device="cuda").untyped_storage()
    with pytest.raises(NotModelledError) as error:
        getattr(storage, name)(0)
    assert str(error.value) == (
        f"the virtual GPU has no model of torch.UntypedStorage.{name}; "
        "work with the tensor, or with a copy of the storage on the CPU"
    )


@pytest.mark.usefixtures("gpu")
def test_a_tensor_can_be_set_to_other_memory() -> None:
    """``set_`` makes a tensor a view of a storage, of another tensor, or of nothing."""
    x = torch.arange(6.0, device="cuda")
    view = torch.empty(0, device="cuda").set_(x.untyped_storage(), 1, (2, 2), (2, 1))  # type: ignore[call-overload] # not in the stub
    assert view.tolist() == [[1, 2], [3, 4]]
    view.set_(x)
    assert view.data_ptr() == x.data_ptr()
    assert view.set_().shape == (0,)


@pytest.mark.usefixtures("gpu")
def test_a_device_tensor_cannot_be_set_to_host_memory() -> None:
    """``set_`` with a storage of the host raises PyTorch's message."""
    with pytest.raises(RuntimeError) as error:
        torch.empty(0, device="cuda").set_(torch.ones(2).untyped_storage())  # type: ignore[call-overload] # not in the stub
    assert str(error.value) == (
        'Attempted to set the storage of a tensor on device "cuda:0" to a storage on different '
        'device "cpu".  This is no longer allowed; the devices must match.'
    )


@pytest.mark.usefixtures("gpu")
def test_a_subclass_of_tensors_is_refused() -> None:
    """``as_subclass`` of a device tensor is refused by the name of the subclass."""

    class Marked(torch.Tensor):
        pass

    with pytest.raises(NotModelledError) as error:
        torch.ones(2, device="cuda").as_subclass(Marked)
    assert str(error.value) == (
        "the virtual GPU has no model of tensor subclasses such as Marked; use plain tensors there"
    )
