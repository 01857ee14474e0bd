"""The module ``pynvml``, answered by the simulated NVML.

The package nvidia-ml-py need not be installed. If it is, its functions are replaced in place, so
that a program that has already imported it sees the virtual GPU, too; and its own error classes
are raised. A function of NVML without a model fails like one that the driver does not have.
"""

import sys
from collections.abc import Callable
from functools import cache
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any, NoReturn, Self

import torch

from gpulab.core.interrupts import Undo
from gpulab.core.torch_private import device_index
from gpulab.virtual.simulator import SW_POWER_CAP, Machine, nvml

_CONSTANTS = {
    "NVML_SUCCESS": 0,
    "NVML_FEATURE_DISABLED": 0,
    "NVML_FEATURE_ENABLED": 1,
    "NVML_CLOCK_GRAPHICS": nvml.GRAPHICS,
    "NVML_CLOCK_SM": nvml.SM,
    "NVML_CLOCK_MEM": nvml.MEMORY,
    "NVML_CLOCK_VIDEO": 3,
    "NVML_CLOCK_ID_CURRENT": 0,
    "NVML_CLOCK_ID_CUSTOMER_BOOST_MAX": 3,
    "NVML_TEMPERATURE_GPU": 0,
    "NVML_PSTATE_0": 0,
    "NVML_INIT_FLAG_NO_GPUS": 1,
    "NVML_TEMPERATURE_THRESHOLD_SHUTDOWN": 0,
    "NVML_TEMPERATURE_THRESHOLD_SLOWDOWN": 1,
    "NVML_TEMPERATURE_THRESHOLD_GPU_MAX": 3,
}
_REASONS = {
    "None": 0,
    "GpuIdle": 1,
    "ApplicationsClocksSetting": 2,
    "SwPowerCap": SW_POWER_CAP,
    "HwSlowdown": 8,
    "SyncBoost": 16,
    "SwThermalSlowdown": 32,
    "HwThermalSlowdown": 64,
    "HwPowerBrakeSlowdown": 128,
    "DisplayClockSetting": 256,
}

# NVML's errors in the order of their codes, from 1 on. UNKNOWN has the code 999.
_ERROR_NAMES = (
    *("UNINITIALIZED", "INVALID_ARGUMENT", "NOT_SUPPORTED", "NO_PERMISSION"),
    *("ALREADY_INITIALIZED", "NOT_FOUND", "INSUFFICIENT_SIZE", "INSUFFICIENT_POWER"),
    *("DRIVER_NOT_LOADED", "TIMEOUT", "IRQ_ISSUE", "LIBRARY_NOT_FOUND", "FUNCTION_NOT_FOUND"),
    *("CORRUPTED_INFOROM", "GPU_IS_LOST", "RESET_REQUIRED", "OPERATING_SYSTEM"),
    *("LIB_RM_VERSION_MISMATCH", "IN_USE", "MEMORY", "NO_DATA", "VGPU_ECC_NOT_SUPPORTED"),
    *("INSUFFICIENT_RESOURCES", "FREQ_NOT_SUPPORTED", "ARGUMENT_VERSION_MISMATCH"),
)
_ERRORS = {**dict(enumerate(_ERROR_NAMES, start=1)), 999: "UNKNOWN"}


class NVMLError(Exception):
    """An error of NVML; each code has its own subclass, which ``NVMLError(code)`` returns."""

    value = 999

    def __new__(cls, code: int = 999) -> Self:
        """Make an error of the subclass for ``code``, as the package does."""
        kind: Any = cls if cls is not NVMLError else _classes[code]
        error: Self = super().__new__(kind)
        return error

    def __str__(self) -> str:
        if self.value == nvml.NO_PERMISSION:
            return "Insufficient Permissions"
        return _ERRORS[self.value].replace("_", " ").title()


_classes: dict[int, type[NVMLError]] = {
    code: type("NVMLError_" + name.title().replace("_", ""), (NVMLError,), {"value": code})
    for code, name in _ERRORS.items()
}


class _StandIn(ModuleType):
    """The module ``pynvml`` if the package nvidia-ml-py is not installed."""

    def __getattr__(self, name: str) -> Any:
        names = sorted(key for key in vars(self) if key.startswith(("nvml", "NVML")))
        if names and name.startswith("nvml"):
            return _refuser(NVMLError)
        # Without names, the program kept the module after the end of the virtual_gpu() context.
        has = f"the virtual one has {', '.join(names)}" if names else "the virtual GPU was left"
        raise AttributeError(f"module 'pynvml' has no attribute {name!r}; {has}")


_stand_in = _StandIn("pynvml")
# importlib.util.find_spec() raises an error for a module whose __spec__ is None.
_stand_in.__spec__ = ModuleSpec("pynvml", None)


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements in ``pynvml`` and in ``torch.cuda``."""
    module = sys.modules.get("pynvml") or _stand_in
    is_real = module is not _stand_in
    # First every function of the package refuses; then those that have a model replace these.
    names = _replaced_functions(module) if is_real else {**_stand_in_names()}
    error = vars(module)["NVMLError"] if is_real else NVMLError
    names.update(nvml.functions(machine, error))
    visible = list(range(len(machine.gpus)))

    def index_of(device: Any = None) -> int:
        index = machine.current if device is None else int(device_index(device, optional=True))
        if index not in visible:
            raise RuntimeError(f"device {index} is not visible (CUDA_VISIBLE_DEVICES={visible})")
        return index

    index_name = "_get_nvml_device_index"
    return [
        (module, names),
        (torch.cuda, {"pynvml": module, "_HAS_PYNVML": True, index_name: index_of}),
        (torch.cuda.memory, {index_name: index_of}),
    ]


def install(_machine: Machine, undo: Undo) -> None:
    """Let ``import pynvml`` find the stand-in if the package is not installed."""
    if sys.modules.get("pynvml"):
        return
    # sys.modules may have None for pynvml, by which a program forbids the import; it comes back.
    before = {name: sys.modules[name] for name in ("pynvml",) if name in sys.modules}

    def restore() -> None:
        sys.modules.pop("pynvml", None)
        sys.modules.update(before)

    undo.callback(restore)
    sys.modules["pynvml"] = _stand_in


@cache
def _stand_in_names() -> dict[str, Any]:
    errors = {f"NVML_ERROR_{name}": code for code, name in _ERRORS.items()}
    error_classes: list[type[NVMLError]] = [NVMLError, *_classes.values()]
    classes = {error.__name__: error for error in error_classes}
    reasons = {
        f"nvmlClocks{kind}Reason{name}": bit
        for kind in ("Throttle", "Event")
        for name, bit in _REASONS.items()
    }
    return {**_CONSTANTS, **errors, **classes, **reasons}


def _replaced_functions(module: ModuleType) -> dict[str, Any]:
    """Return a refusal for every function of the real package."""
    # A function that is not replaced would ask the real driver.
    return dict.fromkeys(_functions_of(module), _refuser(vars(module)["NVMLError"]))


@cache
def _functions_of(module: ModuleType) -> tuple[str, ...]:
    names = [name for name, value in vars(module).items() if isinstance(value, FunctionType)]
    return tuple(name for name in names if name.startswith("nvml"))


def _refuser(error: Callable[[int], Exception]) -> Callable[..., NoReturn]:
    def refuse(*_args: object, **_options: object) -> NoReturn:
        raise error(nvml.FUNCTION_NOT_FOUND)

    return refuse
