"""The catalogue gives every operation its inputs, FLOPs, bytes and a check."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from gpulab.virtual import virtual_gpu
from gpulab.workloads import WORKLOADS, names, workload

# FLOPs and bytes in float32, worked out by hand from the sizes that the docstrings name.
BY_HAND = {
    "matmul": (8, 2 * 8**3, 3 * 8**2 * 4),
    "matmul_odd": (8, 2 * 9 * 11 * 7, (9 * 11 + 11 * 7 + 9 * 7) * 4),
    "bmm": (8, 64 * 2 * 8**3, 64 * 3 * 8**2 * 4),
    "linear": (2, 2 * 2 * 4096**2 + 2 * 4096, (4 * 4096 + 4096**2 + 4096) * 4),
    "add": (10, 10, 120),
    "exp": (10, 10, 80),
    "copy": (10, 0, 80),
    "transposed_copy": (8, 0, 2 * 8**2 * 4),
    "sum": (10, 10, 44),
    "mean": (10, 10, 44),
    "argmax": (10, 0, 48),
    "softmax": (2, 4 * 8192, 2 * 8192 * 4),
    "layer_norm": (2, 8 * 8192, (2 * 8192 + 8192) * 4),
    "rms_norm": (2, 4 * 8192, (2 * 8192 + 4096) * 4),
    "gelu": (10, 50, 80),
    "dropout": (10, 10, 80),
    "embedding": (4, 0, 4 * 8 + 2 * 4 * 1024 * 4),
    "gather": (2, 0, 2048 * 8 + 2 * 2048 * 4),
    "scatter_add": (2, 2048, 2048 * 8 + 3 * 2048 * 4),
    "cumsum": (2, 8192, 2 * 8192 * 4),
    "sort": (2, 0, 8192 * 8 + 2 * 8192 * 4),
    "topk": (2, 0, 16 * 8 + (8192 + 16) * 4),
    "fft": (2, 5 * 2 * 1024 * 10, 3 * 2048 * 4),
    "conv1x1": (1, 2 * 256 * 64 * 3136, ((256 + 64) * 3136 + 64 * 256) * 4),
    "conv3x3": (1, 2 * 576 * 64 * 3136, (128 * 3136 + 64 * 576) * 4),
    "conv_depthwise": (1, 2 * 9 * 128 * 3136, (256 * 3136 + 128 * 9) * 4),
    "attention": (128, 64 * (4 * 128**2 * 64 + 4 * 128**2), 4 * 64 * 128 * 64 * 4),
    "cross_entropy": (2, 3 * 64_000, 64_001 * 4 + 16),
    "adam": (10, 130, 280),
}
PRODUCTS = ["matmul", "matmul_odd", "bmm", "conv1x1", "conv3x3", "conv_depthwise", "attention"]
# Their bytes are not those of inputs and outputs: they write into an input, or read only a part.
UNUSUAL = {"copy", "scatter_add", "adam", "embedding", "linear", "attention"}


def test_the_catalogue_is_complete() -> None:
    """The operations are those that the tests know by hand, and at least 25."""
    assert names() == tuple(BY_HAND)
    assert names() == tuple(WORKLOADS)
    assert len(names()) >= 25


@pytest.mark.parametrize("name", BY_HAND)
def test_flops_and_bytes(name: str) -> None:
    """FLOPs and bytes equal those that were derived by hand."""
    size, n_flops, n_bytes = BY_HAND[name]
    assert workload(name).flops(size) == n_flops
    dtype = workload(name).dtypes[0]
    assert (dtype, workload(name).bytes(size, dtype)) == ("float32", n_bytes)


def test_a_row_of_the_table_is_read_once() -> None:
    """An embedding with more look-ups than rows reads each row once and writes every look-up."""
    n_bytes = 40_000 * 8 + (32_000 + 40_000) * 1024 * 4
    assert workload("embedding").bytes(40_000, "float32") == n_bytes


@pytest.mark.parametrize("name", PRODUCTS)
def test_flops_agree_with_torch(name: str) -> None:
    """PyTorch's counter finds the same FLOPs, except that it leaves out the softmax."""
    size, n_flops, _ = BY_HAND[name]
    work = workload(name).make(size, "float32", "cpu")
    # The counter sees the matmuls of attention only in its plain form.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        work()
    softmax = 4 * 64 * size**2 if name == "attention" else 0
    assert counter.get_total_flops() == n_flops - softmax


@pytest.mark.parametrize("name", sorted(set(BY_HAND) - UNUSUAL))
def test_bytes_are_inputs_and_outputs(name: str) -> None:
    """Where each input is read once and each output written once, the bytes are their sizes."""
    size, _, n_bytes = BY_HAND[name]
    listed = workload(name)
    inputs = listed.setup(size, "float32", "cpu")
    result = listed.problem(size).work(inputs)()
    outputs = (result,) if isinstance(result, torch.Tensor) else result
    assert n_bytes == sum(tensor.nbytes for tensor in (*inputs, *outputs))


def test_each_row_is_sorted() -> None:
    """The catalogue says that ``sort`` sorts rows, and its bytes would be the same for columns."""
    values, _ = workload("sort").make(2, "float32", "cpu")()
    assert (values.diff(dim=-1) >= 0).all()


def test_work_runs_on_the_device_in_use() -> None:
    """Work made for the GPU launches a kernel there, and work made for the CPU does not."""
    with virtual_gpu("H200") as virtual:
        on_gpu, on_cpu = (workload("add").make(1 << 20, "float16", at) for at in ("cuda", "cpu"))
        assert on_gpu().device == torch.device("cuda:0")
        assert on_cpu().device == torch.device("cpu")
        torch.cuda.synchronize()
        records = [task for task in virtual.machine.gpu.device.records() if task.name]
    assert records


@pytest.mark.parametrize("name", BY_HAND)
def test_every_derivation_says_flops_and_bytes(name: str) -> None:
    """Each derivation explains FLOPs and bytes, and the sizes for a sweep are sorted."""
    listed = workload(name)
    assert "\nFLOPs: " in listed.derivation
    assert "\nBytes: " in listed.derivation
    assert listed.sizes == tuple(sorted(set(listed.sizes)))
