"""Accept NVTX ranges and profiler calls, which have no effect here."""

from enum import IntEnum
from itertools import count
from typing import Any

import torch

from gpulab.virtual.simulator import Machine

# Seen beside an H200: 0.6 µs for a push and its pop, 0.4 µs for a mark.
_CALL_NS = 300


class Marks:
    """What ``torch.cuda.nvtx`` calls; ranges nest, and their depth is known."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._depth = 0
        self._handles = count(1)

    def rangePushA(self, message: str) -> int:  # noqa: N802 # the name that torch calls
        """Open a nested range and return its depth, from 0.

        That is what PyTorch documents; without a profiler a real GPU returns -2.
        """
        self._call(message)
        self._depth += 1
        return self._depth - 1

    def rangePop(self) -> int:  # noqa: N802 # the name that torch calls
        """Close the innermost range and return its depth, or -2 if none is open."""
        self._call("")
        if self._depth == 0:
            return -2
        self._depth -= 1
        return self._depth

    def rangeStartA(self, message: str) -> int:  # noqa: N802 # the name that torch calls
        """Start a range of no nest and return its handle."""
        self._call(message)
        return next(self._handles)

    def rangeEnd(self, _handle: int) -> None:  # noqa: N802 # the name that torch calls
        """End a range by its handle."""
        self._call("")

    def markA(self, message: str) -> None:  # noqa: N802 # the name that torch calls
        """Mark a moment."""
        self._call(message)

    def deviceRangeStart(self, message: str, _stream: int) -> int:  # noqa: N802 # the name that torch calls
        """Start a range when a stream gets there, and return its handle."""
        return self.rangeStartA(message)

    def deviceRangeEnd(self, _handle: object, _stream: int) -> None:  # noqa: N802 # the name that torch calls
        """End a range when a stream gets there."""
        self._call("")

    def _call(self, message: str) -> None:
        if not isinstance(message, str):
            raise TypeError(f"an NVTX message is a str, not {type(message).__name__}")
        self._machine.host.spend(_CALL_NS)


class CudaError(IntEnum):
    """The codes of the CUDA runtime, of which nothing here returns another."""

    success = 0


class CudaRuntime:
    """What ``torch.cuda.cudart()`` gives: the few functions of CUDA that PyTorch shows."""

    cudaError = CudaError  # noqa: N815 # CUDA's name

    def cudaProfilerStart(self) -> CudaError:  # noqa: N802 # CUDA's name
        """Tell a profiler to start."""
        return CudaError.success

    cudaProfilerStop = cudaProfilerStart  # noqa: N815 # CUDA's name

    def cudaGetErrorString(self, _code: CudaError) -> str:  # noqa: N802 # CUDA's name
        """Return the text of a code."""
        return "no error"

    def cudaMemGetInfo(self, device: int) -> tuple[int, int]:  # noqa: N802 # CUDA's name
        """Return the free and all bytes of a device."""
        return torch.cuda.mem_get_info(device)


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return what stands for NVTX and for the CUDA runtime."""
    return [
        (torch.cuda.nvtx, {"_nvtx": Marks(machine)}),
        (torch.cuda, {"_cudart": CudaRuntime()}),
    ]
