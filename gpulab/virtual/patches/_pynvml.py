"""The module ``pynvml``, answered by the simulated NVML.

The functions of the package nvidia-ml-py are replaced in place, so that a program that has already
imported it sees the virtual GPU, too. A function of NVML without a model fails like one that the
driver does not have.
"""

import sys
from functools import cache
from types import FunctionType, ModuleType
from typing import Any, NoReturn

import pynvml  # type: ignore[import-untyped] # it has no types
import torch

from gpulab.core.torch_private import device_index
from gpulab.virtual.simulator import Machine, nvml


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements in ``pynvml`` and in ``torch.cuda``."""
    module = sys.modules.get("pynvml", pynvml)
    if module is None:  # by which a program forbids the import
        return []
    error = vars(module)["NVMLError"]

    def refuse(*_args: object, **_options: object) -> NoReturn:
        raise error(nvml.FUNCTION_NOT_FOUND)

    # A function that is not replaced would ask the real driver.
    names = {**dict.fromkeys(_functions_of(module), refuse), **nvml.functions(machine, error)}
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


@cache
def _functions_of(module: ModuleType) -> tuple[str, ...]:
    names = [name for name, value in vars(module).items() if isinstance(value, FunctionType)]
    return tuple(name for name in names if name.startswith("nvml"))
