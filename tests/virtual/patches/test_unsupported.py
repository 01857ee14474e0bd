"""Features that the virtual GPU does not model are refused by name; the rest works."""

import io
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest
import torch

from gpulab.core.errors import NotModelledError
from gpulab.virtual.patches._unsupported import _ON_DEVICE_ONLY, UNSUPPORTED, require_dense


def refusal_of(use: Callable[[], object]) -> str:
    """Return the message with which a use is refused."""
    with pytest.raises(NotModelledError) as error:
        use()
    return str(error.value)


def of_name(name: str) -> str:
    """Return the message for a name of the table."""
    return f"the virtual GPU has no model of {name}; {UNSUPPORTED[name]}"


def named(name: str) -> Callable[..., object]:
    """Return the function that a dotted name of torch means now."""
    found: object = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    assert callable(found)
    return found


# Names that also work on the host are refused only on the device; the tests below cover them.
ALWAYS = [
    name
    for name in UNSUPPORTED
    if not name.startswith((*_ON_DEVICE_ONLY, "torch.Tensor", "torch.nn.", "torch.utils."))
]


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", ALWAYS)
def test_a_name_of_the_table_is_refused(name: str) -> None:
    """A name of the table raises a message with the name and what to use instead."""
    try:
        use = named(name)
    except AttributeError:
        pytest.skip(f"this torch has no {name}")
    assert refusal_of(use) == of_name(name)


# Some versions of PyTorch give these warnings once in a process.
ON_HOST_WARNINGS = (
    "ignore:.torch.jit:DeprecationWarning",
    "ignore:torch.range is deprecated:UserWarning",
    "ignore:torch.quantize_per_tensor:UserWarning",
    "ignore:The PyTorch API of nested tensors:UserWarning",
    "ignore:Sparse invariant checks:UserWarning",
)
COO = (torch.zeros(1, 1, dtype=torch.int64), torch.ones(1), (3,))
ON_DEVICE: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "torch.range": (
        lambda: torch.range(0, 4, device="cuda"),
        lambda: torch.range(0, 4),
    ),
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
    "torch.to_dlpack": (
        lambda: torch.to_dlpack(torch.ones(2, device="cuda")),
        lambda: torch.to_dlpack(torch.ones(2)),
    ),
    "torch.utils.dlpack.to_dlpack": (
        lambda: torch.utils.dlpack.to_dlpack(torch.ones(2, device="cuda")),
        lambda: torch.utils.dlpack.to_dlpack(torch.ones(2)),
    ),
}


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings(*ON_HOST_WARNINGS)
@pytest.mark.parametrize("name", ON_DEVICE)
def test_features_of_the_host_are_refused_only_on_the_device(name: str) -> None:
    """A feature that the host has is refused for device tensors and works for host tensors."""
    on_device, on_host = ON_DEVICE[name]
    assert refusal_of(on_device) == of_name(name)
    assert on_host() is not None


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings(*ON_HOST_WARNINGS)
def test_a_refusal_counts_the_default_device_and_names_the_public_function() -> None:
    """A call without a device is one on the default device."""
    with torch.device("cuda"):
        assert refusal_of(lambda: torch.range(0, 4)) == of_name("torch.range")
    assert refusal_of(torch.cuda.tunable.get_results) == (
        "the virtual GPU has no model of torch.cuda.tunable.get_results; leave the choice of "
        "kernels to the model"
    )


DENSE = "use a dense tensor, or a sparse one on the CPU"


