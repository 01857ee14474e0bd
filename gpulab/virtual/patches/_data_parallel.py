"""``DataParallel`` on one virtual GPU, which calls its module; several GPUs are refused."""

from collections.abc import Sequence
from functools import wraps
from typing import Any

import torch
from torch.nn.parallel import data_parallel as parallel
from torch.utils import _pytree as pytree

from gpulab.virtual._streams import index_of
from gpulab.virtual.patches._unsupported import unsupported_error
from gpulab.virtual.simulator import Machine
from gpulab.virtual.tensors import cuda_device

_INSTEAD = "name one device, as device_ids=[0], or use CUDA GPUs"


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements for the parts of ``DataParallel`` that divide a batch."""
    make = torch.nn.DataParallel.__init__

    @wraps(make)
    def init(self: Any, module: Any, device_ids: Any = None, *args: Any, **kwargs: Any) -> None:
        _require_one(machine, device_ids, "torch.nn.DataParallel")
        make(self, module, device_ids, *args, **kwargs)

    # With one device nothing is divided: the inputs are only moved to it.
    def scatter(_self: Any, inputs: Any, kwargs: Any, device_ids: Sequence[int]) -> Any:
        return _moved(inputs, kwargs, device_ids[0])

    def data_parallel(  # noqa: PLR0913, PLR0917 # torch's signature
        module: torch.nn.Module,
        inputs: Any,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,  # noqa: ARG001 # torch's signature
        module_kwargs: Any = None,
    ) -> Any:
        first = _require_one(machine, device_ids, "torch.nn.parallel.data_parallel")
        arguments = inputs if isinstance(inputs, tuple) or inputs is None else (inputs,)
        args, kwargs = _moved(arguments or (), module_kwargs, first)
        out = module(*args[0], **kwargs[0])
        return out if output_device is None else _on(out, index_of(output_device, machine))

    return [
        (torch.nn.DataParallel, {"__init__": init, "scatter": scatter}),
        *((owner, {"data_parallel": data_parallel}) for owner in (torch.nn.parallel, parallel)),
    ]


def _require_one(machine: Machine, device_ids: Any, name: str) -> int:
    """Return the index of the only device in ``device_ids``; None means all devices."""
    indices = range(len(machine.gpus)) if device_ids is None else list(device_ids)
    if len(indices) != 1:
        raise unsupported_error(f"{name} over {len(indices)} devices", _INSTEAD)
    return index_of(indices[0], machine)


def _moved(inputs: Any, kwargs: Any, index: int) -> tuple[Any, Any]:
    return (_on(tuple(inputs), index),), (_on(dict(kwargs or {}), index),)


def _on(value: Any, index: int) -> Any:
    device = cuda_device(index)
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), value)
