"""NVML for virtual GPUs: the functions that read and set clocks, power, memory and limits.

NVML is NVIDIA's management library. Each call takes host time. ``gpulab.virtual.patches`` puts
these functions into ``pynvml`` while a virtual GPU is entered.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from gpulab.virtual.simulator._machine import Machine, SimulatedGpu
from gpulab.virtual.simulator._properties import uuid_of
from gpulab.virtual.simulator._thermal import (
    CLOCK_STEP_MHZ,
    LEAST_LIMIT_SHARE,
    LOWEST_CLOCK_MHZ,
    SimulatedRegime,
)

# A call of NVML, as measured beside an H200.
READ_NS = 1_000

NvmlCall = Callable[..., Any]

# NVML's numbers for errors, and for the clocks of a GPU.
UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION = 1, 2, 3, 4
NOT_FOUND, FUNCTION_NOT_FOUND = 6, 13
GRAPHICS, SM, MEMORY = 0, 1, 2

# By NVML's number: shutdown, slowdown and the highest operating temperature. An H200 at 37 °C was
# 50 °C below the last; slowdown is 2 °C above it, and shutdown 8 °C. Other GPUs get the same.
_THRESHOLDS_C = {0: 95, 1: 89, 3: 87}


@dataclass(frozen=True, slots=True)
class NvmlHandle:
    """NVML's handle of one GPU."""

    index: int


class _Record:
    """A structure of NVML, which has attributes only."""

    def __init__(self, **fields: object) -> None:
        vars(self).update(fields)


@dataclass(slots=True)
class _State:
    """How often NVML was initialised and not shut down, and each GPU's persistence mode."""

    n_users: int
    persistence: dict[int, int]


# By machine and not by context: a notebook enters and leaves the machine at every cell, and only
# one of the cells initialises NVML.
_states: WeakKeyDictionary[Machine, _State] = WeakKeyDictionary()


