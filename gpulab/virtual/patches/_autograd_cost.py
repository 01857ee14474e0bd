"""Charge the host time of autograd: its engine in ``backward()``, and hooks for saved tensors."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks

from gpulab.core.interrupts import opening
from gpulab.core.torch_private import CheckpointHooks, engine_run_backward
from gpulab.core.tracebacks import drop_this_frame
from gpulab.virtual.simulator import Machine, is_owner


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements for what starts autograd's engine, and for hooks of saved tensors.

    The engine spends its whole host time before the first gradient is launched, not between
    launches.
    """
    run_backward = engine_run_backward
    set_hooks = saved_tensors_hooks.__init__

    def charged(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def call(saved: Any) -> Any:
            if is_owner():
                machine.host.charge("saved-tensor hook")
            return hook(saved)

        return call

    def init(
        self: Any, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]
    ) -> None:
        if isinstance(self, CheckpointHooks) and is_owner():
            machine.host.charge("checkpoint")
        set_hooks(self, charged(pack_hook), charged(unpack_hook))

    @opening  # Ctrl-C may interrupt here, because hooks of the program run inside
    def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        host = machine.host
        tensors = [item for item in outputs if isinstance(item, torch.Tensor)]
        if not (is_owner() and any(item.device.type == "cuda" for item in tensors)):
            return run_backward(outputs, *args, **kwargs)
        # Counted before the pass, which frees the graph while it runs.
        operators, n_leaves = nodes_behind(tensors)
        host.charge("backward node", len(operators))
        host.charge("backward leaf", n_leaves)
        # A hook or a checkpoint may run backward inside backward.
        host.begin_backward()
        try:
            return run_backward(outputs, *args, **kwargs)
        except Exception as error:
            drop_this_frame(error)
            raise
        finally:
            host.end_backward()

    return [
        (torch.autograd, {"_engine_run_backward": run}),
        (saved_tensors_hooks, {"__init__": init}),
    ]


def nodes_behind(outputs: Iterable[torch.Tensor]) -> tuple[set[Any], int]:
    """Return the nodes that backward runs for some tensors, and the number of leaves."""
    pending = list({item.grad_fn for item in outputs if item.grad_fn is not None})
    visited = set(pending)
    leaves = set()
    while pending:
        last = pending.pop()
        # A node without next functions accumulates the gradient of a leaf.
        if not last.next_functions:
            leaves.add(last)
        for node, _ in last.next_functions:
            if node is not None and node not in visited:
                visited.add(node)
                pending.append(node)
    return visited - leaves, len(leaves)
