"""Files saved on a virtual GPU load on a real one, and files of a real one on the virtual."""

import copy
import io
import pickle
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import gpulab
from gpulab.core.errors import NoValuesError, VirtualGpuError

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


def test_a_file_differs_from_the_hosts_only_in_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file has the bytes that the host would write if its device were called ``cuda:0``."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    model[1].weight = model[0].weight
    twins = [torch.ones(2, 3), torch.ones(2, 3)]
    with monkeypatch.context() as patch:
        patch.setattr(
            torch.serialization, "location_tag", lambda _storage: f"cuda:{len(twins) - 2}"
        )
        here = file_of([twins, model.state_dict(), model])
    with gpulab.virtual_gpu("H200"):
        on_device = [x.cuda() for x in twins]
        there = file_of([on_device, model.cuda().state_dict(), model])
    for name in ("data.pkl", "byteorder", *(f"data/{i}" for i in range(5))):
        assert member(there, name) == member(here, name)


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


@pytest.mark.usefixtures("gpu")
def test_saving_waits_for_the_device() -> None:
    """A file contains the result of work that was still pending when it was saved."""
    x = torch.zeros(3, device="cuda")
    torch.cuda._sleep(10_000_000)
    x.fill_(4)
    assert torch.load(file_of(x), map_location="cpu").tolist() == [4.0] * 3


@pytest.mark.usefixtures("gpu")
def test_shared_memory_stays_shared() -> None:
    """Views that share memory are in the file once, and share it again after loading."""
    base = torch.arange(4.0, device="cuda")
    file = file_of({"base": base, "view": base[1:3]})
    loaded = torch.load(file)
    loaded["base"].add_(10)
    assert loaded["view"].tolist() == [11.0, 12.0]
    assert loaded["base"].untyped_storage() is loaded["view"].untyped_storage()
    with zipfile.ZipFile(file) as archive:
        assert sum("/data/" in name for name in archive.namelist()) == 1


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


@pytest.mark.usefixtures("gpu")
def test_a_whole_module_is_saved() -> None:
    """A saved module is loaded with its parameters, buffers and their attributes."""
    model = torch.nn.Linear(2, 2).cuda()
    model.weight.tag = "first"  # type: ignore[attr-defined] # any attribute
    model.register_buffer("scale", torch.nn.Buffer(torch.ones(2, device="cuda")))
    loaded = torch.load(file_of(model), weights_only=False)
    assert torch.equal(loaded.weight, model.weight)
    assert isinstance(loaded.weight, torch.nn.Parameter)
    assert loaded.weight.tag == "first"
    assert isinstance(loaded.scale, torch.nn.Buffer)
    assert loaded(torch.ones(1, 2, device="cuda")).shape == (1, 2)


