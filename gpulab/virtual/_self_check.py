"""Check briefly that the virtual GPU works with the installed PyTorch."""

from collections.abc import Callable
from typing import Any

import torch as untyped_torch

from gpulab.core.torch_private import spin

torch: Any = untyped_torch  # much of torch.cuda has no types
Check = Callable[[], bool]


def _values() -> bool:
    x = torch.arange(4.0, device="cuda")
    return bool((x * 2 + 1).tolist() == [1.0, 3.0, 5.0, 7.0])


def _gradients() -> bool:
    x = torch.ones(3, device="cuda", requires_grad=True)
    (x**2).sum().backward()
    return bool(x.grad is not None and x.grad.tolist() == [2.0] * 3)


def _modules() -> bool:
    layer = torch.nn.Linear(4, 2).cuda()
    return bool(layer(torch.ones(3, 4, device="cuda")).shape == (3, 2))


def _asynchrony() -> bool:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    # Long enough that the host is back before the kernel ends.
    spin(1_000_000)
    end.record()
    was_done = end.query()
    end.synchronize()
    return bool(not was_done and start.elapsed_time(end) > 0.1)  # noqa: PLR2004 # ms, of about 0.5


def _streams() -> bool:
    side = torch.cuda.Stream()
    x = torch.zeros(3, device="cuda")
    spin(1_000_000)
    x.fill_(1.0)
    with torch.cuda.stream(side):
        early = x * 10
    torch.cuda.synchronize()
    # The side stream waits for nothing, so it must have read the zeros: values are written when
    # the simulated kernel ends, and not when the program calls it.
    return bool(early.tolist() == [0.0] * 3)


def _graphs() -> bool:
    x, graph = torch.zeros(3, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.add_(1)
    graph.replay()
    graph.replay()
    # The capture itself must compute nothing, so x is 2 and not 3.
    return bool(x.tolist() == [2.0] * 3)


def _autocast() -> bool:
    a = torch.ones(2, 2, device="cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        return bool((a @ a).dtype is torch.float16)


def _memory() -> bool:
    before = torch.cuda.memory_allocated()
    x = torch.empty(1 << 20, device="cuda")
    return bool(torch.cuda.memory_allocated() - before == x.nbytes)


CHECKS: dict[str, Check] = {
    "values": _values,
    "gradients": _gradients,
    "modules": _modules,
    "asynchrony": _asynchrony,
    "streams": _streams,
    "graphs": _graphs,
    "autocast": _autocast,
    "memory": _memory,
}


def failures() -> dict[str, str]:
    """Run every check on the entered virtual GPU, and return the failures by name.

    The checks show that the parts work with this torch. They say nothing about how accurate the
    simulated times are.
    """
    reasons = {}
    for name, check in CHECKS.items():
        try:
            if not check():
                reasons[name] = "gave a wrong result"
        except Exception as error:  # noqa: BLE001 # a report must say what failed, whatever it was
            reasons[name] = f"{type(error).__name__}: {error}"
    return reasons
