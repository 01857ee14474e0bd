"""Reading clocks of real and virtual GPUs, of several GPUs, and missing values."""

import sys
import time
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace

import pytest
import torch

import gpulab
from gpulab.core.errors import ClocksUnavailableError
from gpulab.device.clocks import (
    PARTS,
    QUICK,
    Reading,
    _nvml,
    read,
    to_frame,
    try_read,
    watch,
)
from gpulab.device.clocks._reading import reasons_of
from gpulab.virtual.simulator.nvml import READ_NS

NOT_SUPPORTED, UNINITIALIZED, NOT_FOUND, FUNCTION_NOT_FOUND = 3, 1, 6, 13


class FakeError(Exception):
    """An error of the fake NVML."""

    def __init__(self, value: int) -> None:
        super().__init__(f"code {value}")
        self.value = value


class FakeNvml:
    """A fake NVML whose handles are numbers, with a list of its calls."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_running = False
        self.answers: dict[str, Callable[..., object]] = {
            "GetHandleByIndex": lambda index: index,
            "GetHandleByUUID": self.refuser(NOT_FOUND),
            "GetIndex": lambda handle: handle,
            "GetClockInfo": lambda handle, kind: 1000 * kind + handle,
            "GetPowerUsage": lambda _handle: 690_900,
            "GetEnforcedPowerLimit": lambda _handle: 700_000,
            "GetTemperature": lambda _handle, sensor: 60 + sensor,
            "GetUtilizationRates": lambda _handle: SimpleNamespace(gpu=97),
            "GetCurrentClocksEventReasons": lambda _handle: 0x24,
            "GetCurrentClocksThrottleReasons": lambda _handle: 0x08,
            "GetMaxClockInfo": lambda _handle, kind: 1979 + kind,
        }
        self.module = ModuleType("pynvml")
        vars(self.module).update(
            NVMLError=FakeError,
            NVML_ERROR_UNINITIALIZED=UNINITIALIZED,
            NVML_CLOCK_SM=1,
            NVML_CLOCK_MEM=2,
            NVML_TEMPERATURE_GPU=0,
            nvmlInit=self.init,
            **{f"nvmlDevice{name}": self.function(name) for name in self.answers},
        )

    @staticmethod
    def refuser(code: int) -> Callable[..., object]:
        """Return a function that raises this error code."""

        def refuse(*_args: object) -> object:
            raise FakeError(code)

        return refuse

    def init(self) -> None:
        """Start NVML."""
        self.asked.append("Init")
        self.is_running = True

    def function(self, name: str) -> Callable[..., object]:
        """Return a plain function, because the virtual GPU replaces only those."""

        def ask(*args: object) -> object:
            self.asked.append(name)
            if not self.is_running:
                raise FakeError(UNINITIALIZED)
            return self.answers[name](*args)

        return ask


@pytest.fixture(autouse=True)
def _no_gpu_is_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the process look as if it had not used CUDA."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    _nvml.forget()
    yield
    _nvml.forget()


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Return the fake NVML, installed as the package."""
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake.module)
    return fake


def message_of(kind: type[Exception], call: Callable[[], object]) -> str:
    """Return the message of the error that a call raises."""
    with pytest.raises(kind) as error:
        call()
    return str(error.value)


def test_every_part_has_its_unit(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    """Milliwatts become watts, bits become words, and the time is the host's clock."""
    monkeypatch.setattr(time, "perf_counter", lambda: 12.5)
    assert read() == Reading(
        at_s=12.5,
        sm_mhz=1000,
        memory_mhz=2000,
        power_w=690.9,
        power_limit_w=700.0,
        temperature_c=60,
        utilization=97,
        reasons=("power cap", "thermal slowdown (software)"),
        max_sm_mhz=1980,
    )
    assert nvml.asked.count("GetClockInfo") == 2


def test_refused_parts_are_none(nvml: FakeNvml) -> None:
    """A part that the GPU or driver refuses is None, and the others are read."""
    nvml.answers["GetPowerUsage"] = nvml.refuser(NOT_SUPPORTED)
    nvml.answers["GetMaxClockInfo"] = nvml.refuser(NOT_SUPPORTED)
    reading = read()
    assert (reading.power_w, reading.max_sm_mhz) == (None, None)
    assert (reading.sm_mhz, reading.temperature_c) == (1000, 60)


def test_reasons_that_nobody_gives_are_none(nvml: FakeNvml) -> None:
    """No reasons are an empty tuple, and unreadable reasons are None."""
    nvml.answers["GetCurrentClocksEventReasons"] = lambda _handle: 0
    assert read().reasons == ()
    nvml.answers["GetCurrentClocksEventReasons"] = nvml.refuser(NOT_SUPPORTED)
    nvml.answers["GetCurrentClocksThrottleReasons"] = nvml.refuser(NOT_SUPPORTED)
    assert read().reasons is None


def test_every_reason_has_a_word() -> None:
    """Each of NVML's bits has a name, and unknown bits are shown as numbers."""
    assert reasons_of(0x7FF) == (
        "idle",
        "applications clocks",
        "power cap",
        "hardware slowdown",
        "sync boost",
        "thermal slowdown (software)",
        "thermal slowdown (hardware)",
        "power brake",
        "display clocks",
        "reason 0x200",
        "reason 0x400",
    )
    assert reasons_of(0) == ()


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """`read` says what to install, and `try_read` returns None."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert message_of(ClocksUnavailableError, read) == (
        "the clocks cannot be read: nvidia-ml-py is not installed; pip install nvidia-ml-py"
    )
    assert try_read() is None


def test_missing_driver_is_named(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error quotes NVML's own words."""
    monkeypatch.setitem(vars(nvml.module), "nvmlInit", nvml.refuser(9))
    assert message_of(ClocksUnavailableError, read) == (
        "the clocks cannot be read: NVML answers: code 9; check that nvidia-smi lists the GPU"
    )
    assert try_read() is None


@pytest.mark.usefixtures("nvml")
def test_hidden_device_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device hidden by CUDA_VISIBLE_DEVICES cannot be read."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert message_of(ClocksUnavailableError, lambda: read(1)) == (
        "the clocks of device 1 cannot be read: device 1 is not visible "
        "(CUDA_VISIBLE_DEVICES=[0]); check CUDA_VISIBLE_DEVICES and torch.cuda.device_count()"
    )
    assert try_read(1) is None


