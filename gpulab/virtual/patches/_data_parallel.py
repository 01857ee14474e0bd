"""``DataParallel`` on one virtual GPU, which calls its module; several GPUs are refused."""

from collections.abc import Sequence
from functools import wraps
from typing import Any

import torch
from torch.utils import _pytree as pytree

from gpulab.virtual.patches._unsupported import unsupported_error
from gpulab.virtual.simulator import Machine
from gpulab.virtual.tensors import cuda_device

_INSTEAD = "name one device, as device_ids=[0], or use CUDA GPUs"


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements for the parts of ``DataParallel`` that divide a batch."""
    make = torch.nn.DataParallel.__init__

    @wraps(make)
    def init(self: Any, module: Any, device_ids: Any = None, *args: Any, **kwargs: Any) -> None:
        _require_one(machine, device_ids)
        make(self, module, device_ids, *args, **kwargs)

    # With one device nothing is divided: the inputs are only moved to it.
    def scatter(_self: Any, inputs: Any, kwargs: Any, device_ids: Sequence[int]) -> Any:
        return (_moved(inputs, device_ids[0]),), (_moved(kwargs, device_ids[0]),)

    return [(torch.nn.DataParallel, {"__init__": init, "scatter": scatter})]


def _require_one(machine: Machine, device_ids: Any) -> None:
    """Refuse several devices in ``device_ids``; None means all devices."""
    indices = range(len(machine.gpus)) if device_ids is None else list(device_ids)
    if len(indices) != 1:
        raise unsupported_error(f"torch.nn.DataParallel over {len(indices)} devices", _INSTEAD)


def _moved(value: Any, index: int) -> Any:
    device = cuda_device(index)
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), value)
