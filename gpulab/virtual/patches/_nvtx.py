"""``torch.cuda.nvtx`` and ``torch.cuda.cudart()``, whose calls take time but have no effect."""

from enum import IntEnum
from itertools import count
from typing import Any

import torch

from gpulab.virtual.simulator import Machine

# Measured on the host of an H200: 0.6 µs for a push and a pop together, 0.4 µs for a mark.
_CALL_NS = 300


class Marks:
    """The functions below ``torch.cuda.nvtx``; they count the depth of nested ranges."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._depth = 0
        self._handles = count(1)

    def rangePushA(self, _message: str) -> int:  # noqa: N802 # the name that torch calls
        """Open a nested range and return its depth, from 0.

        PyTorch documents this result; without a profiler, NVTX itself returns -2.
        """
        self._call()
        self._depth += 1
        return self._depth - 1

    def rangePop(self) -> int:  # noqa: N802 # the name that torch calls
        """Close the innermost range and return its depth, or -2 if none is open."""
        self._call()
        if self._depth == 0:
            return -2
        self._depth -= 1
        return self._depth

    def rangeStartA(self, _message: str) -> int:  # noqa: N802 # the name that torch calls
        """Start a range that need not be nested, and return its handle."""
        self._call()
        return next(self._handles)

    def markA(self, _message: object) -> None:  # noqa: N802 # the name that torch calls
        """Mark a point in time, or end a range by its handle."""
        self._call()

    rangeEnd = markA  # noqa: N815 # as above

    def _call(self) -> None:
        self._machine.host.spend(_CALL_NS)


class CudaError(IntEnum):
    """The result codes of the CUDA runtime; every call here succeeds."""

    success = 0


class CudaRuntime:
    """The result of ``torch.cuda.cudart()``: the few CUDA functions that PyTorch offers."""

    cudaError = CudaError  # noqa: N815 # CUDA's name

    def cudaProfilerStart(self) -> CudaError:  # noqa: N802 # CUDA's name
        """Do nothing and return success."""
        return CudaError.success

    cudaProfilerStop = cudaProfilerStart  # noqa: N815 # CUDA's name

    def cudaGetErrorString(self, _code: CudaError) -> str:  # noqa: N802 # CUDA's name
        """Return the text of a result code."""
        return "no error"

    def cudaMemGetInfo(self, device: int) -> tuple[int, int]:  # noqa: N802 # CUDA's name
        """Return the free and the total bytes of a device."""
        return torch.cuda.mem_get_info(device)


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements for NVTX and for the CUDA runtime."""
    return [
        (torch.cuda.nvtx, {"_nvtx": Marks(machine)}),
        (torch.cuda, {"_cudart": CudaRuntime()}),
    ]
