"""``pynvml`` and the NVML functions of ``torch.cuda`` read the virtual GPU."""

import importlib
import os
import threading
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
import torch

import gpulab
from gpulab.virtual import SimulatedRegime, VirtualGpu, power_draw
from gpulab.virtual.simulator import nvml

S = 1_000_000_000


@pytest.fixture
def gpu() -> Iterator[VirtualGpu]:
    """Enter a machine with two idle H200s."""
    with gpulab.virtual_gpu("H200", count=2, first_use=False) as virtual:
        yield virtual


@pytest.fixture
def library(gpu: VirtualGpu) -> ModuleType:  # noqa: ARG001 # it is entered
    """Return an initialised ``pynvml`` that reads the machine."""
    module = importlib.import_module("pynvml")
    module.nvmlInit()
    return module


def regime_of(gpu: VirtualGpu) -> SimulatedRegime:
    """Return the regime of the first GPU."""
    return gpu.machine.gpu.device.regime


def error_of(call: Callable[..., object], *args: object) -> tuple[str, int, str]:
    """Return the class, code and message of the error that a call raises."""
    with pytest.raises(Exception) as error:  # noqa: PT011 # the test compares its class
        call(*args)
    value = error.value
    return type(value).__name__, value.value, str(value)  # type: ignore[attr-defined] # NVML's have it


def test_readings_at_rest(library: ModuleType) -> None:
    """Readings of an idle H200 are those of the recorded one, in NVML's units."""
    handle = library.nvmlDeviceGetHandleByIndex(0)
    assert library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_SM) == 1980
    assert library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_GRAPHICS) == 1980
    assert library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_MEM) == 3201
    assert library.nvmlDeviceGetPowerUsage(handle) == 125_000
    assert library.nvmlDeviceGetTemperature(handle, library.NVML_TEMPERATURE_GPU) == 37
    assert library.nvmlDeviceGetTemperatureV(handle, library.NVML_TEMPERATURE_GPU) == 37
    assert library.nvmlDeviceGetCurrentClocksThrottleReasons(handle) == 0
    use = library.nvmlDeviceGetUtilizationRates(handle)
    assert (use.gpu, use.memory) == (0, 0)


def test_readings_under_load(library: ModuleType, gpu: VirtualGpu) -> None:
    """After 2 s of matmuls the power limit lowers the clock, and NVML gives it as the reason."""
    regime, host = regime_of(gpu), gpu.machine.host
    load = power_draw("float16", 2 * 8192**3, 3 * 2 * 8192**2, 1_450_000, regime.spec)
    regime.start(host.now_ns, load)
    host.spend(2 * S)
    regime.end(host.now_ns, load)
    handle = library.nvmlDeviceGetHandleByIndex(0)
    assert 1380 <= library.nvmlDeviceGetClockInfo(handle, 1) <= 1480
    assert library.nvmlDeviceGetPowerUsage(handle) == pytest.approx(690_900, abs=1_000)
    reasons = library.nvmlDeviceGetCurrentClocksEventReasons(handle)
    assert reasons == library.nvmlClocksEventReasonSwPowerCap
    use = library.nvmlDeviceGetUtilizationRates(handle)
    assert (use.gpu, use.memory) == (100, 6)
    energy_mj = library.nvmlDeviceGetTotalEnergyConsumption(handle)
    assert energy_mj == pytest.approx(2 * 690_900, rel=0.05)


def test_a_gpus_identity_comes_from_its_data_sheet(library: ModuleType) -> None:
    """Name, capability and power limit of a GPU are those of its data sheet."""
    handle = library.nvmlDeviceGetHandleByIndex(1)
    assert library.nvmlDeviceGetCount() == 2
    assert library.nvmlDeviceGetName(handle) == "NVIDIA H200"
    assert library.nvmlDeviceGetIndex(handle) == 1
    assert library.nvmlDeviceGetCudaComputeCapability(handle) == (9, 0)
    assert library.nvmlSystemGetDriverVersion() == "virtual"
    assert library.nvmlDeviceGetEnforcedPowerLimit(handle) == 700_000
    assert library.nvmlDeviceGetPowerManagementLimit(handle) == 700_000


def test_handles_are_found_by_uuid(library: ModuleType) -> None:
    """A GPU is found again by its UUID, as text or bytes."""
    handle = library.nvmlDeviceGetHandleByIndex(1)
    uuid = library.nvmlDeviceGetUUID(handle)
    assert uuid == "GPU-00000000-0000-0000-0000-000000000001"
    handles = [library.nvmlDeviceGetHandleByUUID(each) for each in (uuid, uuid.encode())]
    assert handles == [handle, handle]
    assert error_of(library.nvmlDeviceGetHandleByUUID, "GPU-9") == (
        "NVMLError_NotFound",
        6,
        "Not Found",
    )


def test_supported_clocks(library: ModuleType) -> None:
    """NVML returns the highest clocks, and the list of clocks for each memory clock."""
    handle = library.nvmlDeviceGetHandleByIndex(0)
    assert library.nvmlDeviceGetMaxClockInfo(handle, library.NVML_CLOCK_SM) == 1980
    assert library.nvmlDeviceGetMaxClockInfo(handle, library.NVML_CLOCK_MEM) == 3201
    assert library.nvmlDeviceGetClock(handle, 1, library.NVML_CLOCK_ID_CUSTOMER_BOOST_MAX) == 1980
    assert library.nvmlDeviceGetSupportedMemoryClocks(handle) == [3201]
    clocks = library.nvmlDeviceGetSupportedGraphicsClocks(handle, 3201)
    assert (clocks[0], clocks[1], clocks[-1], len(clocks)) == (1980, 1965, 345, 110)
    assert error_of(library.nvmlDeviceGetSupportedGraphicsClocks, handle, 5)[1] == 6


