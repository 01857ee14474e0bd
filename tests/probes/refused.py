"""Probes of features without a model, which are refused by name and never computed wrongly."""

import threading
from collections.abc import Callable

import torch
from torch import nn
from torch.utils import cpp_extension

from gpulab.core.errors import NotModelledError
from tests.probes.table import Gives, Probe, Raises

_KERNEL = r"template <typename T> T square(T x) { return x * x; }"


def _no_model_of(name: str) -> str:
    """Return the pattern of a refusal's message: the name, and what to use instead."""
    return rf"the virtual GPU has no model of {name}; .+"


def _in_another_thread(work: Callable[[], object]) -> Callable[[], object]:
    """Return a program that runs the work in a second thread and raises its error here."""

    def run() -> object:
        raised: list[BaseException] = []

        def target() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 # raised again below
                raised.append(error)

        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
        if raised:
            raise raised[0]
        return "done"

    return run


def _operate_in_another_thread() -> object:
    x = torch.ones(2, device="cuda")
    return _in_another_thread(lambda: x + 1)()


def _custom_operator() -> object:
    @torch.library.custom_op("gpulab_probe::doubled", mutates_args=(), device_types="cuda")
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    return doubled(torch.ones(2, device="cuda"))


def _cudart() -> bool:
    try:
        return hasattr(torch.cuda.cudart(), "cudaProfilerStart")
    except NotModelledError as error:
        return "torch.cuda.cudart" in str(error)


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "emit_nvtx": (
        lambda: torch.autograd.profiler.emit_nvtx().__enter__(),
        r"torch\.autograd\.profiler\.emit_nvtx",
    ),
    "to_sparse": (lambda: torch.eye(3, device="cuda").to_sparse(), r".*sparse.*"),
    "sparse_coo_tensor": (
        lambda: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,), device="cuda"),
        r".*sparse.*",
    ),
    "a sparse tensor moved": (lambda: torch.eye(3).to_sparse().to("cuda"), r".*sparse.*"),
    "DataParallel": (
        lambda: nn.DataParallel(nn.Linear(2, 2).cuda(), device_ids=[0, 0]),
        r"torch\.nn\.DataParallel over 2 devices",
    ),
    "DistributedDataParallel": (
        lambda: nn.parallel.DistributedDataParallel(nn.Linear(2, 2).cuda()),
        r"torch\.nn\.parallel\.DistributedDataParallel",
    ),
    "memory history": (
        lambda: torch.cuda.memory._record_memory_history(max_entries=9),
        r"torch\.cuda\.memory\._record_memory_history",
    ),
    "another allocator": (
        lambda: torch.cuda.memory.CUDAPluggableAllocator("x.so", "a", "f"),
        r"torch\.cuda\.memory\.CUDAPluggableAllocator",
    ),
    "making a tensor in a second thread": (
        _in_another_thread(lambda: torch.ones(2, device="cuda")),
        r".*second thread.*",
    ),
    "an operator in a second thread": (_operate_in_another_thread, r".*second thread.*"),
    "kernels of C++": (
        lambda: cpp_extension.load_inline(
            "x", cpp_sources="", cuda_sources="", build_directory="missing"
        ),
        r"torch\.utils\.cpp_extension\.load_inline",
    ),
    "extensions of C++": (
        lambda: cpp_extension.load("x", ["x.cu"]),
        r"torch\.utils\.cpp_extension\.load",
    ),
    "kernels made at run time": (
        lambda: torch.cuda.jiterator._create_jit_fn(_KERNEL)(torch.ones(1, device="cuda")),
        r"torch\.cuda\.jiterator\._JittedFunction\.__call__",
    ),
    "kernels of CUDA source": (
        lambda: torch.cuda._compile_kernel("__global__ void f() {}", "f"),
        r"torch\.cuda\._compile_kernel",
    ),
    "custom operators": (_custom_operator, r"gpulab_probe\.doubled\.default"),
    "DLPack": (lambda: torch.from_dlpack(torch.ones(2, device="cuda")), r"DLPack"),
    "the array interface": (
        lambda: torch.ones(2, device="cuda").__cuda_array_interface__,
        r"the CUDA array interface",
    ),
    "memory of several processes": (
        lambda: torch.ones(2, device="cuda").share_memory_(),
        r"torch\.Tensor\.share_memory_",
    ),
    "events of several processes": (
        lambda: torch.cuda.Event(interprocess=True),
        r"events shared by processes",
    ),
    "NCCL": (
        lambda: torch.cuda.nccl.all_reduce([torch.ones(2, device="cuda")]),
        r"torch\.cuda\.nccl.*",
    ),
}

FAMILIES: dict[str, list[Probe]] = {
    "refused": [
        *(
            Raises(name, run, NotModelledError, _no_model_of(pattern))
            for name, (run, pattern) in REFUSED.items()
        ),
        Gives("cudart exists or is refused", _cudart),
    ]
}
