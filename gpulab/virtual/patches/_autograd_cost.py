"""Run autograd's engine with its host time, and charge hooks for saved tensors."""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.graph import saved_tensors_hooks

from gpulab.core.interrupts import opening
from gpulab.core.torch_private import CheckpointHooks, engine_run_backward
from gpulab.core.tracebacks import drop_this_frame
from gpulab.virtual.patches._autograd_streams import nodes_behind, on_forward_streams
from gpulab.virtual.simulator import Host, Machine, is_owner


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements for what starts autograd's engine, and for hooks of saved tensors.

    The engine spends its whole host time before the first gradient is launched, not between
    launches.
    """
    return [
        (torch.autograd, {"_engine_run_backward": _engine(machine)}),
        (saved_tensors_hooks, {"__init__": _hooks(machine.host)}),
    ]


def _engine(machine: Machine) -> Callable[..., Any]:
    run_backward = engine_run_backward

    @opening  # Ctrl-C may interrupt here, because hooks of the program run inside
    def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_owner():
            return run_backward(outputs, *args, **kwargs)
        tensors = [item for item in outputs if isinstance(item, torch.Tensor)]
        # A leaf among the outputs has no node; its gradient needs no stream of its own.
        roots = [item.grad_fn for item in tensors if item.grad_fn is not None]
        is_charged = any(item.device.type == "cuda" for item in tensors)
        if is_charged:
            _charge(machine.host, roots)
        try:
            with on_forward_streams(machine, roots):
                return run_backward(outputs, *args, **kwargs)
        except Exception as error:
            drop_this_frame(error)
            raise
        finally:
            if is_charged:
                machine.host.end_backward()

    return run


def _charge(host: Host, roots: list[Any]) -> None:
    """Charge a backward pass before it runs, because it frees the graph meanwhile."""
    nodes = nodes_behind(roots)
    # A node without next functions accumulates the gradient of a leaf.
    n_leaves = sum(not node.next_functions for node in nodes)
    host.charge("backward node", len(nodes) - n_leaves)
    host.charge("backward leaf", n_leaves)
    # A hook or a checkpoint may run backward inside backward.
    host.begin_backward()


def _hooks(host: Host) -> Callable[..., None]:
    set_hooks = saved_tensors_hooks.__init__

    def charged(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def call(saved: Any) -> Any:
            if is_owner():
                host.charge("saved-tensor hook")
            return hook(saved)

        return call

    def init(
        self: Any, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]
    ) -> None:
        if isinstance(self, CheckpointHooks) and is_owner():
            host.charge("checkpoint")
        set_hooks(self, charged(pack_hook), charged(unpack_hook))

    return init
