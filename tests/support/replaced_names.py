"""Compare all names of torch and Python that gpulab might replace, before and after a test."""

import sys
import threading
import time
import timeit
from collections.abc import Iterator
from typing import Any

import torch

Names = dict[tuple[str, str], object]

_OWNERS: tuple[Any, ...] = (
    *(torch, torch._C, torch.Tensor, torch.nn, torch.nn.Module, torch.nn.functional),
    *(torch.accelerator, torch.amp, torch.backends.cuda, torch.backends.cudnn, torch.version),
    *(torch.autograd, torch.autograd.profiler, torch.UntypedStorage, torch.nested),
    *(torch.nn.DataParallel, torch.nn.parallel, torch.distributed, torch.export),
    *(torch.profiler, torch.random, torch.serialization, torch.storage, torch._utils),
    *(torch.profiler.profile, torch.autograd.profiler.record_function, torch.optim.Optimizer),
    *(torch.jit, torch.fft, torch.linalg, torch.nested, torch.utils.data.DataLoader),
    *(torch.nn.RNNBase, torch.nn.parallel.DistributedDataParallel, torch.overrides),
    *(time, timeit, threading, threading.Thread),
)
_TIMERS: tuple[Any, ...] = (timeit.Timer.__init__, timeit.timeit, timeit.repeat)


def names() -> Names:
    """Return every name that gpulab might replace, with its value."""
    found: Names = {}
    for owner in _owners():
        for name, value in vars(owner).items():
            found[owner.__name__, name] = value
    for kind in _kinds():
        found[kind.__name__, "bases"] = kind.__bases__
    for function in _TIMERS:
        found[function.__qualname__, "defaults"] = function.__defaults__
    found["sys.modules", "pynvml"] = sys.modules.get("pynvml")
    for number, operator in torch.jit._builtins._get_builtin_table().items():
        found["TorchScript", str(number)] = operator
    found["legacy types", "new"] = torch.cuda.FloatStorage.__new__
    return found


def _owners() -> Iterator[Any]:
    """Yield the modules and classes with such names, and all loaded modules of torch.cuda."""
    yield from _OWNERS
    for name, module in sorted(sys.modules.items()):
        if name == "torch.cuda" or name.startswith("torch.cuda."):
            yield module


def _kinds() -> tuple[Any, ...]:
    return torch.cuda.Stream, torch.cuda.Event, torch.cuda.CUDAGraph
