"""Other processes on a GPU: this one is never counted, also where its number is unknown."""

import os
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import gpulab
from gpulab.core.errors import ClocksUnavailableError
from gpulab.device.clocks import OtherProcesses, _nvml, other_processes

GIB = 2**30


class FakeError(Exception):
    """An error of the fake NVML."""


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list of processes that a fake NVML gives."""
    processes: list[Any] = []
    nvml = SimpleNamespace(
        NVMLError=FakeError, nvmlDeviceGetComputeRunningProcesses=lambda _handle: processes
    )
    monkeypatch.setattr(_nvml, "gpu_of", lambda _device: _nvml.NvmlGpu(nvml, 0, 0))
    return processes


def process(pid: int, size_bytes: int | None) -> SimpleNamespace:
    """Return a process as NVML describes it."""
    return SimpleNamespace(pid=pid, usedGpuMemory=size_bytes)


def test_this_process_is_not_counted(running: list[Any]) -> None:
    """Two others are two, with the sum of their memory."""
    assert other_processes() == OtherProcesses(0, 0)
    running += [process(os.getpid(), 7 * GIB), process(-1, GIB), process(-2, 2 * GIB)]
    assert other_processes() == OtherProcesses(2, 3 * GIB)


def test_in_a_container_the_one_with_this_memory_is_left_out(
    running: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVML gives numbers from outside: the process just above what PyTorch reserved is ours."""
    running += [process(-1, GIB), process(-2, 5 * GIB), process(-3, 9 * GIB)]
    assert other_processes() == OtherProcesses(3, 15 * GIB)  # CUDA has not started here
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _device: 4 * GIB)
    assert other_processes() == OtherProcesses(2, 10 * GIB)
    del running[1:]
    assert other_processes() == OtherProcesses(0, 0)


def test_memory_that_the_driver_does_not_say_is_unknown(running: list[Any]) -> None:
    """The number of processes is known all the same."""
    running += [process(-1, None), process(-2, GIB)]
    assert other_processes() == OtherProcesses(2, None)
    assert str(other_processes()) == "2 other processes"


def test_a_driver_that_lists_nothing_is_unknown(
    running: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither an error nor a missing function of NVML stops a measurement."""

    def refuse(_handle: object) -> None:
        raise FakeError

    gpu = _nvml.gpu_of(None)
    monkeypatch.setattr(gpu.nvml, "nvmlDeviceGetComputeRunningProcesses", refuse)
    assert other_processes() is None
    monkeypatch.delattr(gpu.nvml, "nvmlDeviceGetComputeRunningProcesses")
    assert other_processes() is None

    def unavailable(_device: int | None) -> None:
        raise ClocksUnavailableError

    monkeypatch.setattr(_nvml, "gpu_of", unavailable)
    assert other_processes() is None
    assert running == []


def test_a_virtual_gpu_is_not_shared() -> None:
    """It belongs to this process."""
    with gpulab.virtual_gpu("H200", first_use=False):
        assert other_processes() == OtherProcesses(0, 0)
