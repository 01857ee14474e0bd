"""``pynvml`` and the NVML functions of ``torch.cuda`` read the virtual GPU."""

import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType, SimpleNamespace

import pytest
import torch

from gpulab.gpus import gpu
from gpulab.virtual import SimulatedRegime, power_draw
from gpulab.virtual.patches import _pynvml as pynvml
from gpulab.virtual.simulator import nvml

S = 1_000_000_000
IS_INSTALLED = importlib.util.find_spec("pynvml") is not None
needs_package = pytest.mark.skipif(not IS_INSTALLED, reason="nvidia-ml-py is not installed")


class Host:
    """The parts of the virtual host that NVML uses."""

    def __init__(self) -> None:
        self.now_ns = self.caught_up_ns = 0

    def spend(self, duration_ns: int) -> None:
        """Advance the time."""
        self.now_ns += duration_ns

    def catch_up(self) -> None:
        """Record the time up to which the device was simulated."""
        self.caught_up_ns = self.now_ns


class Machine:
    """The parts of the virtual machine that NVML uses."""

    def __init__(self, *names: str) -> None:
        self.host = Host()
        self.current = 0
        self.gpus = [
            SimpleNamespace(
                index=index,
                spec=gpu(name),
                device=SimpleNamespace(regime=SimulatedRegime(gpu(name))),
                memory=SimpleNamespace(
                    capacity_bytes=gpu(name).memory_bytes,
                    free_bytes=gpu(name).memory_bytes - 2**30 * (1 - index),
                    reserved_bytes=2**30 * (1 - index),
                ),
            )
            for index, name in enumerate(names)
        ]

    @property
    def regime(self) -> SimulatedRegime:
        """Return the regime of the first GPU."""
        regime: SimulatedRegime = self.gpus[0].device.regime
        return regime

    def work(self, duration_ns: int) -> None:
        """Run half-precision matmuls on the first GPU, as one kernel."""
        load = power_draw("float16", 2 * 8192**3, 3 * 2 * 8192**2, 1_450_000, self.regime.spec)
        self.regime.start(self.host.now_ns, load)
        self.host.spend(duration_ns)
        self.regime.end(self.host.now_ns, load)


@contextmanager
def entered(machine: Machine) -> Iterator[ModuleType]:
    """Let ``pynvml`` and ``torch.cuda`` read the machine, as entering a virtual GPU does."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, names in pynvml.replacements(machine):
            for name, value in names.items():
                # setattr would read the old value, which calls the stand-in's __getattr__.
                patch.setitem(vars(owner), name, value)
        with ExitStack() as undo:
            pynvml.install(machine, undo)
            yield importlib.import_module("pynvml")


@pytest.fixture(
    params=[pytest.param("installed", marks=needs_package), "not installed"], autouse=True
)
def package(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test with nvidia-ml-py and without."""
    if request.param == "not installed":
        monkeypatch.setitem(sys.modules, "pynvml", None)
        monkeypatch.delattr(torch.cuda, "pynvml", raising=False)
        monkeypatch.setattr(torch.cuda, "_HAS_PYNVML", False)


@pytest.fixture
def machine() -> Machine:
    """Return a machine with an idle H200 and a T4."""
    return Machine("H200", "T4")


@pytest.fixture
def library(machine: Machine) -> Iterator[ModuleType]:
    """Return an initialised ``pynvml`` that reads the machine."""
    with entered(machine) as module:
        module.nvmlInit()
        yield module


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
    assert library.nvmlDeviceGetPerformanceState(handle) == library.NVML_PSTATE_0
    use = library.nvmlDeviceGetUtilizationRates(handle)
    assert (use.gpu, use.memory) == (0, 0)


def test_readings_under_load(library: ModuleType, machine: Machine) -> None:
    """After 2 s of matmuls the power limit lowers the clock, and NVML gives it as the reason."""
    machine.work(2 * S)
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
    """Name, capability and power limits of a GPU are those of its data sheet."""
    handle = library.nvmlDeviceGetHandleByIndex(1)
    assert library.nvmlDeviceGetCount() == 2
    assert library.nvmlDeviceGetName(handle) == "Tesla T4"
    assert library.nvmlDeviceGetIndex(handle) == 1
    assert library.nvmlDeviceGetCudaComputeCapability(handle) == (7, 5)
    assert library.nvmlSystemGetDriverVersion() == "virtual"
    assert library.nvmlDeviceGetPowerManagementDefaultLimit(handle) == 70_000
    assert library.nvmlDeviceGetPowerManagementLimitConstraints(handle) == [20_000, 70_000]
    assert library.nvmlDeviceGetPersistenceMode(handle) == library.NVML_FEATURE_ENABLED


