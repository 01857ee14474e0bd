"""The NVML handle of a torch device, opened once for the real GPUs and once for a virtual one.

A virtual GPU in use replaces the functions of ``pynvml`` too. So the handle of a real GPU must
never be passed to the functions of a virtual one, nor the other way round.
"""

import importlib
import os
import weakref
from dataclasses import dataclass, field
from typing import Any

import torch

from gpulab import virtual
from gpulab.core.errors import ClocksUnavailableError

_NO_PACKAGE = "nvidia-ml-py is not installed; pip install nvidia-ml-py"


@dataclass(frozen=True, slots=True)
class NvmlGpu:
    """One GPU as NVML identifies it.

    ``nvml`` is the module ``pynvml``, whose functions take the handle. The handle is valid in the
    process that opened it, and either for real GPUs or for one virtual GPU. ``index`` is NVML's
    number, as in ``nvidia-smi``; PyTorch's may differ.
    """

    nvml: Any
    handle: Any
    index: int
    _highest: dict[int, int] = field(default_factory=dict, compare=False, repr=False)

    def highest_mhz(self, kind: int) -> int:
        """Return the highest clock of NVML's ``kind``, which never changes.

        It is read once and stored: on an H200 this call takes 1 to 46 ms, the others 1 µs.
        """
        if kind not in self._highest:
            self._highest[kind] = int(self.nvml.nvmlDeviceGetMaxClockInfo(self.handle, kind))
        return self._highest[kind]

    @property
    def is_virtual(self) -> bool:
        """Whether it is a virtual GPU, without hardware."""
        return isinstance(self.handle, virtual.NvmlHandle)


class _NvmlLibrary:
    """NVML, initialised in one process for real GPUs or a virtual one, with the opened GPUs."""

    def __init__(self, nvml: Any) -> None:  # noqa: ANN401 # pynvml has no types
        nvml.nvmlInit()  # never shut down, because other code in this process may use NVML too
        self._nvml = nvml
        self._pid = os.getpid()
        # Weak, because the function of a virtual GPU would keep the whole GPU alive.
        self._function = weakref.ref(nvml.nvmlDeviceGetHandleByIndex)
        self._gpus: dict[tuple[int, bool], NvmlGpu] = {}

    def serves(self, nvml: Any) -> bool:  # noqa: ANN401 # pynvml has no types
        """Return whether its handles are valid for ``nvml`` as it is now, in this process."""
        is_same = self._function() is nvml.nvmlDeviceGetHandleByIndex
        return is_same and self._pid == os.getpid()

    def gpu(self, device: int) -> NvmlGpu:
        # Before torch starts CUDA, the index is a guess from the environment, so it is not stored
        # under the same key as the certain one.
        key = device, _has_started()
        if key not in self._gpus:
            self._gpus[key] = _find(self._nvml, device)
        return self._gpus[key]


_library: _NvmlLibrary | None = None


def forget() -> None:
    """Reconnect to NVML on the next read."""
    global _library  # noqa: PLW0603 # NVML is one per process, and so is its state
    _library = None


def gpu_of(device: int | None) -> NvmlGpu:
    """Return NVML's GPU for a torch device (None: the current one), without starting CUDA.

    Raises `ClocksUnavailableError` if NVML is missing or forbidden, or has no such GPU.
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
    """Return NVML's index of a torch device, according to CUDA_VISIBLE_DEVICES alone.

    Raises `ClocksUnavailableError` if torch cannot find it, for example because it is hidden.
    """
    try:
        # torch has no public function for this; its own clock_rate() uses this private one.
        return int(torch.cuda._get_nvml_device_index(device))  # noqa: SLF001  # PyTorch has no public name for it
    except Exception as error:
        # It fails in many ways (RuntimeError, AssertionError, IndexError), which depend on the
        # version of torch and on the value of the variable.
        raise ClocksUnavailableError(
            f"the clocks of device {device} cannot be read: {error}; "
            "check CUDA_VISIBLE_DEVICES and torch.cuda.device_count()"
        ) from error


def _find(nvml: Any, device: int) -> NvmlGpu:  # noqa: ANN401 # pynvml has no types
    index = index_in_environment(device)
    gpu = NvmlGpu(nvml, nvml.nvmlDeviceGetHandleByIndex(index), index)
    # Asking torch for the UUID would start CUDA, which a program that forks later must avoid.
    if gpu.is_virtual or not _has_started():
        return gpu
    # CUDA numbers the fastest GPU first, NVML numbers by bus. On a machine with different GPUs,
    # only the UUID identifies one.
    uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
        return NvmlGpu(nvml, handle, int(nvml.nvmlDeviceGetIndex(handle)))
    except nvml.NVMLError:
        return gpu  # a part of a GPU (MIG) has a UUID of its own that no NVML device has
