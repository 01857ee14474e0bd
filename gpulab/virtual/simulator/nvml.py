"""NVML for virtual GPUs: the functions that read and set clocks, power, memory and limits.

NVML is NVIDIA's management library. Each call takes host time. ``gpulab.virtual.patches`` puts
these functions into ``pynvml`` while a virtual GPU is entered.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from gpulab.virtual.simulator._machine import Machine, SimulatedGpu
from gpulab.virtual.simulator._properties import uuid_of
from gpulab.virtual.simulator._thermal import CLOCK_STEP_MHZ, LOWEST_CLOCK_MHZ, SimulatedRegime

# A call of NVML, as measured beside an H200.
READ_NS = 1_000

NvmlCall = Callable[..., Any]

# NVML's numbers for errors, and for the clocks of a GPU.
UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION = 1, 2, 3, 4
NOT_FOUND, FUNCTION_NOT_FOUND = 6, 13
GRAPHICS, SM, MEMORY = 0, 1, 2


@dataclass(frozen=True, slots=True)
class NvmlHandle:
    """NVML's handle of one GPU."""

    index: int


# How often NVML was initialised and not shut down. By machine and not by context: a notebook
# enters and leaves the machine at every cell, and only one of the cells initialises NVML.
_n_users: WeakKeyDictionary[Machine, int] = WeakKeyDictionary()


class _SimulatedNvml:
    """NVML for the GPUs of one machine.

    Calls take virtual time only on the thread that entered the machine. Another thread, such as
    that of a sampler, reads the latest state.
    """

    def __init__(self, machine: Machine, error: Callable[[int], Exception]) -> None:
        self._machine = machine
        self._error = error
        self._owner = threading.get_ident()

    def fail(self, code: int) -> NoReturn:
        raise self._error(code)

    def init(self, _flags: int = 0) -> None:
        _n_users[self._machine] = _n_users.get(self._machine, 0) + 1

    def shutdown(self) -> None:
        self._require_init()
        _n_users[self._machine] -= 1

    def count(self) -> int:
        self._require_init()
        return len(self._machine.gpus)

    def by_index(self, index: int) -> NvmlHandle:
        if not 0 <= index < self.count():
            self.fail(INVALID_ARGUMENT)
        return NvmlHandle(index)

    def by_uuid(self, uuid: str | bytes) -> NvmlHandle:
        asked = uuid.decode() if isinstance(uuid, bytes) else uuid
        known = {_uuid(index): NvmlHandle(index) for index in range(self.count())}
        if asked not in known:
            self.fail(NOT_FOUND)
        return known[asked]

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

    def utilization(self, handle: NvmlHandle) -> SimpleNamespace:
        regime, now_ns = self.read(handle)
        busy, memory = regime.utilization(now_ns)
        return SimpleNamespace(gpu=busy, memory=memory)

    def memory(self, handle: NvmlHandle, _version: int | None = None) -> SimpleNamespace:
        self.read(handle)
        gpu = self.gpu(handle)
        total = gpu.spec.memory_bytes
        # With the CUDA context, so this is more than PyTorch has reserved, as on hardware.
        used = total - gpu.memory.free_bytes
        return SimpleNamespace(total=total, used=used, free=total - used, reserved=0)

    def processes(self, handle: NvmlHandle) -> list[SimpleNamespace]:
        # The virtual GPU is used by this process alone, once it has allocated memory.
        memory = self.gpu(handle).memory
        used = memory.capacity_bytes - memory.free_bytes
        return (
            [SimpleNamespace(pid=os.getpid(), usedGpuMemory=used)] if memory.reserved_bytes else []
        )

    def supported_clocks(self, handle: NvmlHandle, memory_mhz: int) -> list[int]:
        spec = self.gpu(handle).spec
        if memory_mhz != spec.memory_clock_mhz:
            self.fail(NOT_FOUND)
        return list(range(spec.boost_clock_mhz, LOWEST_CLOCK_MHZ - 1, -CLOCK_STEP_MHZ))

    def lock(self, handle: NvmlHandle, lowest_mhz: int, highest_mhz: int) -> None:
        regime, now_ns = self.write(handle)
        if lowest_mhz > highest_mhz:
            self.fail(INVALID_ARGUMENT)
        regime.lock(now_ns, highest_mhz)

    def unlock(self, handle: NvmlHandle) -> None:
        regime, now_ns = self.write(handle)
        regime.unlock(now_ns)

    def _require_init(self) -> None:
        if not _n_users.get(self._machine):
            self.fail(UNINITIALIZED)


def _uuid(index: int) -> str:
    return f"GPU-{uuid_of(index)}"


def functions(machine: Machine, error: Callable[[int], Exception]) -> dict[str, NvmlCall]:
    """Return NVML's functions for ``machine`` by their full names.

    ``error`` returns the exception for one of NVML's error codes.
    """
    nvml = _SimulatedNvml(machine, error)

    def of(value: Callable[[SimulatedRegime, int], int]) -> Callable[[NvmlHandle], int]:
        return lambda handle: value(*nvml.read(handle))

    limit = of(lambda regime, _now_ns: round(regime.power_limit_w * 1_000))
    reasons = of(lambda regime, now_ns: regime.reasons(now_ns))
    device: dict[str, NvmlCall] = {
        "GetHandleByIndex": nvml.by_index,
        "GetHandleByUUID": nvml.by_uuid,
        "GetName": lambda handle: nvml.gpu(handle).spec.driver_name,
        "GetIndex": lambda handle: nvml.gpu(handle).index,
        "GetUUID": lambda handle: _uuid(nvml.gpu(handle).index),
        "GetCudaComputeCapability": lambda handle: nvml.gpu(handle).spec.compute_capability,
        "GetMaxClockInfo": partial(nvml.clock, clock_id=3),
        "GetSupportedMemoryClocks": lambda handle: [nvml.gpu(handle).spec.memory_clock_mhz],
        "GetSupportedGraphicsClocks": nvml.supported_clocks,
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
        "SetGpuLockedClocks": nvml.lock,
        "ResetGpuLockedClocks": nvml.unlock,
    }
    return {
        "nvmlInit": nvml.init,
        "nvmlInitWithFlags": nvml.init,
        "nvmlShutdown": nvml.shutdown,
        "nvmlSystemGetDriverVersion": lambda: "virtual",
        "nvmlDeviceGetCount": nvml.count,
        **{f"nvmlDevice{name}": call for name, call in device.items()},
    }