def test_memory_and_processes(library: ModuleType) -> None:
    """Memory is that of the device, and this process uses it once it has allocated some."""
    handle = library.nvmlDeviceGetHandleByIndex(0)
    assert library.nvmlDeviceGetComputeRunningProcesses(handle) == []
    kept = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    handles = library.nvmlDeviceGetMemoryInfo(handle)
    assert (handles.free, handles.total) == torch.cuda.mem_get_info()
    assert handles.used == handles.total - handles.free > kept.nbytes
    (process,) = library.nvmlDeviceGetComputeRunningProcesses(handle)
    assert (process.pid, process.usedGpuMemory) == (os.getpid(), handles.used)


def test_another_thread_reads_without_moving_the_time(
    library: ModuleType, gpu: VirtualGpu
) -> None:
    """On another thread a reading takes no virtual time, on the program's own a microsecond."""
    handle = library.nvmlDeviceGetHandleByIndex(0)
    regime_of(gpu).start(0, power_draw("float16", 10**15, 0, S, regime_of(gpu).spec))
    gpu.machine.host.now_ns = 5 * S
    seen: list[int] = []
    thread = threading.Thread(
        target=lambda: seen.append(library.nvmlDeviceGetClockInfo(handle, 1))
    )
    thread.start()
    thread.join()
    assert seen == [1980]
    assert gpu.machine.host.now_ns == 5 * S
    library.nvmlDeviceGetClockInfo(handle, 1)
    assert gpu.machine.host.now_ns == 5 * S + nvml.READ_NS


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("nvmlDeviceSetGpuLockedClocks", (1200, 1200)),
        ("nvmlDeviceResetGpuLockedClocks", ()),
    ],
)
def test_an_ordinary_user_may_set_nothing(
    library: ModuleType, name: str, args: tuple[int, ...]
) -> None:
    """Without rights every setting fails with NVML's error for a user who is not root."""
    handle = library.nvmlDeviceGetHandleByIndex(0)
    expected = ("NVMLError_NoPermission", 4, "Insufficient Permissions")
    assert error_of(getattr(library, name), handle, *args) == expected


def test_clocks_stay_locked_until_they_are_reset(library: ModuleType, gpu: VirtualGpu) -> None:
    """With rights a locked clock slows the virtual device until it is reset."""
    regime_of(gpu).has_clock_rights = True
    handle = library.nvmlDeviceGetHandleByIndex(0)
    library.nvmlDeviceSetGpuLockedClocks(handle, 1200, 1200)
    assert library.nvmlDeviceGetClockInfo(handle, 1) == 1200
    assert library.nvmlDeviceGetMaxClockInfo(handle, 1) == 1980
    assert regime_of(gpu).stretch("float32", gpu.machine.host.now_ns) == 1980 / 1200
    library.nvmlDeviceResetGpuLockedClocks(handle)
    gpu.machine.host.spend(S)
    assert library.nvmlDeviceGetClockInfo(handle, 1) == 1980
    assert error_of(library.nvmlDeviceSetGpuLockedClocks, handle, 1300, 1200) == (
        "NVMLError_InvalidArgument",
        2,
        "Invalid Argument",
    )


def test_nothing_is_read_before_init_or_after_shutdown() -> None:
    """Calls before ``nvmlInit`` or after the last ``nvmlShutdown`` raise Uninitialized."""
    expected = ("NVMLError_Uninitialized", 1, "Uninitialized")
    gpu = gpulab.virtual_gpu("H200", count=2)
    with gpu:
        module = importlib.import_module("pynvml")
        assert error_of(module.nvmlDeviceGetCount) == expected
        module.nvmlInitWithFlags(0)
    with gpu:
        module = importlib.import_module("pynvml")
        assert module.nvmlDeviceGetCount() == 2
        handle = module.nvmlDeviceGetHandleByIndex(0)
        module.nvmlShutdown()
        assert error_of(module.nvmlDeviceGetCount) == expected
        assert error_of(module.nvmlDeviceGetName, handle) == expected
        assert error_of(module.nvmlShutdown) == expected


@pytest.mark.parametrize(
    ("name", "args", "code"),
    [
        ("nvmlDeviceGetHandleByIndex", (2,), nvml.INVALID_ARGUMENT),
        ("nvmlDeviceGetName", ("H200",), nvml.INVALID_ARGUMENT),
        ("nvmlDeviceGetClockInfo", (nvml.NvmlHandle(0), 3), nvml.NOT_SUPPORTED),
        ("nvmlDeviceGetTemperature", (nvml.NvmlHandle(0), 1), nvml.INVALID_ARGUMENT),
    ],
)
def test_wrong_arguments_have_codes(
    library: ModuleType, name: str, args: tuple[object, ...], code: int
) -> None:
    """A wrong argument raises the error with NVML's code for it."""
    assert error_of(getattr(library, name), *args)[1] == code


@pytest.mark.usefixtures("gpu")
def test_torch_refuses_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong device raises PyTorch's message; CUDA_VISIBLE_DEVICES has no influence."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert torch.cuda.clock_rate(1) == 1980
    with pytest.raises(RuntimeError) as error:
        torch.cuda.clock_rate(2)
    assert str(error.value) == "device 2 is not visible (CUDA_VISIBLE_DEVICES=[0, 1])"
