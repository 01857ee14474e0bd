"""Check what an interrupt may have changed: names, settings, and the results of the GPU."""

import gc
import signal
import sys
import time
from typing import Any

import torch

from gpulab.virtual import VirtualGpu, entered
from tests.support.replaced_names import Names, names

_SIGNALS = sorted(signal.valid_signals())
_TOLERANCE = 0.02  # relative; a duration depends a little on the addresses of memory


def settings() -> dict[str, object]:
    """Return the settings of the process that gpulab changes for a while."""
    modes: Any = torch.utils._python_dispatch
    dynamo: Any = sys.modules.get("torch._dynamo.eval_frame")
    return {
        "signal handlers": [signal.getsignal(number) for number in _SIGNALS],
        "dispatch modes": len(modes._get_current_dispatch_mode_stack()),
        "flags of dispatch": {k: v for k, v in vars(modes).items() if k.startswith("_is_in_")},
        "function modes": len(torch.overrides._get_current_function_mode_stack()),
        "garbage collector": (gc.isenabled(), gc.get_threshold()),
        "threads": torch.get_num_threads(),
        "gradients": torch.is_grad_enabled(),
        "type": torch.get_default_dtype(),
        "TF32": torch.backends.cuda.matmul.allow_tf32,
        "cuDNN": (torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark),
        "determinism": torch.are_deterministic_algorithms_enabled(),
        # PyTorch loads its compiler when it is first used, and that changes nothing.
        "compiler": "default" if dynamo is None else dynamo._stance.stance,
        "profiler": torch.autograd.profiler._is_profiler_enabled,
        "entered": entered(),
        "trace": sys.gettrace(),
    }


def changes(names_before: Names, settings_before: dict[str, object]) -> list[str]:
    """Return what has changed on the host: names, settings, the CPU's results and its clock."""
    now = names()
    found = [
        f"{owner}.{name} is replaced"
        for (owner, name), value in names_before.items()
        if now.get((owner, name)) is not value and (owner, name) not in _FREE
    ]
    for name, value in settings().items():
        if value != settings_before[name]:
            found.append(f"{name}: {value}, not {settings_before[name]}")
    # A dispatch mode that was left active would also change operators of the CPU.
    if (torch.ones(3) + 1).tolist() != [2.0] * 3:
        found.append("the CPU adds wrongly")
    if abs(time.time() - time.clock_gettime(time.CLOCK_REALTIME)) > 1:
        found.append("the clock is not the real one")
    return found


# Caches of torch that any use may fill.
_FREE = {
    *(("torch.cuda", "_cached_device_count"), ("torch.cuda", "_tls")),
    *(("torch.random", "_fork_rng_warned_already"),),
}


def left_on(gpu: VirtualGpu | None) -> list[str]:
    """Return what a program has left on the GPU in use: streams, captures, pending tasks."""
    found = []
    torch.cuda.synchronize()
    if torch.cuda.current_stream() != torch.cuda.default_stream():
        found.append(f"the current stream is {torch.cuda.current_stream()}")
    if torch.cuda.is_current_stream_capturing():
        found.append("a capture is under way")
    if not torch.cuda.current_stream().query():
        found.append("the queue does not drain")
    if gpu is not None:
        machine = gpu.machine
        set_here = [name for name in ("capture", "hazards") if getattr(machine, name) is not None]
        found += [f"machine.{name} is still set" for name in set_here]
        found += [
            f"{each.device.n_pending} tasks are pending"
            for each in machine.gpus
            if each.device.n_pending
        ]
        replaced = {*vars(machine.host)} & {"launch", "wait", "wait_for_device", "wait_for_stream"}
        found += [f"host.{name} is still watched" for name in sorted(replaced)]
        if "mark" in vars(machine):
            found.append("machine.mark is still watched")
    return found


Results = dict[str, Any]


def use() -> Results:
    """Use the GPU in many ways, and return the results."""
    # PyTorch's engine keeps the graph of a backward pass that was interrupted until the next one.
    torch.ones(1, requires_grad=True).backward()
    n_bytes = torch.cuda.memory_allocated()
    # Any seed will do: the same numbers must come after each interrupt.
    torch.manual_seed(7)
    drawn = torch.rand(4, device="cuda").tolist()
    a = torch.arange(12.0, device="cuda").reshape(3, 4).requires_grad_()
    (a @ a.T).relu().sum().backward()
    side = torch.cuda.Stream()
    done = torch.cuda.Event()
    with torch.cuda.stream(side):
        b = torch.full((5,), 2.0, device="cuda").cumsum(0)
        done.record()
    torch.cuda.current_stream().wait_event(done)
    c = b * 3
    x = torch.zeros(3, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        x.add_(1)
    graph.replay()
    graph.replay()
    found: Results = {
        "drawn": drawn,
        "gradient": None if a.grad is None else a.grad.tolist(),
        "streams": c.tolist(),
        "graph": x.tolist(),
        "sorted": torch.tensor([3, 1, 2], device="cuda").sort().values.tolist(),
        "picked": torch.tensor([3, 0, 2], device="cuda").nonzero().flatten().tolist(),
    }
    del a, b, c, x, graph, side, done
    torch.cuda.synchronize()
    found["bytes left"] = torch.cuda.memory_allocated() - n_bytes
    return found


def spin_ms() -> float:
    """Return how long a kernel of fixed length takes, by a pair of events."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    spin: Any = torch.cuda._sleep
    spin(1_000_000)
    start.record()
    spin(1_000_000)
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def differences(found: Results, expected: Results) -> list[str]:
    """Return the differences between two results of `use`."""
    return [
        f"{name}: {found.get(name)}, not {value}"
        for name, value in expected.items()
        if found.get(name) != value
    ]


def is_close(found: float, expected: float) -> bool:
    """Return whether two durations agree."""
    return abs(found - expected) <= _TOLERANCE * expected
