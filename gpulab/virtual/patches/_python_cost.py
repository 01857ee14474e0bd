"""Charge the host time of PyTorch's Python code: modules, optimizers, contexts and the like.

A global hook of PyTorch reports each step of an optimizer. For modules a method is replaced
instead, because programs would notice a global module hook: compiled modules warn about it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial, wraps
from typing import Any

import torch

from gpulab.core.torch_private import (
    C,
    LoaderIterator,
    call_module,
    list_members_of,
    module_hooks,
    next_sequence_number,
)
from gpulab.core.tracebacks import drop_this_frame
from gpulab.virtual.patches._optimizer_steps import End, OptimizerSteps
from gpulab.virtual.simulator import Host, Machine, is_owner

_WAYS = ("parameter in a loop", "parameter at once", "parameter fused")


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the functions that charge the host, by module or class."""
    host = machine.host
    optimizer_zero, module_zero = torch.optim.Optimizer.zero_grad, torch.nn.Module.zero_grad

    def zero_optimizer(self: Any, *args: Any, **kwargs: Any) -> None:
        _charge_zero(host, (item for group in self.param_groups for item in group["params"]))
        optimizer_zero(self, *args, **kwargs)

    def zero_module(self: Any, *args: Any, **kwargs: Any) -> None:
        # Not by ``parameters()``, which the host would be charged for once more.
        _charge_zero(host, (item for each in self.modules() for item in each._parameters.values()))  # noqa: SLF001 # see above
        module_zero(self, *args, **kwargs)

    return [
        (torch.optim.Optimizer, {"zero_grad": zero_optimizer}),
        (torch.nn.Module, {"zero_grad": zero_module, "_call_impl": _calling(host)}),
        *_bookkeeping(host),
    ]


def _calling(host: Host) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_owner():
            host.charge("module")
            n_hooks = sum(map(len, module_hooks(self)))
            if n_hooks:
                host.charge("hook", n_hooks)
        try:
            return call_module(self, *args, **kwargs)
        except BaseException as error:
            drop_this_frame(error)
            raise

    return call


def _bookkeeping(host: Host) -> list[tuple[Any, dict[str, Any]]]:
    """Return the functions that charge the host for lists of parameters, states and the like."""

    def charged(plain: Callable[..., Any], cost: str) -> Callable[..., Any]:
        @wraps(plain)
        def called(*args: Any, **kwargs: Any) -> Any:
            if is_owner():
                host.charge(cost)
            return plain(*args, **kwargs)

        return called

    def list_members(*args: Any, **kwargs: Any) -> Iterator[Any]:
        for pair in list_members_of(*args, **kwargs):
            if is_owner():
                host.charge("member listed")
            yield pair

    named = (
        (C, "_set_grad_enabled", "grad mode"),
        (LoaderIterator, "__next__", "loader batch"),
        (torch.nn.Module, "state_dict", "state of a module"),
        (torch.nn.Module, "_load_from_state_dict", "state loaded"),
        (torch.optim.lr_scheduler.LRScheduler, "step", "scheduler step"),
        (torch.distributions.Distribution, "__init__", "distribution"),
    )
    charging = [
        (owner, {name: charged(getattr(owner, name), cost)}) for owner, name, cost in named
    ]
    return [(torch.nn.Module, {"_named_members": list_members}), *charging]


def install(machine: Machine, steps: OptimizerSteps) -> None:
    """Charge each step of an optimizer that ``steps`` follows."""
    host = machine.host
    # Operators that autograd recorded before are not charged.
    host.skip_recorded(next_sequence_number())

    def charge_step(optimizer: Any, _args: object, _kwargs: object) -> End:
        before = host.begin_step()
        host.charge("optimizer step")
        for way, n in _parameters_by_way(optimizer).items():
            host.charge(way, n)
        return partial(host.end_step, before)

    steps.follow(charge_step)


def _charge_zero(host: Host, parameters: Iterable[Any]) -> None:
    if is_owner():
        host.charge("zero_grad")
        host.charge(
            "parameter zeroed",
            sum(1 for item in parameters if item is not None and item.grad is not None),
        )


def _parameters_by_way(optimizer: Any) -> Counter[str]:
    """Return how many parameters an optimizer updates in a loop, at once, or fused."""
    counts: Counter[str] = Counter()
    for group in optimizer.param_groups:
        ready = [item for item in group["params"] if item.grad is not None]
        counts[_way(group, ready)] += len(ready)
    return counts


def _way(group: dict[str, Any], parameters: list[Any]) -> str:
    """Return how PyTorch updates the parameters of a group: as asked, or at once on a GPU."""
    # The rule of torch.optim.optimizer._default_to_fused_or_foreach in torch 2.13: without an
    # argument, foreach is used if all parameters are on a GPU.
    loop, at_once, fused = _WAYS
    if group.get("fused"):
        return fused
    if group.get("foreach") is not None:
        return at_once if group["foreach"] else loop
    is_at_once = "foreach" in group and all(item.is_cuda for item in parameters)
    return at_once if is_at_once else loop