def test_handles_are_found_by_uuid_and_bus(library: ModuleType) -> None:
    """A GPU is found again by its UUID and by its bus, as text or bytes."""
    handle = library.nvmlDeviceGetHandleByIndex(1)
    uuid = library.nvmlDeviceGetUUID(handle)
    assert uuid == "GPU-00000000-0000-0000-0000-000000000001"
    assert library.nvmlDeviceGetHandleByUUID(uuid.encode()) == handle
    bus_id = library.nvmlDeviceGetPciInfo(handle).busId
    assert library.nvmlDeviceGetHandleByPciBusId(bus_id) == handle
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
    """Memory that PyTorch reserved counts as used by this process, on that GPU alone."""
    first, second = map(library.nvmlDeviceGetHandleByIndex, (0, 1))
    memory = library.nvmlDeviceGetMemoryInfo(first)
    assert (memory.total, memory.used) == (150109880320, 2**30)
    assert memory.free == memory.total - memory.used
    (process,) = library.nvmlDeviceGetComputeRunningProcesses(first)
    assert (process.pid, process.usedGpuMemory) == (os.getpid(), 2**30)
    assert library.nvmlDeviceGetComputeRunningProcesses_v3(second) == []


def test_thresholds_are_those_of_the_recorded_gpu(library: ModuleType) -> None:
    """The temperature thresholds are those of the recorded GPU."""
    handle = library.nvmlDeviceGetHandleByIndex(0)
    names = ("GPU_MAX", "SLOWDOWN", "SHUTDOWN")
    thresholds = [getattr(library, f"NVML_TEMPERATURE_THRESHOLD_{name}") for name in names]
    read = library.nvmlDeviceGetTemperatureThreshold
    assert [read(handle, threshold) for threshold in thresholds] == [87, 89, 95]
    assert error_of(read, handle, 2) == ("NVMLError_NotSupported", 3, "Not Supported")


def test_a_reading_takes_host_time_and_is_current(library: ModuleType, machine: Machine) -> None:
    """A reading takes host time, and the device is simulated up to that time before it."""
    handle = library.nvmlDeviceGetHandleByIndex(0)
    machine.host.now_ns = 5 * S
    library.nvmlDeviceGetPowerUsage(handle)
    assert machine.host.now_ns == machine.host.caught_up_ns == 5 * S + nvml.READ_NS


def test_another_thread_reads_without_moving_the_time(
    library: ModuleType, machine: Machine
) -> None:
    """A reading on another thread advances neither the virtual time nor the device."""
    handle = library.nvmlDeviceGetHandleByIndex(0)
    machine.regime.start(0, power_draw("float16", 10**15, 0, S, machine.regime.spec))
    machine.host.now_ns = 5 * S
    seen: list[int] = []
    thread = threading.Thread(
        target=lambda: seen.append(library.nvmlDeviceGetClockInfo(handle, 1))
    )
    thread.start()
    thread.join()
    assert seen == [1980]
    assert machine.host.now_ns == 5 * S


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("nvmlDeviceSetGpuLockedClocks", (1200, 1200)),
        ("nvmlDeviceResetGpuLockedClocks", ()),
        ("nvmlDeviceSetPowerManagementLimit", (400_000,)),
        ("nvmlDeviceSetPersistenceMode", (0,)),
    ],
)
def test_an_ordinary_user_may_set_nothing(
    library: ModuleType, name: str, args: tuple[int, ...]
) -> None:
    """Without rights every setting fails with NVML's error for a user who is not root."""
    handle = library.nvmlDeviceGetHandleByIndex(0)
    expected = ("NVMLError_NoPermission", 4, "Insufficient Permissions")
    assert error_of(getattr(library, name), handle, *args) == expected


def test_clocks_stay_locked_until_they_are_reset(library: ModuleType, machine: Machine) -> None:
    """With rights a locked clock slows the virtual device until it is reset."""
    machine.regime.has_clock_rights = True
    handle = library.nvmlDeviceGetHandleByIndex(0)
    library.nvmlDeviceSetGpuLockedClocks(handle, 1200, 1200)
    assert library.nvmlDeviceGetClockInfo(handle, 1) == 1200
    assert library.nvmlDeviceGetMaxClockInfo(handle, 1) == 1980
    assert machine.regime.stretch("float32", machine.host.now_ns) == 1980 / 1200
    library.nvmlDeviceResetGpuLockedClocks(handle)
    machine.host.spend(S)
    assert library.nvmlDeviceGetClockInfo(handle, 1) == 1980
    assert error_of(library.nvmlDeviceSetGpuLockedClocks, handle, 1300, 1200) == (
        "NVMLError_InvalidArgument",
        2,
        "Invalid Argument",
    )


def test_power_limit_and_persistence_can_be_set(library: ModuleType, machine: Machine) -> None:
    """With rights, power limit and persistence can be set within the GPU's limits."""
    machine.regime.has_clock_rights = True
    handle = library.nvmlDeviceGetHandleByIndex(0)
    library.nvmlDeviceSetPowerManagementLimit(handle, 400_000)
    assert library.nvmlDeviceGetEnforcedPowerLimit(handle) == 400_000
    assert library.nvmlDeviceGetPowerManagementLimit(handle) == 400_000
    for limit_mw in (199_000, 701_000):
        assert error_of(library.nvmlDeviceSetPowerManagementLimit, handle, limit_mw)[1] == 2
    library.nvmlDeviceSetPersistenceMode(handle, 0)
    assert library.nvmlDeviceGetPersistenceMode(handle) == 0