PLACES: dict[str, tuple[Any, str]] = {
    "none": (None, "cuda:0"),
    "cuda": ("cuda", "cuda:0"),
    "index": ("cuda:0", "cuda:0"),
    "device": (torch.device("cuda"), "cuda:0"),
    "cpu": ("cpu", "cpu"),
    "table": ({"cuda:0": "cpu"}, "cpu"),
    "function": (lambda storage, _place: storage, "cpu"),
    "function to the device": (lambda storage, _place: storage.cuda(0), "cuda:0"),
    "function to the current device": (lambda storage, _place: storage.cuda(), "cuda:0"),
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", PLACES)
def test_map_location_decides_the_device(name: str) -> None:
    """Every form of ``map_location`` loads to the device that it names."""
    wanted, place = PLACES[name]
    loaded = torch.load(file_of(torch.arange(3.0, device="cuda")), map_location=wanted)
    assert (str(loaded.device), loaded.tolist()) == (place, [0.0, 1.0, 2.0])


@pytest.mark.usefixtures("gpu")
def test_a_host_file_is_loaded_on_the_device() -> None:
    """A file of the host loads to the device with all its values."""
    loaded = torch.load(file_of(torch.arange(3.0)), map_location="cuda")
    assert loaded.is_cuda
    assert loaded.tolist() == [0.0, 1.0, 2.0]


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


@pytest.mark.usefixtures("gpu")
def test_a_missing_device_is_refused_in_pytorchs_words() -> None:
    """Loading to a device that does not exist raises PyTorch's message."""
    with pytest.raises(RuntimeError) as error:
        torch.load(file_of(torch.ones(1, device="cuda")), map_location="cuda:7")
    assert str(error.value) == (
        "Attempting to deserialize object on CUDA device 7 but torch.cuda.device_count() is 1. "
        "Please use torch.load with map_location to map your storages to an existing device."
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="a real GPU would load it")
def test_a_file_loaded_outside_the_context_needs_map_location() -> None:
    """Without a GPU a file of the virtual one needs ``map_location``, as PyTorch says."""
    with gpulab.virtual_gpu("H200"):
        file = file_of(torch.ones(2, device="cuda"))
    with pytest.raises(RuntimeError, match=r"torch\.cuda\.is_available\(\) is False"):
        torch.load(file)
    file.seek(0)
    assert torch.load(file, map_location="cpu").tolist() == [1.0, 1.0]


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
@pytest.mark.parametrize("place", [None, "cpu", "cuda"])
def test_a_mapped_file_is_read(tmp_path: Path, place: str | None) -> None:
    """``mmap=True`` loads to the host and to the device."""
    torch.save({"x": torch.arange(3.0, device="cuda")}, tmp_path / "x.pt")
    loaded = torch.load(tmp_path / "x.pt", mmap=True, map_location=place)["x"]
    assert (loaded.is_cuda, loaded.tolist()) == (place != "cpu", [0.0, 1.0, 2.0])


@pytest.mark.usefixtures("gpu")
def test_the_older_format_is_read_and_written() -> None:
    """PyTorch's older file format is written and loaded, with shared memory."""
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    file = file_of({"x": x, "row": x[1]}, _use_new_zipfile_serialization=False)
    loaded = torch.load(file)
    assert loaded["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    loaded["x"].zero_()
    assert loaded["row"].tolist() == [0, 0, 0]


@pytest.mark.usefixtures("gpu")
def test_a_file_of_either_format_is_copied_to_the_device_once() -> None:
    """Both file formats take the same virtual time to load."""
    x = torch.zeros(1 << 16, device="cuda")
    torch.load(file_of(x))  # the first operator after another one costs more
    durations_ns = []
    for is_new in (True, False):
        file = file_of(x, _use_new_zipfile_serialization=is_new)
        start_ns = time.perf_counter_ns()
        torch.load(file)
        durations_ns.append(time.perf_counter_ns() - start_ns)
    # The host is not equally cold, which is far less than a copy.
    assert durations_ns[0] == pytest.approx(durations_ns[1], abs=100)


@pytest.mark.usefixtures("gpu")
def test_pickle_and_copy_work_with_tensors() -> None:
    """A pickle contains the values; a shallow copy shares the memory."""
    x = torch.nn.Parameter(torch.arange(3.0, device="cuda"))
    again = pickle.loads(pickle.dumps(x))
    assert isinstance(again, torch.nn.Parameter)
    assert (again.is_cuda, again.tolist()) == (True, [0.0, 1.0, 2.0])
    assert copy.copy(x).data_ptr() == x.data_ptr()


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


@pytest.mark.usefixtures("little_gpu")
def test_a_pickle_without_values_is_refused() -> None:
    """A pickle of a tensor without values is refused, by the shape of its bytes."""
    with pytest.raises(NoValuesError) as error:
        pickle.dumps(torch.ones(2048, 1024, device="cuda"))
    assert str(error.value) == f"this torch.uint8 tensor of shape (8388608,){NO_VALUES}"


def test_the_limit_counts_elements_of_the_file() -> None:
    """Loaded tensors have values up to the limit in elements, whatever their type."""
    files = [file_of(torch.zeros(n, dtype=d)) for n in (8, 9) for d in (torch.int8, torch.float64)]
    with gpulab.virtual_gpu("H200", max_value_elements=8):
        known = [torch.load(file, map_location="cuda").has_values for file in files]
    assert known == [True, True, False, False]


@pytest.mark.usefixtures("gpu")
def test_loading_copies_to_the_device() -> None:
    """A loaded tensor's memory counts as allocated until the tensor is deleted."""
    file = file_of(torch.zeros(1 << 16))
    before = torch.cuda.memory_allocated()
    loaded = torch.load(file, map_location="cuda")
    assert torch.cuda.memory_allocated() - before == 1 << 18
    del loaded
    assert torch.cuda.memory_allocated() == before


def test_a_virtual_tensor_is_not_saved_outside_its_context() -> None:
    """Saving a virtual tensor outside its context raises an error with advice."""
    with gpulab.virtual_gpu("H200"):
        x = torch.ones(2, device="cuda")
    with pytest.raises(VirtualGpuError) as error:
        torch.save(x, io.BytesIO())
    assert str(error.value) == (
        "no virtual GPU is active, but a tensor, stream, event or graph of one is used; "
        "work with it inside `with gpu:` or after gpulab.use(...)"
    )


def test_torch_saves_as_before_after_the_context() -> None:
    """After the context ``torch.save`` and the storage functions are PyTorch's again."""
    before = torch.save, torch.is_storage, torch.UntypedStorage.to
    with gpulab.virtual_gpu("H200"):
        assert torch.save is not before[0]
    assert (torch.save, torch.is_storage, torch.UntypedStorage.to) == before


def test_a_tensor_of_inference_mode_is_saved_like_any_other() -> None:
    """A tensor made in inference mode is saved without a trace of the virtual GPU."""
    file = io.BytesIO()
    with gpulab.virtual_gpu("H200"):
        with torch.inference_mode():
            x = torch.ones(3, device="cuda") * 2
        torch.save(x, file)
    assert b"made_in_inference" not in file.getvalue()
    assert torch.load(io.BytesIO(file.getvalue()), map_location="cpu").tolist() == [2.0] * 3
