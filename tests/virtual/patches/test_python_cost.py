"""PyTorch's own Python code takes host time: modules, hooks, optimizers, contexts."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import optimizer as optimizer_module

import gpulab
from gpulab.virtual.simulator import Host, fitted_costs

COSTS = fitted_costs()


@pytest.fixture
def host() -> Iterator[Host]:
    """Enter a virtual H200 and return its host."""
    with gpulab.virtual_gpu("H200", first_use=False) as gpu:
        yield gpu.machine.host


def cost_ns(host: Host, work: Callable[[], object]) -> int:
    """Return the host time of a call in nanoseconds."""
    before_ns = host.now_ns
    work()
    return host.now_ns - before_ns


def test_each_module_costs_a_call(host: Host) -> None:
    """A Sequential of three modules costs four module calls."""
    model = nn.Sequential(*[nn.Identity() for _ in range(3)])
    x = torch.ones(2, device="cuda")
    assert cost_ns(host, lambda: model(x)) == 4 * COSTS["module"]


def test_each_hook_costs_a_call(host: Host) -> None:
    """Each hook costs one hook call, before and after the module."""
    module: Any = nn.Identity()
    module.register_forward_hook(lambda *_: None)
    module.register_forward_hook(lambda *_: None)
    module.register_forward_pre_hook(lambda *_: None)
    x = torch.ones(2, device="cuda")
    assert cost_ns(host, lambda: module(x)) == COSTS["module"] + 3 * COSTS["hook"]


def parameters(n: int, device: str = "cuda") -> list[nn.Parameter]:
    """Return parameters with gradients, and one without."""
    made = [nn.Parameter(torch.zeros(2, device=device)) for _ in range(n + 1)]
    for item in made[:n]:
        item.grad = torch.zeros_like(item)
    return made


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("options", "device", "expected"),
    [
        ({"foreach": False}, "cuda", "parameter in a loop"),
        ({"foreach": True}, "cuda", "parameter at once"),
        ({}, "cuda", "parameter at once"),
        ({}, "cpu", "parameter in a loop"),
        ({"fused": True}, "cuda", "parameter fused"),
    ],
)
def test_a_step_costs_a_start_and_each_parameter_with_a_gradient(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, bool], device: str, expected: str
) -> None:
    """A step costs one start and, for each parameter with a gradient, what its path costs."""
    charged: dict[str, int] = {}
    optimizer: Any = torch.optim.SGD(parameters(5, device), lr=0.1, **options)
    monkeypatch.setattr(Host, "charge", lambda _, what, n=1: charged.update({what: n}))
    optimizer.step()
    by_path = {name: n for name, n in charged.items() if name.startswith("parameter ")}
    assert by_path == {expected: 5}
    assert charged["optimizer step"] == 1


@pytest.mark.parametrize("options", [{"foreach": True}, {"fused": True}])
def test_a_step_that_is_repeated_alone_takes_a_fraction(
    host: Host, options: dict[str, bool]
) -> None:
    """A loop of steps takes a fraction of the time of steps that other operators separate."""
    optimizer: Any = torch.optim.SGD(parameters(5), lr=0.1, **options)
    x = torch.ones(2, device="cuda")
    first_ns, again_ns = (cost_ns(host, optimizer.step) for _ in range(2))
    # So many that the caches no longer have the step's operators.
    for work in (x.exp, x.sin, x.cos, x.tanh, x.sigmoid) * 3:
        work()
    assert cost_ns(host, optimizer.step) == pytest.approx(first_ns, rel=0.1)
    assert again_ns < first_ns / 3
    assert not host.is_updating


def test_zero_grad_costs_a_start_and_each_gradient(host: Host) -> None:
    """``zero_grad`` costs one start and each gradient, for optimizers and modules."""
    module, optimizer = nn.Linear(2, 2).cuda(), torch.optim.SGD(parameters(3), lr=0.1)
    first_ns, second_ns = (cost_ns(host, optimizer.zero_grad) for _ in range(2))
    assert first_ns - second_ns == 3 * COSTS["parameter zeroed"]
    listed_ns = 2 * COSTS["member listed"]
    assert (
        cost_ns(host, module.zero_grad) == COSTS["zero_grad"] + listed_ns < second_ns + listed_ns
    )


def test_everything_is_undone_when_the_context_is_left() -> None:
    """After the context classes and hooks are PyTorch's own and cost no virtual time."""
    hooks = optimizer_module._global_optimizer_pre_hooks
    n_hooks = len(hooks)
    with gpulab.virtual_gpu("H200", first_use=False) as gpu:
        pass
    assert len(hooks) == n_hooks
    before_ns = gpu.machine.host.now_ns
    module = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    with torch.no_grad(), torch.autocast("cpu"):
        module(torch.ones(2))
    torch.autograd.backward(module(torch.ones(2)).sum())
    optimizer.step()
    optimizer.zero_grad()
    assert gpu.machine.host.now_ns == before_ns
    assert nn.Module._call_impl.__module__ == "torch.nn.modules.module"
    assert torch.optim.Optimizer.zero_grad.__module__ == "torch.optim.optimizer"


@pytest.mark.parametrize(
    ("work", "what", "n"),
    [
        (lambda model: list(model.parameters()), "member listed", 2),
        (lambda model: model.state_dict(), "state of a module", 1),
        (lambda model: model.load_state_dict(model.state_dict()), "state loaded", 1),
        (lambda _: torch.distributions.Normal(0.0, 1.0, validate_args=False), "distribution", 1),
        (
            lambda _: torch.multinomial(torch.ones(3, device="cuda"), 1),
            "operator inside another",
            1,
        ),
        (
            lambda _: torch.ones(4, device="cuda").nonzero(),
            *("operator with a size from values", 1),
        ),
    ],
)
def test_what_programs_do_around_operators_costs_time(
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
    work: Callable[[nn.Module], object],
    what: str,
    n: int,
) -> None:
    """Lists of parameters, states, distributions, masks and drawn numbers cost host time."""
    model = nn.Linear(2, 2).cuda()
    charged: list[str] = []
    monkeypatch.setattr(host, "charge", lambda what, _n=1: charged.append(what))
    work(model)
    assert charged.count(what) == n