def learn_sparsely(make: Callable[..., torch.nn.Module]) -> None:
    """Run a backward pass of an embedding with sparse gradients."""
    layer = make(4, 2, sparse=True).cuda()
    torch.autograd.backward(layer(torch.ones(1, 2, dtype=torch.long, device="cuda")).sum())


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings(*ON_HOST_WARNINGS)
@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda: torch.ones(2, 2, device="cuda").to_sparse(),
            f"torch.Tensor.to_sparse; {DENSE}",
        ),
        (
            lambda: torch.ones(2, 2, device="cuda").to_sparse_csr(),
            f"torch.Tensor.to_sparse_csr; {DENSE}",
        ),
        (
            lambda: torch.zeros(2, 2, layout=torch.sparse_coo, device="cuda"),
            f"aten.zeros.default with layout=torch.sparse_coo; {DENSE}",
        ),
        *(
            (
                lambda make=make: learn_sparsely(make),
                (
                    "sparse gradients, as of nn.Embedding(sparse=True); use sparse=False "
                    "(in gather sparse_grad=False), which gives dense gradients"
                ),
            )
            for make in (torch.nn.Embedding, torch.nn.EmbeddingBag)
        ),
    ],
    ids=["to_sparse", "to_sparse_csr", "factory", "Embedding", "EmbeddingBag"],
)
def test_sparse_results_are_refused_by_the_call(use: Callable[[], object], message: str) -> None:
    """A call with a sparse result is refused by the name that the program knows, with advice."""
    assert refusal_of(use) == f"the virtual GPU has no model of {message}"


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
    """A sparse, quantized or nested host tensor is refused by its kind; a dense one is not."""
    assert refusal_of(lambda: require_dense(make())) == message
    require_dense(torch.ones(2))


@pytest.mark.usefixtures("gpu")
def test_other_processes_get_no_virtual_tensors() -> None:
    """Sending a device tensor to another process is refused."""
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
    """The CUDA array interface and DLPack are refused, as their addresses would be wrong."""
    assert refusal_of(lambda: read(torch.ones(2, device="cuda"))) == (
        f"the virtual GPU has no model of {name}; "
        "other libraries can read a copy on the CPU, made with tensor.cpu()"
    )


def scripted(*, is_frozen: bool) -> torch.jit.ScriptModule:
    """Return a scripted model on the virtual GPU; freezing makes its weights constants."""
    model = torch.jit.script(torch.nn.Linear(2, 2).cuda().eval())
    return torch.jit.freeze(model) if is_frozen else model


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings(*ON_HOST_WARNINGS)
@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_scripted_model_is_not_saved_from_the_device(*, is_frozen: bool, tmp_path: Path) -> None:
    """Saving a scripted model from the device is refused."""
    # TorchScript would write nothing for weights on the virtual GPU, also if they are constants.
    model = scripted(is_frozen=is_frozen)
    name = "torch.jit.RecursiveScriptModule.save"
    assert refusal_of(lambda: torch.jit.save(model, tmp_path / "model.pt")) == of_name(name)
    buffered = f"{name}_to_buffer"
    assert refusal_of(lambda: torch.jit.save(model, io.BytesIO())) == of_name(buffered)


@pytest.mark.usefixtures("gpu")
@pytest.mark.filterwarnings(*ON_HOST_WARNINGS)
def test_a_scripted_model_is_loaded_on_the_host_only(tmp_path: Path) -> None:
    """A scripted model that was saved loads on the host, and does not move to the device."""
    path = tmp_path / "model.pt"
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), path)
    for device in (None, "cpu", torch.device("cpu")):
        assert torch.jit.load(path, map_location=device)(torch.ones(1, 2)).shape == (1, 2)
    for load in (
        lambda: torch.jit.load(path, "cuda"),
        lambda: torch.jit.load(path, map_location=torch.device("cuda", 0)),
        lambda: torch.jit.load(path).cuda(),
    ):
        assert refusal_of(load) == of_name("torch.jit.load")


@pytest.mark.usefixtures("gpu")
def test_collectives_are_refused_on_the_device(tmp_path: Path) -> None:
    """A collective on a device tensor is refused."""
    distributed = torch.distributed
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/at", rank=0, world_size=1
    )
    try:
        # On the device PyTorch would send nothing, and each process would keep its own numbers.
        x = torch.ones(2)
        distributed.all_reduce(x)
        assert refusal_of(lambda: distributed.all_reduce(x.cuda())) == (
            "the virtual GPU has no model of c10d.allreduce_.default, which communicates "
            "between processes; send a copy on the CPU, made with tensor.cpu(), or use CUDA GPUs"
        )
    finally:
        distributed.destroy_process_group()