def test_nothing_is_read_before_init_or_after_shutdown(machine: Machine) -> None:
    """Calls before ``nvmlInit`` or after the last ``nvmlShutdown`` raise Uninitialized."""
    expected = ("NVMLError_Uninitialized", 1, "Uninitialized")
    with entered(machine) as module:
        assert error_of(module.nvmlDeviceGetCount) == expected
        module.nvmlInitWithFlags(0)
    with entered(machine) as module:
        assert module.nvmlDeviceGetCount() == 2
        module.nvmlShutdown()
        assert error_of(module.nvmlDeviceGetCount) == expected
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


def test_functions_without_a_model_are_not_found(library: ModuleType) -> None:
    """A function without a model raises FunctionNotFound and does not call a real NVML."""
    handle = library.nvmlDeviceGetHandleByIndex(0)
    expected = ("NVMLError_FunctionNotFound", 13, "Function Not Found")
    assert error_of(library.nvmlDeviceGetFanSpeed, handle) == expected


def test_errors_are_caught_by_their_classes(library: ModuleType) -> None:
    """An error is an instance of ``NVMLError`` and of the class for its code."""
    for caught in (library.NVMLError, library.NVMLError_InvalidArgument):
        with pytest.raises(caught):
            library.nvmlDeviceGetHandleByIndex(-1)
    made = library.NVMLError(nvml.INVALID_ARGUMENT)
    assert (type(made), made.value) == (library.NVMLError_InvalidArgument, nvml.INVALID_ARGUMENT)


def test_torch_reads_the_virtual_gpu(machine: Machine) -> None:
    """NVML functions of ``torch.cuda`` work with and without nvidia-ml-py."""
    with entered(machine):
        assert torch.cuda.clock_rate(0) == 1980
        assert torch.cuda.power_draw(0) == 125_000
        assert torch.cuda.temperature(0) == 37
        assert torch.cuda.utilization("cuda:1") == 0
        assert torch.cuda.memory_usage(torch.device("cuda", 1)) == 0
        assert torch.cuda.device_memory_used() == 2**30
        assert torch.cuda.list_gpu_processes(1) == "GPU:1\nno processes are running"
        assert (
            f"process {os.getpid():>10d} uses     1024.000 MB" in torch.cuda.list_gpu_processes()
        )


def test_torch_refuses_a_device_that_is_not_there(machine: Machine) -> None:
    """A wrong device raises PyTorch's message; CUDA_VISIBLE_DEVICES has no influence."""
    with pytest.MonkeyPatch.context() as patch, entered(machine):
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        assert torch.cuda.clock_rate(1) == 1590
        with pytest.raises(RuntimeError) as error:
            torch.cuda.clock_rate(2)
    assert str(error.value) == "device 2 is not visible (CUDA_VISIBLE_DEVICES=[0, 1])"


def test_everything_is_as_before_afterwards(machine: Machine) -> None:
    """Afterwards ``sys.modules`` and the real package are unchanged."""
    before = sys.modules["pynvml"]
    names = dict(vars(before)) if before else {}
    with entered(machine):
        assert importlib.util.find_spec("pynvml") is not None
    assert sys.modules["pynvml"] is before
    assert (dict(vars(before)) if before else {}) == names


def test_a_package_never_imported_is_not_there_afterwards(machine: Machine) -> None:
    """If ``pynvml`` was not imported before, ``sys.modules`` has no entry for it afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "pynvml")
        with entered(machine):
            assert "pynvml" in sys.modules
        assert "pynvml" not in sys.modules


def test_an_unknown_name_of_the_stand_in_lists_the_known_ones(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt name raises an AttributeError that lists the names, or says the GPU was left."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with entered(machine) as module:
        with pytest.raises(AttributeError) as error:
            module.NVML_CLOCK_SN  # noqa: B018 # reading it is the test
        assert str(error.value).startswith(
            "module 'pynvml' has no attribute 'NVML_CLOCK_SN'; the virtual one has NVMLError, "
        )
        assert "NVML_CLOCK_SM, " in str(error.value)
    with pytest.raises(AttributeError) as error:
        module.nvmlInit  # noqa: B018 # reading it is the test
    assert str(error.value) == (
        "module 'pynvml' has no attribute 'nvmlInit'; the virtual GPU was left"
    )


@needs_package
def test_the_stand_in_agrees_with_the_real_package(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Constants, error codes and messages of the stand-in are those of the real package."""
    monkeypatch.delitem(sys.modules, "pynvml")
    real = importlib.import_module("pynvml")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with entered(machine) as module:
        ours = {name: value for name, value in vars(module).items() if "__" not in name}
    for name, value in ours.items():
        assert hasattr(real, name), name
        if isinstance(value, int):
            assert value == getattr(real, name), name
        elif isinstance(value, type) and value is not ours["NVMLError"]:
            assert issubclass(value, ours["NVMLError"])
            assert getattr(real, name)().value == value.value, name
    for name in ("NoPermission", "NotFound", "NotSupported", "FunctionNotFound"):
        assert str(ours[f"NVMLError_{name}"]()) == str(getattr(real, f"NVMLError_{name}")())
