"""What the virtual GPU does not model is refused by name, and only there; the rest goes on."""

import io
import re
from collections.abc import Callable, Iterator
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest
import torch

import gpulab
from gpulab.errors import NotModelledError
from gpulab.virtual.patches._unsupported import UNSUPPORTED, require_dense


@pytest.fixture
def gpu() -> Iterator[None]:
    """Enter a virtual H200 without first-use costs."""
    with gpulab.virtual_gpu("H200", first_use=False):
        yield


def refusal_of(use: Callable[[], object]) -> str:
    """Return the message with which a use is refused."""
    with pytest.raises(NotModelledError) as error:
        use()
    return str(error.value)


def of_name(name: str) -> str:
    """Return the message that the table promises for a name."""
    return f"the virtual GPU has no model of {name}; {UNSUPPORTED[name]}"


def named(name: str) -> Callable[..., object]:
    """Return what stands behind a name now."""
    found: object = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    assert callable(found)
    return found


# What takes part in host work too is refused on the device only; it has tests of its own below.
ALWAYS = [
    name
    for name in UNSUPPORTED
    if not re.match(r"torch\.(sparse_|nested|quantize|Tensor|export|utils|jit|nn)", name)
]


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", ALWAYS)
def test_a_name_of_the_table_is_refused(name: str) -> None:
    """The message is the name and what to use in its place."""
    try:
        use = named(name)
    except AttributeError:
        pytest.skip(f"this torch has no {name}")
    assert refusal_of(use) == of_name(name)


# PyTorch's own words on these features, which some versions say once.
ON_HOST_WARNINGS = (
    "ignore:.torch.jit:DeprecationWarning",
    "ignore:torch.quantize_per_tensor:UserWarning",
    "ignore:The PyTorch API of nested tensors:UserWarning",
    "ignore:Sparse invariant checks:UserWarning",
)
COO = (torch.zeros(1, 1, dtype=torch.int64), torch.ones(1), (3,))
ON_DEVICE: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "torch.sparse_coo_tensor": (
        lambda: torch.sparse_coo_tensor(*COO, device="cuda"),
        lambda: torch.sparse_coo_tensor(*COO),
    ),
    "torch.nested.nested_tensor": (
        lambda: torch.nested.nested_tensor([torch.ones(2, device="cuda")]),
        lambda: torch.nested.nested_tensor([torch.ones(2)]),
    ),
    "torch.quantize_per_tensor": (
        lambda: torch.quantize_per_tensor(torch.ones(2, device="cuda"), 0.1, 0, torch.qint8),
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    ),
    "torch.Tensor.share_memory_": (
        lambda: torch.ones(2, device="cuda").share_memory_(),
        lambda: torch.ones(2).share_memory_(),
    ),
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings(*ON_HOST_WARNINGS)
@pytest.mark.parametrize("name", ON_DEVICE)
def test_what_the_host_can_do_is_refused_on_the_device_only(name: str) -> None:
    """The same call with host tensors works while the virtual GPU is entered."""
    on_device, on_host = ON_DEVICE[name]
    assert refusal_of(on_device) == of_name(name)
    assert on_host() is not None


@pytest.mark.usefixtures("gpu")
def test_the_default_device_counts_as_the_device() -> None:
    """Numbers alone make a sparse tensor where the default device is."""
    with torch.device("cuda"):
        message = refusal_of(lambda: torch.sparse_coo_tensor([[0]], [1.0], (3,)))
    assert message == of_name("torch.sparse_coo_tensor")


@pytest.mark.usefixtures("gpu")
def test_exporting_a_model_of_the_device_is_refused() -> None:
    """The message says where to export."""
    model, x = torch.nn.Linear(2, 2).cuda(), torch.ones(1, 2, device="cuda")
    assert refusal_of(lambda: torch.export.export(model, (x,))) == of_name("torch.export.export")


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings(*ON_HOST_WARNINGS)
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: torch.eye(2).to_sparse(),
            (
                "the virtual GPU has no model of sparse tensors (torch.sparse_coo); "
                "use a dense tensor, or a sparse one on the CPU"
            ),
        ),
        (
            lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
            (
                "the virtual GPU has no model of quantized tensors; "
                "use integer tensors and a scale of your own"
            ),
        ),
        (
            lambda: torch.nested.nested_tensor([torch.ones(2)]),
            (
                "the virtual GPU has no model of nested tensors; "
                "use a list of tensors, or a padded tensor and a mask"
            ),
        ),
    ],
    ids=["sparse", "quantized", "nested"],
)
def test_only_dense_tensors_can_move(make: Callable[[], torch.Tensor], message: str) -> None:
    """A host tensor that has no strides is refused by its kind."""
    assert refusal_of(lambda: require_dense(make())) == message
    require_dense(torch.ones(2))