class _SimulatedNvml:
    """NVML for the GPUs of one machine.

    Calls take virtual time only on the thread that entered the machine. Another thread, such as
    that of a sampler, reads the latest state.
    """

    def __init__(self, machine: Machine, state: _State, error: Callable[[int], Exception]) -> None:
        self._machine = machine
        self._state = state
        self._error = error
        self._owner = threading.get_ident()

    def fail(self, code: int) -> NoReturn:
        raise self._error(code)

    def init(self, _flags: int = 0) -> None:
        self._state.n_users += 1

    def shutdown(self) -> None:
        self._require_init()
        self._state.n_users -= 1

    def count(self) -> int:
        self._require_init()
        return len(self._machine.gpus)

    def by_index(self, index: int) -> NvmlHandle:
        if not 0 <= index < self.count():
            self.fail(INVALID_ARGUMENT)
        return NvmlHandle(index)

    def by_name(self, name_of: Callable[[int], str], name: str | bytes) -> NvmlHandle:
        asked = name.decode() if isinstance(name, bytes) else name
        known = {name_of(index).upper(): NvmlHandle(index) for index in range(self.count())}
        if asked.upper() not in known:
            self.fail(NOT_FOUND)
        return known[asked.upper()]

    def gpu(self, handle: NvmlHandle) -> SimulatedGpu:
        self._require_init()
        if not isinstance(handle, NvmlHandle) or handle.index >= len(self._machine.gpus):
            self.fail(INVALID_ARGUMENT)
        return self._machine.gpus[handle.index]

    def read(self, handle: NvmlHandle) -> tuple[SimulatedRegime, int]:
        """Return the state of a GPU and the time at the end of the call."""
        regime = self.gpu(handle).device.regime
        if threading.get_ident() == self._owner:
            self._machine.host.spend(READ_NS)
            self._machine.host.catch_up()
            return regime, self._machine.host.now_ns
        # The regime takes an earlier time for its latest one.
        return regime, 0

    def write(self, handle: NvmlHandle) -> tuple[SimulatedRegime, int]:
        """Return the same as :meth:`read`; fail if the user may not change settings."""
        regime, now_ns = self.read(handle)
        if not regime.has_clock_rights:
            self.fail(NO_PERMISSION)
        return regime, now_ns

    def clock(self, handle: NvmlHandle, kind: int, clock_id: int = 0) -> int:
        regime, now_ns = self.read(handle)
        if kind == MEMORY:
            return regime.spec.memory_clock_mhz
        if kind not in {GRAPHICS, SM}:
            self.fail(NOT_SUPPORTED)
        # ``clock_id`` 0 is the present clock; the others are clocks that do not change.
        return regime.spec.boost_clock_mhz if clock_id else regime.clock_mhz(now_ns)

    def temperature(self, handle: NvmlHandle, sensor: int, _version: int = 0) -> int:
        regime, now_ns = self.read(handle)
        if sensor:
            self.fail(INVALID_ARGUMENT)
        return regime.temperature_c(now_ns)

    def threshold(self, handle: NvmlHandle, threshold: int) -> int:
        self.gpu(handle)
        if threshold not in _THRESHOLDS_C:
            self.fail(NOT_SUPPORTED)
        return _THRESHOLDS_C[threshold]

    def utilization(self, handle: NvmlHandle) -> _Record:
        regime, now_ns = self.read(handle)
        busy, memory = regime.utilization(now_ns)
        return _Record(gpu=busy, memory=memory)

    def memory(self, handle: NvmlHandle, _version: int | None = None) -> _Record:
        self.read(handle)
        gpu = self.gpu(handle)
        total = gpu.spec.memory_bytes
        # With the CUDA context, so this is more than PyTorch has reserved, as on hardware.
        used = total - gpu.memory.free_bytes
        return _Record(total=total, used=used, free=total - used, reserved=0)

    def processes(self, handle: NvmlHandle) -> list[_Record]:
        # The virtual GPU is used by this process alone, once it has allocated memory.
        memory = self.gpu(handle).memory
        used = memory.capacity_bytes - memory.free_bytes
        return [_Record(pid=os.getpid(), usedGpuMemory=used)] if memory.reserved_bytes else []

    def supported_clocks(self, handle: NvmlHandle, memory_mhz: int) -> list[int]:
        spec = self.gpu(handle).spec
        if memory_mhz != spec.memory_clock_mhz:
            self.fail(NOT_FOUND)
        return list(range(spec.boost_clock_mhz, LOWEST_CLOCK_MHZ - 1, -CLOCK_STEP_MHZ))

    def limits_mw(self, handle: NvmlHandle) -> list[int]:
        highest = self.gpu(handle).spec.tdp_w * 1_000
        return [round(highest * LEAST_LIMIT_SHARE), highest]

    def limit_power(self, handle: NvmlHandle, limit_mw: int) -> None:
        regime, now_ns = self.write(handle)
        lowest, highest = self.limits_mw(handle)
        if not lowest <= limit_mw <= highest:
            self.fail(INVALID_ARGUMENT)
        regime.limit_power(now_ns, limit_mw / 1_000)

    def lock(self, handle: NvmlHandle, lowest_mhz: int, highest_mhz: int) -> None:
        regime, now_ns = self.write(handle)
        if lowest_mhz > highest_mhz:
            self.fail(INVALID_ARGUMENT)
        regime.lock(now_ns, highest_mhz)

    def unlock(self, handle: NvmlHandle) -> None:
        regime, now_ns = self.write(handle)
        regime.unlock(now_ns)

    def set_persistence(self, handle: NvmlHandle, mode: int) -> None:
        self.write(handle)
        self._state.persistence[handle.index] = mode

    def persistence(self, handle: NvmlHandle) -> int:
        self.gpu(handle)
        return self._state.persistence.get(handle.index, 1)

    def _require_init(self) -> None:
        if not self._state.n_users:
            self.fail(UNINITIALIZED)


