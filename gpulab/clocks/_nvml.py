"""The NVML handle of a torch device, opened once for the real GPUs and once for a virtual one.

While a virtual GPU is entered it stands behind ``pynvml`` too, so the handle of a real GPU must
not reach its functions, nor the other way round.
"""

import importlib
import os
import weakref
from dataclasses import dataclass, field
from typing import Any

import torch

from gpulab import virtual
from gpulab.errors import ClocksUnavailableError

_NO_PACKAGE = "nvidia-ml-py is not installed; pip install nvidia-ml-py"


@dataclass(frozen=True, slots=True)
class NvmlGpu:
    """One GPU as NVML knows it.

    Attributes
    ----------
    nvml
        The module ``pynvml``, whose functions take the handle.
    handle
        What they take; it belongs to the process and the world that it was opened in.
    index
        NVML's number of it, which is also that of ``nvidia-smi``; torch's may be another.
    """

    nvml: Any
    handle: Any
    index: int
    _highest: dict[int, int] = field(default_factory=dict, compare=False, repr=False)

    def highest_mhz(self, kind: int) -> int:
        """Return the highest clock of NVML's ``kind``, which never changes.

        It is asked for once: on an H200 that question takes 1 ms and up to 46, the others 1 µs.
        """
        if kind not in self._highest:
            self._highest[kind] = int(self.nvml.nvmlDeviceGetMaxClockInfo(self.handle, kind))
        return self._highest[kind]

    @property
    def is_virtual(self) -> bool:
        """Whether no hardware stands behind it."""
        return isinstance(self.handle, virtual.NvmlHandle)


class _NvmlLibrary:
    """NVML, initialised for one process and one world, with the GPUs opened so far."""

    def __init__(self, nvml: Any) -> None:  # noqa: ANN401 # pynvml has no types
        nvml.nvmlInit()  # never shut down: others in this process may count on it by then
        self._nvml = nvml
        self._pid = os.getpid()
        # Weak, because behind a virtual GPU's function is the whole machine.
        self._function = weakref.ref(nvml.nvmlDeviceGetHandleByIndex)
        self._gpus: dict[tuple[int, bool], NvmlGpu] = {}

    def serves(self, nvml: Any) -> bool:  # noqa: ANN401 # pynvml has no types
        """Tell whether its handles are those of ``nvml`` as it is now, in this process."""
        is_same = self._function() is nvml.nvmlDeviceGetHandleByIndex
        return is_same and self._pid == os.getpid()

    def gpu(self, device: int) -> NvmlGpu:
        # Before torch starts CUDA the mapping is the environment's, and a guess.
        key = device, _has_started()
        if key not in self._gpus:
            self._gpus[key] = _find(self._nvml, device)
        return self._gpus[key]


_library: _NvmlLibrary | None = None


def forget() -> None:
    """Open everything anew at the next question."""
    global _library  # noqa: PLW0603 # NVML is one per process, and so is its state
    _library = None


def gpu_of(device: int | None) -> NvmlGpu:
    """Return the GPU behind torch's ``device``, without starting CUDA for the question.

    Parameters
    ----------
    device
        Torch's index; None is the current device.

    Raises
    ------
    ClocksUnavailableError
        If NVML is missing or forbidden, or knows no such GPU.
    """
    global _library  # noqa: PLW0603 # NVML is one per process, and so is its state
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ModuleNotFoundError:
        raise ClocksUnavailableError(f"the clocks cannot be read: {_NO_PACKAGE}") from None
    try:
        if _library is None or not _library.serves(nvml):
            _library = _NvmlLibrary(nvml)
        return _library.gpu(torch_index(device))
    except nvml.NVMLError as error:
        raise ClocksUnavailableError(
            f"the clocks cannot be read: NVML answers: {error}; "
            "check that nvidia-smi lists the GPU"
        ) from None


def torch_index(device: int | None) -> int:
    """Return ``device``, or the current one; 0 before torch has started CUDA."""
    if device is not None:
        return device
    return torch.cuda.current_device() if _has_started() else 0


def _has_started() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]  # torch's gap


def index_in_environment(device: int) -> int:
    """Return NVML's index of a torch device, by CUDA_VISIBLE_DEVICES alone.

    Raises
    ------
    ClocksUnavailableError
        If torch cannot tell, for instance because the device is hidden.
    """
    try:
        # Private in torch, which has no public way; its own clock_rate() takes this one.
        return int(torch.cuda._get_nvml_device_index(device))  # noqa: SLF001  # PyTorch has no public name for it
    except Exception as error:
        # It raises, asserts and indexes, by the version and by what the variable holds.
        raise ClocksUnavailableError(
            f"the clocks of device {device} cannot be read: {error}; "
            "check CUDA_VISIBLE_DEVICES and torch.cuda.device_count()"
        ) from error


def _find(nvml: Any, device: int) -> NvmlGpu:  # noqa: ANN401 # pynvml has no types
    index = index_in_environment(device)
    gpu = NvmlGpu(nvml, nvml.nvmlDeviceGetHandleByIndex(index), index)
    if gpu.is_virtual or not _has_started():
        return gpu
    # CUDA counts the fastest GPU first, NVML by bus: where they differ in kind, only the UUID
    # tells which is which.
    uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        return NvmlGpu(nvml, handle, int(nvml.nvmlDeviceGetIndex(handle)))
    except nvml.NVMLError:
        return gpu  # part of a GPU has a UUID of its own, which NVML's devices have not
