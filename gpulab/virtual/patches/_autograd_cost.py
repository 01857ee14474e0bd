"""Charge the host time that ``backward()`` itself takes, besides its operators."""

from typing import Any

import torch

from gpulab.interrupts import opening
from gpulab.torch_private import engine_run_backward
from gpulab.virtual.simulator import Machine

# Seen beside an H200: going back through 10 additions on a tiny tensor takes 100 µs, through 60
# of them 6.7 µs more for each, though additions launch nothing on the way back.
_START_NS = 33_000
_NODE_NS = 6_500


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return what to put in the place of autograd's engine.

    The host's time is spent before the first gradient is launched, not between them.

    Parameters
    ----------
    machine
        The virtual machine whose host goes back.
    """
    run_backward = engine_run_backward

    @opening  # hooks of the program run inside
    def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        if any(item.device.type == "cuda" for item in outputs if isinstance(item, torch.Tensor)):
            machine.host.spend(_START_NS + _NODE_NS * n_nodes(outputs))
        return run_backward(outputs, *args, **kwargs)

    return [(torch.autograd, {"_engine_run_backward": run})]


def n_nodes(outputs: Any) -> int:
    """Return how many operators lie behind some tensors, the leaves that gather not counted.

    Parameters
    ----------
    outputs
        Tensors from which one goes back.
    """
    roots = [item.grad_fn for item in outputs if isinstance(item, torch.Tensor)]
    pending = [node for node in roots if node is not None]
    seen = set(pending)
    while pending:
        for node, _ in pending.pop().next_functions:
            if node is not None and node not in seen and node.next_functions:
                seen.add(node)
                pending.append(node)
    return len(seen)