@pytest.mark.usefixtures("gpu")
def test_other_processes_get_no_virtual_tensors() -> None:
    """Sending one is refused; a host tensor is sent."""
    assert refusal_of(lambda: ForkingPickler.dumps(torch.ones(2, device="cuda"))) == (
        "the virtual GPU has no model of memory shared by processes; "
        "send a copy on the CPU, made with tensor.cpu()"
    )


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("read", "name"),
    [
        (lambda x: x.__cuda_array_interface__, "the CUDA array interface"),
        (torch.from_dlpack, "DLPack"),
    ],
    ids=["cuda_array_interface", "dlpack"],
)
def test_other_libraries_get_no_virtual_addresses(
    read: Callable[[torch.Tensor], object], name: str
) -> None:
    """They would take the address for a real one."""
    assert refusal_of(lambda: read(torch.ones(2, device="cuda"))) == (
        f"the virtual GPU has no model of {name}; "
        "other libraries can read a copy on the CPU, made with tensor.cpu()"
    )


@pytest.mark.usefixtures("gpu")
def test_processes_of_the_host_may_join() -> None:
    """Only NCCL needs CUDA devices: gloo works while the virtual GPU is entered."""
    torch.distributed.init_process_group(
        "gloo", rank=0, world_size=1, store=torch.distributed.HashStore()
    )
    torch.distributed.destroy_process_group()


def test_names_are_given_back() -> None:
    """After the context each name is what it was, and classes can be made again."""
    before = {name: named(name) for name in UNSUPPORTED if "cpp_extension" not in name}
    with gpulab.virtual_gpu("H200"):
        assert torch.cuda.memory._dump_snapshot is not before["torch.cuda.memory._dump_snapshot"]
    assert {name: named(name) for name in before} == before
    assert isinstance(torch.nn.DataParallel(torch.nn.ReLU()), torch.nn.Module)


def test_every_entry_says_what_to_use() -> None:
    """The table can be printed: dotted names, and advice without a full stop."""
    assert all(name.startswith("torch.") for name in UNSUPPORTED)
    assert all(advice and not advice.endswith(".") for advice in UNSUPPORTED.values())


def scripted(*, is_frozen: bool) -> torch.jit.ScriptModule:
    """Return a scripted model on the virtual GPU, its weights constants or not."""
    model = torch.jit.script(torch.nn.Linear(2, 2).cuda().eval())
    return torch.jit.freeze(model) if is_frozen else model


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings(*ON_HOST_WARNINGS)
@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_scripted_model_is_not_saved_from_the_device(*, is_frozen: bool, tmp_path: Path) -> None:
    """TorchScript would write nothing for weights on the virtual GPU, constants included."""
    model = scripted(is_frozen=is_frozen)
    name = "torch.jit.RecursiveScriptModule.save"
    assert refusal_of(lambda: torch.jit.save(model, tmp_path / "model.pt")) == of_name(name)
    buffered = f"{name}_to_buffer"
    assert refusal_of(lambda: torch.jit.save(model, io.BytesIO())) == of_name(buffered)


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings(*ON_HOST_WARNINGS)
def test_a_scripted_model_is_saved_on_the_host_and_loaded_on_the_device(tmp_path: Path) -> None:
    """What was saved with weights on the CPU comes back on the virtual GPU, and can move there."""
    model = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)))
    path, x = tmp_path / "model.pt", torch.ones(3, 2)
    expected = model.eval()(x)
    torch.jit.save(model, path)
    for loaded in (torch.jit.load(path, map_location="cuda"), torch.jit.load(path).cuda()):
        assert {tensor.is_cuda for tensor in loaded.state_dict().values()} == {True}
        assert torch.allclose(loaded(x.cuda()).cpu(), expected)


@pytest.mark.usefixtures("gpu")
def test_distributed_data_parallel_is_refused_on_the_device_only() -> None:
    """A model on the host reaches PyTorch, which asks for a process group."""
    wrap = torch.nn.parallel.DistributedDataParallel
    name = "torch.nn.parallel.DistributedDataParallel"
    model = torch.nn.Linear(2, 2).cuda()
    assert refusal_of(lambda: wrap(model)) == of_name(name)
    assert refusal_of(lambda: wrap(module=model, device_ids=[0])) == of_name(name)
    with pytest.raises(ValueError, match="process group"):
        wrap(torch.nn.Linear(2, 2))


@pytest.mark.usefixtures("gpu")
def test_collectives_are_refused_on_the_device(tmp_path: Path) -> None:
    """On stand-ins PyTorch sends nothing, so that each process would keep its own numbers."""
    distributed = torch.distributed
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/at", rank=0, world_size=1
    )
    try:
        x = torch.ones(2)
        distributed.all_reduce(x)
        assert refusal_of(lambda: distributed.all_reduce(x.cuda())) == (
            "the virtual GPU has no model of c10d.allreduce_.default, which communicates "
            "between processes; send a copy on the CPU, made with tensor.cpu(), or use CUDA GPUs"
        )
    finally:
        distributed.destroy_process_group()
