"""Files saved on a virtual GPU load on a real one, and files of a real one on the virtual."""

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import gpulab
from gpulab.core.errors import NoValuesError

# An H200 wrote this data.pkl with torch 2.11, of {"v": torch.arange(12.0, device="cuda")[2:8:2]}.
REAL_PICKLE = (
    b"\x80\x02}q\x00X\x01\x00\x00\x00vq\x01ctorch._utils\n_rebuild_tensor_v2\nq\x02((X\x07\x00"
    b"\x00\x00storageq\x03ctorch\nFloatStorage\nq\x04X\x01\x00\x00\x000q\x05X\x06\x00\x00\x00"
    b"cuda:0q\x06K\x0ctq\x07QK\x02K\x03\x85q\x08K\x02\x85q\t\x89ccollections\nOrderedDict\nq\n)"
    b"Rq\x0btq\x0cRq\rs."
)
NO_VALUES = (
    " has no values: it is, or was computed from, a tensor of more elements than "
    "max_value_elements=1048576; choose smaller sizes, or raise max_value_elements= of "
    "gpulab.virtual_gpu(...)"
)


@pytest.fixture
def little_gpu() -> Iterator[None]:
    """Enter a virtual H200 that computes the values of small tensors only."""
    with gpulab.virtual_gpu("H200", first_use=False, max_value_elements=1 << 20):
        yield


def file_of(item: object, **options: bool) -> io.BytesIO:
    """Return a file in memory that contains ``item``, at its beginning."""
    file = io.BytesIO()
    torch.save(item, file, **options)
    file.seek(0)
    return file


def member(file: io.BytesIO, name: str) -> bytes:
    """Return one member of a file."""
    with zipfile.ZipFile(file) as archive:
        (full,) = (item for item in archive.namelist() if item.endswith(name))
        return archive.read(full)


@pytest.mark.usefixtures("gpu")
def test_a_file_has_the_bytes_that_a_real_gpu_writes() -> None:
    """A saved view has the bytes that a real GPU wrote, with its whole storage on cuda:0."""
    file = file_of({"v": torch.arange(12.0, device="cuda")[2:8:2]})
    assert member(file, "data.pkl") == REAL_PICKLE
    assert member(file, "data/0") == torch.arange(12.0).numpy().tobytes()


TENSORS: dict[str, Callable[[], torch.Tensor]] = {
    **{
        str(dtype): lambda dtype=dtype: torch.arange(6, device="cuda").reshape(2, 3).to(dtype)
        for dtype in (
            *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn),
            *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16),
            *(torch.bool, torch.complex64, torch.complex128),
        )
    },
    "number": lambda: torch.tensor(3.5, device="cuda"),
    "empty": lambda: torch.empty(0, device="cuda"),
    "transposed": lambda: torch.arange(6.0, device="cuda").reshape(2, 3).t(),
    "slice": lambda: torch.arange(12.0, device="cuda")[2:8:2],
    "with gradient": lambda: torch.ones(3, device="cuda", requires_grad=True),
    "on the host": lambda: torch.ones(3),
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_is_loaded_as_it_was_saved(name: str, *, weights_only: bool) -> None:
    """A loaded tensor has the saved values, type, strides, offset, device and gradient flag."""
    tensor = TENSORS[name]()
    loaded = torch.load(file_of(tensor), weights_only=weights_only)
    assert torch.equal(loaded.detach().cpu(), tensor.detach().cpu())
    for attribute in ("dtype", "device", "requires_grad", "is_cuda"):
        assert getattr(loaded, attribute) == getattr(tensor, attribute)
    assert (loaded.stride(), loaded.storage_offset()) == (tensor.stride(), tensor.storage_offset())


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, device: str) -> float:
    """Take one optimizer step and return the loss before it."""
    optimizer.zero_grad()
    loss = model(torch.ones(4, 3, device=device)).square().sum()
    loss.backward()
    optimizer.step()
    return loss.item()