def _uuid(index: int) -> str:
    return f"GPU-{uuid_of(index)}"


def _bus_id(index: int) -> str:
    return f"00000000:{index + 1:02X}:00.0"


def functions(machine: Machine, error: Callable[[int], Exception]) -> dict[str, NvmlCall]:
    """Return NVML's functions for ``machine`` by their full names.

    ``error`` returns the exception for one of NVML's error codes.
    """
    nvml = _SimulatedNvml(machine, _states.setdefault(machine, _State(0, {})), error)
    device = {**_identity(nvml), **_readings(nvml), **_settings(nvml)}
    return {
        "nvmlInit": nvml.init,
        "nvmlInitWithFlags": nvml.init,
        "nvmlShutdown": nvml.shutdown,
        "nvmlSystemGetDriverVersion": lambda: "virtual",
        "nvmlDeviceGetCount": nvml.count,
        **{f"nvmlDevice{name}": call for name, call in device.items()},
    }


def _identity(nvml: _SimulatedNvml) -> dict[str, NvmlCall]:
    return {
        "GetHandleByIndex": nvml.by_index,
        "GetHandleByUUID": partial(nvml.by_name, _uuid),
        "GetHandleByPciBusId": partial(nvml.by_name, _bus_id),
        "GetName": lambda handle: nvml.gpu(handle).spec.driver_name,
        "GetIndex": lambda handle: nvml.gpu(handle).index,
        "GetUUID": lambda handle: _uuid(nvml.gpu(handle).index),
        "GetPciInfo": lambda handle: _Record(busId=_bus_id(nvml.gpu(handle).index)),
        "GetCudaComputeCapability": lambda handle: nvml.gpu(handle).spec.compute_capability,
        "GetMaxClockInfo": partial(nvml.clock, clock_id=3),
        "GetSupportedMemoryClocks": lambda handle: [nvml.gpu(handle).spec.memory_clock_mhz],
        "GetSupportedGraphicsClocks": nvml.supported_clocks,
        "GetTemperatureThreshold": nvml.threshold,
        "GetPowerManagementLimitConstraints": nvml.limits_mw,
        "GetPowerManagementDefaultLimit": lambda handle: nvml.limits_mw(handle)[1],
    }


def _readings(nvml: _SimulatedNvml) -> dict[str, NvmlCall]:
    def of(value: Callable[[SimulatedRegime, int], int]) -> Callable[[NvmlHandle], int]:
        return lambda handle: value(*nvml.read(handle))

    limit = of(lambda regime, _now_ns: round(regime.power_limit_w * 1_000))
    reasons = of(lambda regime, now_ns: regime.reasons(now_ns))
    return {
        "GetClockInfo": nvml.clock,
        "GetClock": nvml.clock,
        "GetTemperature": nvml.temperature,
        "GetTemperatureV": nvml.temperature,
        "GetMemoryInfo": nvml.memory,
        "GetUtilizationRates": nvml.utilization,
        "GetPowerUsage": of(lambda regime, now_ns: round(regime.power_w(now_ns) * 1_000)),
        "GetTotalEnergyConsumption": of(lambda regime, now_ns: regime.energy_mj(now_ns)),
        **dict.fromkeys(("GetEnforcedPowerLimit", "GetPowerManagementLimit"), limit),
        **{f"GetCurrentClocks{kind}Reasons": reasons for kind in ("Throttle", "Event")},
        **{f"GetComputeRunningProcesses{v}": nvml.processes for v in ("", "_v2", "_v3")},
        "GetPersistenceMode": nvml.persistence,
        "GetPerformanceState": of(lambda _regime, _now_ns: 0),
    }


def _settings(nvml: _SimulatedNvml) -> dict[str, NvmlCall]:
    return {
        "SetGpuLockedClocks": nvml.lock,
        "ResetGpuLockedClocks": nvml.unlock,
        "SetPowerManagementLimit": nvml.limit_power,
        "SetPersistenceMode": nvml.set_persistence,
    }