@pytest.mark.usefixtures("nvml")
def test_numbers_follow_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Device 0 is the first of CUDA_VISIBLE_DEVICES, translated to NVML's number."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    assert [read(device).sm_mhz for device in (None, 0, 1)] == [1003, 1003, 1001]


def test_gpu_is_found_by_its_uuid(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU in use is found by UUID, as CUDA and NVML number GPUs differently."""
    nvml.answers["GetHandleByUUID"] = {"GPU-a": 5, "GPU-b": 4}.__getitem__
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid="ab"[device])
    )
    assert (read().sm_mhz, read(0).sm_mhz) == (1004, 1005)
    assert _nvml.gpu_of(0).index == 5  # by which nvidia-smi finds it
    nvml.answers["GetHandleByUUID"] = nvml.refuser(NOT_FOUND)
    _nvml.forget()
    assert (read().sm_mhz, read(0).sm_mhz) == (1001, 1000)


def test_nvml_that_somebody_shut_down_is_opened_again(nvml: FakeNvml) -> None:
    """If the program has called nvmlShutdown, the next reading initializes NVML again."""
    read()
    nvml.is_running = False
    assert read(parts=["power_w"]).power_w == 690.9


def test_handles_do_not_change_worlds(nvml: FakeNvml) -> None:
    """Real handles go to the real NVML and virtual ones to the virtual, on each switch."""
    handles: list[object] = []

    def clock(handle: object, _kind: int) -> int:
        handles.append(handle)
        return 345

    nvml.answers["GetClockInfo"] = clock
    gpu = gpulab.virtual_gpu("A100")
    clocks_mhz = []
    for _ in range(2):
        clocks_mhz.append(read(0, parts=["sm_mhz"]).sm_mhz)
        with gpu:
            clocks_mhz.append(read(0, parts=["sm_mhz"]).sm_mhz)
    assert clocks_mhz == [345, 1410, 345, 1410]
    assert handles == [0, 0]


def test_virtual_gpu_at_rest() -> None:
    """A virtual GPU reads like a real one, at the real cost."""
    with gpulab.virtual_gpu("H200") as gpu:
        began_ns = gpu.machine.host.now_ns
        reading = read()
        assert gpu.machine.host.now_ns - began_ns - len(PARTS) * READ_NS < 100  # a look at a clock
        assert reading == Reading(reading.at_s, 1980, 3201, 125.0, 700.0, 37, 0, (), 1980)
        assert try_read(1) is None


def test_frame_has_a_row_a_reading() -> None:
    """Times start at 0, reasons are text, and unread values are missing."""
    frame = to_frame(
        [
            Reading(5.0, sm_mhz=1980, reasons=()),
            Reading(5.5, sm_mhz=1440, reasons=("power cap", "idle"), power_w=690.9),
        ]
    )
    assert list(frame.columns) == ["time_s", *PARTS]
    assert frame["time_s"].tolist() == [0.0, 0.5]
    assert frame["sm_mhz"].tolist() == [1980, 1440]
    assert frame["reasons"].tolist() == ["", "power cap, idle"]
    assert frame["power_w"].isna().tolist() == [True, False]
    assert frame["temperature_c"].isna().all()
    assert list(to_frame([]).columns) == ["time_s", *PARTS]


def matmuls(n: int = 8192) -> Callable[[], object]:
    """Return half-precision matmuls, which the power limit slows down."""
    a = torch.empty(n, n, device="cuda", dtype=torch.float16)
    return lambda: a @ a


def test_watching_sees_the_clock_fall() -> None:
    """The first reading is before the work, the others come on time, and the clock falls."""
    with gpulab.virtual_gpu("H200"):
        readings = list(watch(matmuls(), duration_s=0.4, period_s=0.1, parts=QUICK))
        assert torch.cuda.current_stream().query()  # nothing is left behind
    times_s = [reading.at_s - readings[0].at_s for reading in readings]
    assert [round(time_s, 2) for time_s in times_s] == [0.0, 0.1, 0.2, 0.3, 0.4]
    first, second, *others = [reading.sm_mhz for reading in readings]
    assert first == 1980
    assert second is not None
    assert 1440 < second < 1980
    assert all(1_400 < mhz < 1_480 for mhz in others if mhz is not None)
    assert None not in others
    assert [reading.reasons for reading in readings] == [(), (), *[("power cap",)] * 3]


def test_host_is_ahead_by_one_period_at_most() -> None:
    """No more than one period of work remains after the last reading."""
    with gpulab.virtual_gpu("H200", first_use=False):
        began_s = time.perf_counter()
        list(watch(matmuls(), duration_s=0.1, period_s=0.01))
        torch.cuda.synchronize()
        assert 0.1 < time.perf_counter() - began_s < 0.1 + 0.01 + 0.002