@pytest.mark.usefixtures("gpu")
def test_training_continues_from_a_checkpoint() -> None:
    """A loaded module and optimizer continue with the same loss, on the device and on the host."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    train(model, optimizer, "cuda")
    file = file_of({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    expected = train(model, optimizer, "cuda")
    for device in ("cuda", "cpu"):
        again = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).to(device)
        optimizer = torch.optim.Adam(again.parameters(), lr=0.1)
        file.seek(0)
        state = torch.load(file, map_location=device)
        again.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        assert train(again, optimizer, device) == pytest.approx(expected, rel=1e-4)


def test_a_file_remembers_its_device() -> None:
    """A tensor of the second GPU loads to the second GPU, or where it is mapped to."""
    with gpulab.virtual_gpu("H200", count=2):
        file = file_of(torch.arange(3.0, device="cuda:1"))
        assert torch.load(file).device == torch.device("cuda:1")
        file.seek(0)
        moved = torch.load(file, map_location={"cuda:1": "cuda:0"})
        assert (str(moved.device), moved.tolist()) == ("cuda:0", [0.0, 1.0, 2.0])
        there = moved.untyped_storage().cuda(1)
        assert (str(there.device), there.tolist()) == ("cuda:1", moved.untyped_storage().tolist())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU: only the virtual one")
def test_a_real_gpu_and_the_virtual_one_exchange_files() -> None:
    """A real and a virtual GPU load each other's files."""
    values = torch.arange(12.0).reshape(3, 4)
    real = file_of({"v": values.cuda().t()})
    with gpulab.virtual_gpu("H200"):
        assert torch.equal(torch.load(real)["v"].cpu(), values.t())
        virtual = file_of({"v": values.cuda().t()})
    loaded = torch.load(virtual)["v"]
    assert loaded.is_cuda
    assert torch.equal(loaded.cpu(), values.t())


@pytest.mark.usefixtures("gpu")
def test_conjugated_tensors_of_a_real_gpu_are_conjugated() -> None:
    """A tensor saved with its conjugate or negative bit loads with the right values."""
    x = torch.tensor([1 + 2j, 3 - 1j]).conj()
    conjugated, negated = (torch.load(file_of(y), map_location="cuda") for y in (x, x.imag))
    assert conjugated.tolist() == [1 - 2j, 3 + 1j]
    assert negated.tolist() == [-2.0, 1.0]


@pytest.mark.usefixtures("little_gpu")
def test_a_tensor_without_values_is_refused_before_the_file_is_opened(tmp_path: Path) -> None:
    """Saving a tensor without values fails before an older file of this name is overwritten."""
    path = tmp_path / "checkpoint.pt"
    torch.save(1, path)
    big = torch.ones(2048, 1024, device="cuda")
    model = {"small": torch.ones(1, device="cuda"), "fc.weight": big}
    with pytest.raises(NoValuesError) as error:
        torch.save({"epochs": [1, 2], "model": model}, path)
    text = f"['model']['fc.weight']: this torch.float32 tensor of shape (2048, 1024){NO_VALUES}"
    assert str(error.value) == text
    assert torch.load(path) == 1


@pytest.mark.usefixtures("little_gpu")
def test_a_module_without_values_is_refused_by_the_name_of_its_parameter(tmp_path: Path) -> None:
    """The error names the parameter of a module, or only its shape if it is hidden deeper."""
    layer = torch.nn.Linear(2048, 1024, device="cuda")
    hidden = SimpleNamespace(weight=layer.weight)
    for saved, name in ([layer], "[0]['weight']: "), (hidden, ""), (layer.weight, ""):
        with pytest.raises(NoValuesError) as error:
            torch.save(saved, tmp_path / "saved.pt")
        text = f"{name}this torch.float32 tensor of shape (1024, 2048){NO_VALUES}"
        assert str(error.value) == text
